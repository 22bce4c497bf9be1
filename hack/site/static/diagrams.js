// Draws each diagram of the page in the place of its text.
mermaid.initialize({
  startOnLoad: false,
  theme: "neutral",
  securityLevel: "strict",
  fontFamily: "sans-serif",
  sequence: { wrap: true, width: 110, actorMargin: 12, mirrorActors: false },
  flowchart: { wrappingWidth: 260 },
});
document.querySelectorAll(".diagram").forEach(async (one, number) => {
  const { svg } = await mermaid.render(`diagram-${number}`, one.textContent.trim());
  one.innerHTML = svg;
  one.dataset.drawn = "true";
});
