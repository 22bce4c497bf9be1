"""What people see of the page, and do with it."""

import os
from asyncio import to_thread
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from muster.model.names import GANG, STATE
from muster.workloads import KINDS, kind_of
from tests.support.cli.browser import WIDTHS, Window
from tests.support.cli.page import Served, served
from tests.support.cli.page_scene import RUNS, WAITS, an_hour, answered, scene
from tests.support.controller.stores import workload_store
from tests.support.manifests.gangs import gangs
from tests.support.manifests.observed import made

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
                    browser.look(width, scheme, height=900)
                    browser.picture(IMAGES / f"page-{scheme}.png", whole=False)

    async with served(scene()) as page:
        answered(page)
        an_hour(page)
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
            "return [...document.querySelectorAll('a[href], button:not([hidden]), input')]"
            ".map((one) => one.textContent.trim().replace(/\\s+/g, ' '))"
        )
        assert [one["text"] for one in passed] == in_order
        gang = next(place for place, one in enumerate(passed) if one["href"] == WAITS)
        browser.open(url)
        for _ in range(gang + 1):
            browser.tab()
        browser.press(Keys.ENTER)
        browser.wait(lambda: "Timeline" in browser.text())
        assert "Gang team/ray-bert-large-pg" in browser.text("h1")

    async with served(scene()) as page:
        answered(page)
        await to_thread(walk, page.url())


def _reachable(browser: Window) -> int:
    return int(browser.run("return document.querySelectorAll('a[href], button:not([hidden]), input').length"))


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
        await to_thread(browser.wait, lambda: "ray-aaa-pg" in browser.text())
        assert (await to_thread(browser.focused))["href"] == WAITS
        assert await to_thread(browser.run, "return window.heading.isConnected")
        assert await to_thread(browser.text, "#live") == "Live: changes appear by themselves."
        await _goes(page, "bert-large")
        await to_thread(browser.wait, lambda: "ray-bert-large-pg" not in browser.text())
        assert (await to_thread(browser.focused))["id"] == "main"
        assert _unexpected(browser) == []


async def _says(page: Served, name: str, state: str) -> None:
    groups = page.state.picture.cluster.pod_groups.of("volcano")
    old = next(one for one in groups.values() if one.metadata.name == f"ray-{name}-pg")
    _, _, (new,) = gangs([name], "nlp", **{STATE.removeprefix("muster.dev/"): state})
    groups.apply("modified", made(type(old), new))
    await page.state.refresh()


async def _comes(page: Served, name: str) -> None:
    cluster = page.state.picture.cluster
    (workload,), pods, groups = gangs([name], "nlp", state="Assembling")
    kind = kind_of(workload["apiVersion"], workload["kind"])
    assert kind is not None
    workload_store(cluster, kind).apply("added", made(kind.decoded, workload))
    one = next(iter(cluster.pod_groups.of("volcano").values()))
    cluster.pod_groups.of("volcano").apply("added", made(type(one), groups[0]))
    pod = next(iter(cluster.pods.of("volcano").values()))
    for manifest in pods:
        cluster.pods.of("volcano").apply("added", made(type(pod), manifest))
    await page.state.refresh()


async def _goes(page: Served, name: str) -> None:
    cluster, key = page.state.picture.cluster, f"ray-{name}-pg"
    for group in [one for one in cluster.pod_groups.values() if one.metadata.name == key]:
        cluster.pod_groups.of("volcano").apply("deleted", group)
    for pod in [one for one in cluster.pods.values() if one.metadata.labels.get(GANG) == key]:
        cluster.pods.of("volcano").apply("deleted", pod)
    workloads = workload_store(cluster, next(kind for kind in KINDS if kind.kind == "RayCluster"))
    for workload in [one for one in workloads.values() if one.metadata.name == name]:
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
    assert "ray-bert-large-pg" in await to_thread(browser.text)


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
        browser.driver.find_element("name", "queue").send_keys("vision" + Keys.ENTER)
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
