"use strict";
// Keeps an open page up to date. The server says that something has changed; the page is asked for again, and its parts
// (data-part) are replaced. Without this script the page is complete, and `Refresh` asks for it again.
(() => {
  // Nothing on a page that says what went wrong changes by itself.
  if (document.querySelector("[data-part]") === null) return;
  const FIRST_RETRY = 1000, LONGEST_RETRY = 30000;
  const status = document.getElementById("live");
  const pause = document.getElementById("pause");
  let revision = document.documentElement.dataset.revision;
  let source = null, timer = 0, retry = FIRST_RETRY, busy = false, again = false, paused = false;

  // It is read aloud (role=status), so it is changed only when it says something else.
  const say = (text) => { if (status.textContent !== text) status.textContent = text; };

  const link = (part, href) => [...part.querySelectorAll("a")].find((one) => one.getAttribute("href") === href);

  // Changes what differs and keeps the rest, so that who reads with a screen reader, or has marked text, keeps their place.
  function change(old, now) {
    if (old.isEqualNode(now)) return;
    if (old.nodeName !== now.nodeName || old.nodeType !== now.nodeType) { old.replaceWith(now); return; }
    if (old.nodeType !== Node.ELEMENT_NODE) { old.nodeValue = now.nodeValue; return; }
    for (const { name } of [...old.attributes]) if (!now.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of now.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    const before = [...old.childNodes], after = [...now.childNodes];
    after.forEach((one, place) => { if (place < before.length) change(before[place], one); else old.append(one); });
    before.slice(after.length).forEach((one) => one.remove());
  }

  function replace(fresh) {
    for (const part of document.querySelectorAll("[data-part]")) {
      const now = fresh.getElementById(part.id);
      if (now === null || now.isEqualNode(part)) continue;
      // Who goes through the links with the keyboard stays where they are.
      const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      change(part, now);
      if (focused === null || document.activeElement.getAttribute("href") === focused) continue;
      (link(part, focused) || document.getElementById("main")).focus({ preventScroll: true });
    }
  }

  async function refresh() {
    if (busy || document.hidden) { again = true; return; }
    busy = true;
    again = false;
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      // Pause was pressed in the meantime.
      if (paused) return;
      if (answer.ok) {
        replace(fresh);
        revision = fresh.documentElement.dataset.revision;
        say("Live: changes appear by themselves.");
      } else {
        say(`${fresh.querySelector("h1")?.textContent || "No answer"}: this is what was known before.`);
      }
    } catch {
      lost();
    } finally {
      busy = false;
      if (again && !paused) refresh();
    }
  }

  function close() {
    clearTimeout(timer);
    if (source !== null) source.close();
    source = null;
  }

  function lost() {
    if (paused) return;
    close();
    say("Connection lost; trying again.");
    timer = setTimeout(connect, retry);
    retry = Math.min(retry * 2, LONGEST_RETRY);
  }

  function connect() {
    close();
    source = new EventSource(`events?since=${encodeURIComponent(revision)}`);
    source.addEventListener("open", () => { retry = FIRST_RETRY; say("Live: changes appear by themselves."); });
    source.addEventListener("changed", refresh);
    source.addEventListener("error", lost);
  }

  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Resume" : "Pause";
    if (paused) { close(); say("Paused."); } else { connect(); }
  });
  document.addEventListener("visibilitychange", () => { if (!document.hidden && again && !paused) refresh(); });
  pause.hidden = false;
  connect();
})();
