"""What the page shows, and that nobody but its user reads it."""

import html
import re
import socket
from contextlib import suppress

import pytest
from aiohttp import web

from muster.cli.page.command import loopback
from muster.cli.page.guard import HEADERS, Door, refusal
from muster.cluster.cluster import Cluster
from muster.kube.errors import ApiError
from tests.support.cases import cases
from tests.support.cli.page import SECRET, served
from tests.support.controller.stores import filled
from tests.support.examples import examples
from tests.support.faults.apiserver import eventually, failure, reply
from tests.support.manifests.gangs import gangs, limited
from tests.support.manifests.observed import queue

HOST = {"Host": "127.0.0.1:1234"}


def text_of(page: str) -> str:
    """What a reader sees, in single blanks."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


def cluster(waiting: int = 2) -> Cluster:
    """A queue of 6 cpu in which one gang runs and others wait, all of 3 cpu."""
    workloads, pods, groups = gangs(["run-0", *(f"wait-{number:04}" for number in range(waiting))], state="Told")
    return filled(workloads=workloads, pods=pods, groups=groups, queues=[queue("root"), limited("q", cpu="5")])


async def test_queues_waiting_and_running_gangs_are_shown_with_numbers() -> None:
    async with served(cluster()) as page:
        status, text, _ = await page.get()
    assert status == 200
    seen = text_of(text)
    assert "2 gangs wait, 0 cannot start yet, 1 runs. Waiting (2) Not queued (0) Queues (2) Running (1)" in seen
    assert "Level 2: q 60% of cpu, 2 wait Open 1 2 cpu 3 / 5 60%" in seen
    assert re.search(r"q 1 of 2 team/ raycluster/ wait-0000 Told \d+d 0 cpu 3, memory 3Gi cpu 1 -", seen)
    assert "q 2 of 2 team/ raycluster/ wait-0001" in seen
    assert re.search(r"q team/ raycluster/ run-0 Told \d+d 0 cpu 3, memory 3Gi", seen)
    assert seen.index("By queue") < seen.index("Each queue"), "gangs that wait come first"


async def test_what_holds_nothing_and_does_not_wait_is_not_in_line() -> None:
    """Its pods are not all there."""
    workloads, pods, groups = gangs(["wait"], state="Assembling", message="waiting for its pods: workers 0 of 2")
    async with served(filled(workloads=workloads, pods=pods[:1], groups=groups, queues=[queue()])) as page:
        _, text, _ = await page.get()
    assert "0 gangs wait, 1 cannot start yet, 0 run." in text_of(text)
    assert re.search(r"q team/ raycluster/ wait Assembling \d+d 0 waiting for its pods: workers 0 of 2", text_of(text))


async def test_thousands_of_gangs_are_pages_and_a_count() -> None:
    """A page for a hundred, however many there are."""
    count = 100 * examples(48)
    async with served(cluster(count)) as page:
        _, first, _ = await page.get()
        await eventually(lambda: page.state.starts)
        _, last, _ = await page.get(f"?waiting={count // 100}")
        _, beyond, _ = await page.get("?waiting=999999")
        _, one, _ = await page.get("?namespace=team&queue=q&waiting=2")
    assert len(first) < 150_000
    assert f"Waiting ({count})" in text_of(first)
    assert f"Page 1 of {count // 100}, {count} rows" in text_of(first)
    assert f"q {count} of {count}" in text_of(last)
    # All below the time of the page, which goes on between two answers.
    assert text_of(beyond).partition("UTC")[2] == text_of(last).partition("UTC")[2]
    assert 'href="?namespace=team&amp;queue=q&amp;waiting=3"' in one


async def test_only_gangs_of_a_queue_and_a_namespace() -> None:
    async with served(cluster()) as page:
        seen = [text_of((await page.get(query))[1]) for query in ("?queue=q", "?queue=other", "?namespace=none")]
    assert ["Waiting (2)" in one for one in seen] == [True, False, False]
    assert ["Queues (2)" in one for one in seen] == [True, True, True]


async def test_what_may_not_be_read_is_told() -> None:
    async with served(cluster(), whole=False) as page:
        page.state.visible.note("cannot list nodes")
        _, text, _ = await page.get()
    assert "cpu ? / 5" in text_of(text)
    assert "cannot list nodes" in text_of(text)


async def test_an_apiserver_that_is_away_is_told_with_what_was_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muster.cli.page.state._ASK", 0.01)
    async with served(cluster()) as page:
        page.apiserver.on("GET", failure(503, "ServiceUnavailable"))
        await eventually(lambda: page.state.troubles)
        _, away, _ = await page.get()
        page.apiserver.on("GET", reply({}))
        await eventually(lambda: not page.state.troubles)
        _, back, _ = await page.get()
    assert "May be out of date:" in text_of(away)
    assert "ServiceUnavailable" in away
    assert "Waiting (2)" in text_of(away)
    assert "May be out of date:" not in text_of(back)


@cases(
    "error, status, words",
    ("refused", ApiError(403, "Forbidden", "no <b>"), 502, "no &lt;b&gt;"),
    ("late", TimeoutError(), 504, "takes too long"),
    ("a mistake of ours", ValueError("inner"), 500, "internal error"),
    ("not there", web.HTTPNotFound(text="no such gang"), 404, "no such gang"),
)
async def test_every_error_is_a_page_that_says_what_happened(
    error: Exception, status: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    async with served(cluster()) as page:
        monkeypatch.setattr(page.state.board, "waiting", fails)
        code, text, headers = await page.get()
    assert (code, words in text) == (status, True)
    assert "<main" in text
    assert "inner" not in text
    assert headers["Content-Security-Policy"] == HEADERS["Content-Security-Policy"]


async def test_every_answer_forbids_what_is_from_elsewhere_or_inline() -> None:
    async with served(cluster()) as page:
        for path in ("", "page.css", "icon.svg", "nowhere", "gang", "gang?namespace=team&name=ray-run-0-pg"):
            _, text, headers = await page.get(path)
            assert {name: headers.get(name) for name in HEADERS} == HEADERS
            text = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
            assert not re.search(r"\bstyle=|<style|<script(?! src=\"page\.js\")|\bon[a-z]+=|https?://(?!127)", text)


async def test_it_only_reads() -> None:
    async with served(cluster()) as page:
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            async with page.session.request(method, page.url()) as answer:
                assert answer.status == 405
        assert page.apiserver.requests == []


async def test_both_loopback_addresses_and_no_other() -> None:
    async with served(cluster()) as page:
        for host in ("127.0.0.1", "localhost", "[::1]"):
            async with page.session.get(page.url(host=host)) as answer:
                assert answer.status == 200
        listening = [line.split() for name in ("tcp", "tcp6") for line in open_lines(name)]
    port = f"{page.port:04X}"
    bound = {one[1].rpartition(":")[0] for one in listening if one[1].endswith(f":{port}") and one[3] == "0A"}
    assert bound == {"0100007F", "00000000000000000000000001000000"}


def open_lines(name: str) -> list[str]:
    with open(f"/proc/net/{name}", encoding="ascii") as file:  # noqa: PTH123 - no file of ours
        return file.readlines()[1:]


def test_a_taken_port_is_told_with_its_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1 port {port}: Address already in use"):
            loopback(port)


def test_no_port_is_served_whose_other_half_is_somebody_elses() -> None:
    """A browser that asks for `localhost` could meet them."""
    with suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"cannot listen on ::1 port {port}"):
            loopback(port)


@cases(
    "headers, status",
    ("no host", {}, 421),
    ("a name that was turned to loopback", {"Host": "evil.example"}, 421),
    ("the same with our port", {"Host": "evil.example:1234"}, 421),
    ("a name that begins like ours", {"Host": "127.0.0.1.evil.example"}, 421),
    ("a name behind ours", {"Host": "localhost:1234@evil.example"}, 421),
    ("another address of this machine", {"Host": "0.0.0.0:1234"}, 421),
    ("another site", HOST | {"Origin": "http://evil.example"}, 403),
    ("another port", HOST | {"Origin": "http://127.0.0.1:80"}, 403),
    ("another scheme", HOST | {"Origin": "https://127.0.0.1:1234"}, 403),
    ("a sandboxed frame", HOST | {"Origin": "null"}, 403),
    ("an image elsewhere", HOST | {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
    ("a script of localhost", HOST | {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}, 403),
    ("a link", HOST | {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, None),
    ("itself", HOST | {"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1:1234"}, None),
    ("another port, as where ssh forwards it", {"Host": "localhost:9"}, None),
    ("IPv6 without a port", {"Host": "[::1]"}, None),
)
def test_no_other_site_asks(headers: dict[str, str], status: int | None) -> None:
    refused = refusal(headers, Door(SECRET), SECRET)
    assert (refused.status if refused else None) == status


async def test_no_other_account_of_the_machine_reads_it() -> None:
    async with served(cluster()) as page:
        for path in ("/", "/favicon.ico", "/wrong/", f"/{SECRET[:-1]}/", "/wrong/page.css", "/é/", f"//{SECRET}/"):
            async with page.session.get(f"http://127.0.0.1:{page.port}{path}") as answer:
                assert answer.status == 404
                assert "ray-" not in await answer.text()


async def test_the_guard_stands_before_every_address() -> None:
    async with served(cluster()) as page:
        for path in ("", "gang?namespace=team&name=ray-run-0-pg", "page.css", "nowhere"):
            status, text, _ = await page.get(path, Host="evil.example")
            assert (status, "ray-" in text) == (421, False)
