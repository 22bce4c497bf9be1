"""What people see of the page, and do with it."""

import os
import time
from asyncio import to_thread
from collections.abc import Iterable
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

from muster.cli.page.charts import weeks
from muster.cli.page.samples import SLOT, SLOTS, Sample, Samples
from muster.cli.report.figures import Report, first_day
from muster.cluster.cluster import Cluster
from muster.gangs.accounts import Accounts, Scope
from muster.model.names import ADMITTED_AT, GANG, PASSED_IN, PASSED_SINCE, RUNS_AT_MOST, STATE
from muster.model.times import text_of
from muster.workloads import KINDS, kind_of
from tests.support.cli.browser import WIDTHS, Window
from tests.support.cli.page import Served, served
from tests.support.controller.bypass_queue import OF_A_JOB
from tests.support.controller.stores import filled, workload_store
from tests.support.faults.apiserver import listing, only, reply
from tests.support.manifests.gangs import gangs, limited
from tests.support.manifests.observed import JSON, made, queue

WAITS = "gang?namespace=team&name=ray-bert-large-pg"
"""The address of a gang that waits."""
RUNS = "gang?namespace=team&name=ray-run-llama-8b-pg"
"""The address of one that runs."""

_DAY = "2026-11-24T"
_EVENTS = "/apis/events.k8s.io/v1/namespaces/team/events"
_WAITING = 'needs cpu 3 and memory 3Gi; queue "nlp" has cpu 2 free of cpu 8; position {} of 2 waiting'


def scene() -> Cluster:
    """Two gangs run in `nlp` for two hours, two wait there, one runs in `vision`, and one lacks pods."""
    whole: tuple[list[JSON], list[JSON], list[JSON]] = ([], [], [])
    parts = (
        gangs(["run-llama-8b", "run-mistral-finetune"], "nlp", state="Running", message='holds cpu 3 of queue "nlp"'),
        gangs(["bert-large"], "nlp", state="WaitingForQuota", message=_WAITING.format(1)),
        gangs(["tokenizer-sweep-with-a-rather-long-name"], "nlp", state="WaitingForQuota", message=_WAITING.format(2)),
        gangs(["run-resnet"], "vision", state="Running", message='holds cpu 3 of queue "vision"'),
        gangs(["detector"], "vision", state="Assembling", message="waiting for its pods: workers 0 of 2"),
    )
    for part in parts:
        for all_of_them, some in zip(whole, part, strict=True):
            all_of_them.extend(some)
    workloads, pods, groups = whole
    _limit_runs(workloads, groups)
    pods = [one for one in pods if not one["metadata"]["name"].startswith("detector-w")]
    for pod in pods:
        if pod["metadata"]["name"].startswith("run"):
            pod["spec"]["nodeName"], pod["status"]["phase"] = "node-0", "Running"
    for group in groups:
        meta = group["metadata"]
        meta["creationTimestamp"] = f"{_DAY}10:00:02Z"
        if meta["name"] == "ray-run-llama-8b-pg":
            meta["annotations"] |= {
                PASSED_SINCE: f"{_DAY}10:03:00Z",
                PASSED_IN: "nlp",
                ADMITTED_AT: f"{_DAY}10:07:30.120000Z",
            }
    queues = [
        queue("root"),
        limited("research", cpu="16", memory="64Gi"),
        limited("nlp", "research", cpu="8", memory="32Gi"),
        limited("vision", "research", cpu="3"),
    ]
    return filled(workloads=workloads, pods=pods, groups=groups, queues=queues)


def _limit_runs(workloads: Iterable[JSON], groups: Iterable[JSON]) -> None:
    """What runs ends in less than two hours, and room is reserved for the first gang that waits."""
    for meta in (one["metadata"] for one in workloads):
        if meta["name"].startswith("run"):
            meta |= {**OF_A_JOB, "annotations": {RUNS_AT_MOST: "2h"}}
    for meta in (one["metadata"] for one in groups):
        if meta["name"].startswith("ray-run"):
            meta["annotations"][ADMITTED_AT] = text_of(time.time() - 600)
        if meta["name"] == "ray-bert-large-pg":
            meta["annotations"] |= {PASSED_SINCE: f"{_DAY}10:08:00Z", PASSED_IN: "nlp"}


def answered(page: Served) -> None:
    """Have the apiserver tell the pods and events of the gang that runs, whoever is asked about."""
    _, pods, _ = gangs(["run-llama-8b"], "nlp")
    for number, pod in enumerate(pods):
        pod["metadata"]["creationTimestamp"] = f"{_DAY}10:00:0{1 + number}Z"
        pod["spec"]["nodeName"] = f"node-{number}"
        pod["status"] = {
            "phase": "Running",
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": f"{_DAY}10:0{minute}:0{number}Z"}
                for kind, minute in (("PodScheduled", 8), ("Ready", 9))
            ],
        }
    told = [
        ("10:00:03", "WaitingForQuota", _WAITING.format(1)),
        ("10:07:30", "Admitted", 'holds cpu 3, memory 3Gi of queue "nlp"'),
        ("10:09:03", "Running", 'holds cpu 3, memory 3Gi of queue "nlp"'),
    ]
    events: list[JSON] = [
        {
            "eventTime": f"{_DAY}{time}.500000Z",
            "reason": reason,
            "note": note,
            "reportingController": "muster.dev/controller",
        }
        for time, reason, note in told
    ]
    page.apiserver.on("LIST", only(_EVENTS, reply(listing(1, *events)), reply(listing(1, *pods))))
    page.apiserver.on("GET", reply({}))


def an_hour(page: Served) -> None:
    """Let the page have seen forty minutes: load that rises, a queue that fills, and a gap."""
    ends = page.state.samples.began
    samples = page.state.samples = Samples(ends - SLOT * 80)
    for slot in range(80):
        at = ends - SLOT * (79 - slot)
        if slot in range(30, 36):
            samples.pass_to(at)
            continue
        levels = {
            "root": Sample(None, 0),
            "research": Sample(min(56, slot), 0),
            "nlp": Sample(38 if slot < SLOTS // 3 else 75, max(0, slot // 20 - 1)),
            "vision": Sample(100 if slot > 20 else 0, 0),
        }
        samples.note(at, levels)


def a_week(page: Served) -> None:
    """Let two queues have held cpus for a week, more on some days."""
    accounts, now = Accounts(), time.time()
    for name, held in (("nlp", (8, 8, 2, 0, 5, 8, 6, 7)), ("vision", (0, 0, 3, 3, 1, 2, 3, 3))):
        for day, cpu in enumerate(reversed(held)):
            end = now - day * 86400.0
            accounts.add(Scope("", name, "team"), end - 86400.0, end, held={"cpu": float(cpu)})
        accounts.add(Scope("", name, "team"), now - 7200.0, now, waited={"cpu": 12.0})
        for wait in (2400.0, 3000.0, 9000.0):
            accounts.add_wait(Scope("", name, "team"), wait, now)
            accounts.add_end(Scope("", name, "team"), "succeeded", now)
    accounts.until = now
    page.state.weeks = weeks(Report.of(accounts, "queue", first_day("7d", now)))


IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
PAGES = {"board": "", "waiting gang": WAITS, "running gang": RUNS, "unknown gang": "gang?namespace=team&name=none"}
REWRITE = bool(os.environ.get("MUSTER_REWRITE"))


@pytest.mark.parametrize("name", PAGES)
async def test_nothing_keeps_anybody_from_reading_at_any_width_light_or_dark(
    name: str, browser: Window, tmp_path: Path
) -> None:
    """axe-core finds nothing, no line is wider than the window, and the browser complains of nothing."""
    found: dict[str, list[str]] = {}

    def look(url: str) -> None:
        for scheme in ("light", "dark"):
            for device, width in WIDTHS.items():
                browser.look(width, scheme)
                browser.open(url)
                found[f"{device} {scheme}"] = [*browser.violations(), *browser.too_wide(), *_unexpected(browser)]
                browser.picture(tmp_path / f"{name.replace(' ', '-')}-{device}-{scheme}.png")
                if REWRITE and (name, device) == ("board", "desktop"):
                    browser.look(width, scheme, height=1440)
                    browser.picture(IMAGES / f"page-{scheme}.png", whole=False)

    async with served(scene()) as page:
        answered(page)
        an_hour(page)
        a_week(page)
        await to_thread(look, page.url(PAGES[name]))
    assert found == {f"{device} {scheme}": [] for scheme in ("light", "dark") for device in WIDTHS}


def _unexpected(browser: Window) -> list[str]:
    """What the browser complains of, but for the status of a page that is not there."""
    return [one for one in browser.said() if "404 (No such gang)" not in one and "404 (Not Found)" not in one]


async def test_the_keyboard_reaches_everything_in_order_and_shows_where_it_is(browser: Window) -> None:
    def walk(url: str) -> None:
        browser.open(url)
        first = browser.tab()
        assert (first["text"], first["seen"]) == ("Skip to the content", True)
        browser.press(Keys.ENTER)
        assert browser.focused()["id"] == "main"
        browser.open(url)
        passed = [browser.tab() for _ in range(_reachable(browser))]
        assert [one for one in passed if not one["seen"] or one["outline"] == "none" or one["width"] < 2] == []
        in_order = browser.run(
            "return [...document.querySelectorAll('a[href], button:not([hidden]), select')]"
            ".map((one) => one.textContent.trim().replace(/\\s+/g, ' '))"
        )
        assert [one["text"] for one in passed] == in_order
        gang = next(place for place, one in enumerate(passed) if one["href"] == WAITS)
        browser.open(url)
        for _ in range(gang + 1):
            browser.tab()
        browser.press(Keys.ENTER)
        browser.wait(lambda: "Timeline" in browser.text())
        assert "RayCluster team/bert-large" in browser.text("h1")

    async with served(scene()) as page:
        answered(page)
        await to_thread(walk, page.url())


def _reachable(browser: Window) -> int:
    return int(browser.run("return document.querySelectorAll('a[href], button:not([hidden]), select').length"))


async def test_a_change_appears_in_place_and_takes_no_focus(browser: Window) -> None:
    """The row that has the focus changes its state; another gang comes before it; then it goes."""

    def begin(url: str) -> None:
        browser.open(url)
        browser.wait(lambda: browser.text("#live").startswith("Live"))
        browser.run("document.querySelector('a[href=\"' + arguments[0] + '\"]').focus()", WAITS)
        browser.run("window.kept = document.activeElement; window.heading = document.querySelector('#waiting')")

    async with served(scene()) as page:
        answered(page)
        await to_thread(begin, page.url())
        await _says(page, "bert-large", "QueueClosed")
        await to_thread(browser.wait, lambda: "QueueClosed" in browser.text())
        assert await to_thread(browser.run, "return window.kept === document.activeElement && kept.isConnected")
        await _comes(page, "aaa")
        await to_thread(browser.wait, lambda: "raycluster/aaa" in browser.text())
        assert (await to_thread(browser.focused))["href"] == WAITS
        assert await to_thread(browser.run, "return window.heading.isConnected")
        assert await to_thread(browser.text, "#live") == "Live: changes appear by themselves."
        await _goes(page, "bert-large")
        await to_thread(browser.wait, lambda: "raycluster/bert-large" not in browser.text())
        assert (await to_thread(browser.focused))["id"] == "main"
        assert _unexpected(browser) == []


async def _says(page: Served, name: str, state: str) -> None:
    groups = page.state.visible.cluster.pod_groups.of("volcano")
    old = next(one for one in groups if one.metadata.name == f"ray-{name}-pg")
    _, _, (new,) = gangs([name], "nlp", **{STATE.removeprefix("muster.dev/"): state})
    groups.apply("modified", made(type(old), new))
    await page.state.refresh()


async def _comes(page: Served, name: str) -> None:
    cluster = page.state.visible.cluster
    (workload,), pods, groups = gangs([name], "nlp", state="Assembling")
    kind = kind_of(workload["apiVersion"], workload["kind"])
    assert kind is not None
    workload_store(cluster, kind).apply("added", made(kind.decoded, workload))
    one = next(iter(cluster.pod_groups.of("volcano")))
    cluster.pod_groups.of("volcano").apply("added", made(type(one), groups[0]))
    pod = next(iter(cluster.pods.of("volcano")))
    for manifest in pods:
        cluster.pods.of("volcano").apply("added", made(type(pod), manifest))
    await page.state.refresh()


async def _goes(page: Served, name: str) -> None:
    cluster, key = page.state.visible.cluster, f"ray-{name}-pg"
    for group in [one for one in cluster.pod_groups if one.metadata.name == key]:
        cluster.pod_groups.of("volcano").apply("deleted", group)
    for pod in [one for one in cluster.pods if one.metadata.labels.get(GANG) == key]:
        cluster.pods.of("volcano").apply("deleted", pod)
    workloads = workload_store(cluster, next(kind for kind in KINDS if kind.kind == "RayCluster"))
    for workload in [one for one in workloads if one.metadata.name == name]:
        workloads.apply("deleted", workload)
    await page.state.refresh()


async def test_a_page_whose_gang_is_gone_says_so_and_keeps_what_was_known(browser: Window) -> None:
    async with served(scene()) as page:
        answered(page)
        await to_thread(browser.open, page.url(WAITS))
        await to_thread(browser.wait, lambda: browser.text("#live").startswith("Live"))
        await _goes(page, "bert-large")
        await to_thread(browser.wait, lambda: "No such gang" in browser.text("#live"))
        assert "WaitingForQuota" in await to_thread(browser.text)


async def test_a_lost_connection_is_told_and_the_page_stays_and_a_pause_is_one(browser: Window) -> None:
    async with served(scene()) as page:
        answered(page)
        await to_thread(browser.open, page.url())
        await to_thread(browser.wait, lambda: browser.text("#live").startswith("Live"))
        await to_thread(browser.run, "document.getElementById('pause').click()")
        assert await to_thread(browser.text, "#live") == "Paused."
        await _says(page, "bert-large", "QueueClosed")
        assert "QueueClosed" not in await to_thread(browser.text)
        await to_thread(browser.run, "document.getElementById('pause').click()")
        await to_thread(browser.wait, lambda: "QueueClosed" in browser.text())
    await to_thread(browser.wait, lambda: browser.text("#live") == "Connection lost; trying again.")
    assert "raycluster/bert-large" in await to_thread(browser.text)


async def test_what_comes_after_a_pause_changes_nothing(browser: Window) -> None:
    """The page had been asked for again when somebody pressed `Pause`."""
    slow = """
        window.real = window.fetch;
        window.fetch = async (...asked) => {
            const text = await (await window.real(...asked)).text();
            await new Promise((comes) => { window.comes = comes; });
            return { ok: true, text: async () => text };
        };"""
    async with served(scene()) as page:
        answered(page)
        await to_thread(browser.open, page.url())
        await to_thread(browser.wait, lambda: browser.text("#live").startswith("Live"))
        await to_thread(browser.run, slow)
        await _says(page, "bert-large", "QueueClosed")
        await to_thread(browser.wait, lambda: browser.run("return typeof window.comes") == "function")
        await to_thread(browser.run, "document.getElementById('pause').click()")
        # What follows from it has happened when the next turn comes.
        await to_thread(browser.run, "comes(); return new Promise((turn) => { setTimeout(turn, 0); });")
        assert await to_thread(browser.text, "#live") == "Paused."
        assert "QueueClosed" not in await to_thread(browser.text)
        await to_thread(browser.run, "window.fetch = window.real; document.getElementById('pause').click()")
        await to_thread(browser.wait, lambda: "QueueClosed" in browser.text())


async def test_without_scripts_it_is_complete(browser: Window) -> None:
    """Every page opens by its link, the form filters, `Refresh` shows news, and nothing is offered that needs one."""

    def walk(url: str) -> None:
        browser.look(1280, scripts=False)
        browser.open(url)
        assert not browser.driver.find_element("id", "pause").is_displayed()
        Select(browser.driver.find_element("name", "queue")).select_by_visible_text("vision")
        browser.driver.find_element("css selector", "form button").click()
        browser.wait(lambda: "queue=vision" in browser.driver.current_url)
        assert ("ray-run-resnet-pg" in browser.driver.page_source, WAITS in browser.driver.page_source) == (True, False)
        browser.driver.find_element("link text", "Show all").click()
        browser.wait(lambda: "ray-bert-large-pg" in browser.driver.page_source)
        browser.driver.find_element("css selector", f'a[href="{WAITS}"]').click()
        browser.wait(lambda: "Timeline" in browser.driver.page_source)

    def again() -> None:
        assert "QueueClosed" not in browser.driver.page_source
        browser.driver.find_element("link text", "Refresh").click()
        browser.wait(lambda: "QueueClosed" in browser.driver.page_source)

    async with served(scene()) as page:
        answered(page)
        await to_thread(walk, page.url())
        await _says(page, "bert-large", "QueueClosed")
        await to_thread(again)
