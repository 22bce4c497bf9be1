"""Names and messages of the cluster are text on the page, whatever they hold."""

from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jinja2 import UndefinedError

from muster.cli.page.board import Bar, Filter, GangRow, Part, QueueRow
from muster.cli.page.charts import Chart, ahead
from muster.cli.page.gang import GangPage, Moment
from muster.cli.page.server import render
from muster.cli.queues.gangs import GangEntry
from muster.cli.ui import rounded
from muster.model.texts import printable
from muster.queueing.ledger import GangKey
from tests.support.cli.page import served
from tests.support.controller.stores import filled
from tests.support.manifests.gangs import gangs, limited

_HOSTILE = (
    "<script>alert(1)</script>",
    '" onmouseover="alert(1)',
    "'><img src=x onerror=alert(1)>",
    "</table></main><h1>",
    "{{ 7 * 7 }}{% raw %}",
    "&lt;b&gt; &amp; &#60;",
    "javascript:alert(1)",
    "\u202egpj.exe \x1b[31m \x00 \u2028",
)


class _Parsed(HTMLParser):
    """The tags with the names of their attributes, in order; the links; and the text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action")]

    def handle_data(self, data: str) -> None:
        self.text += data


def page(word: str) -> _Parsed:
    """The board where every text of the cluster is this one."""
    entry = GangEntry(GangKey(word, word), word, word, word, word, 1, 0.0, 1)
    gang = GangRow(entry, *[word] * 5)
    queue = {
        "name": word,
        "depth": 1,
        "state": word,
        "onHoldBy": None,
        "share": word,
        "byPast": word,
        "gangs": 1,
        "waiting": 1,
    }
    row = QueueRow({**queue, "problems": [word]}, (Bar(word, word, word, 50),))
    several = Part((gang,), 1, 2, 101)
    return _Parsed(
        render(
            "board.html",
            title=word,
            revision=1,
            server=word,
            cluster=word,
            viewer=word,
            reader="you",
            now=0.0,
            troubles=[word],
            namespaces=[word],
            queue_names=[word],
            waiting_total=1,
            others_total=1,
            holding_total=1,
            only=Filter(word, word),
            queues=Part((row,), 1, 1, 1),
            coming={word: ahead(0.0, {"gang": word, "startsBy": None}, [60.0])},
            forecast=0.0,
            charts={word: Chart("M0 0", "M0 0", 1, 1, (word,))},
            watched=0.0,
            weeks={word: Chart("M0 0", "", 1, 1, (word,))},
            shares=True,
            waiting=several,
            holding=several,
            others=several,
            unknown=[word],
            links=lambda param, number: f"?{param}={number}",
        )
    )


def gang_page(word: str) -> _Parsed:
    """The page of a gang where every text of the cluster is this one."""
    some, amount = {"name": word, "namespace": word, "queue": word}, {word: word}
    entry = {
        "onHold": f"{word} {word}",
        "workload": some | {"kind": word},
        "state": word,
        "message": word,
        "gang": {"podGroup": word, "exists": True, "phase": word, "minMember": 1},
        "scheduling": some | {"scheduler": word, "admitter": word, "priorityClassName": word},
        "position": {"position": 1, "waiting": 1},
        "needs": amount,
        "holds": amount,
        "queues": [some | {"limit": amount, "used": amount, "free": amount}],
        "holders": [some | {"claim": amount}],
        "roles": [some | {"requests": amount, "replicas": 1, "minMember": 1, "there": 1, "gated": 1, "bound": 1}],
        "unknown": [word],
    }
    listed = GangEntry(GangKey(word, word), word, word, word, word, 1, 0.0)
    return _Parsed(
        render(
            "gang.html",
            title=word,
            revision=1,
            server=word,
            cluster=word,
            viewer=word,
            reader="you",
            now=0.0,
            troubles=[word],
            key=GangKey(word, word),
            page=GangPage(entry, [(word, word)], listed, word, word, [Moment(0.0, word, word, word)], 1, ()),
            title_of=lambda namespace, name: f"{namespace}/{name}",
            holders=1,
        )
    )


def some_text() -> st.SearchStrategy[str]:
    """Any text, and more often what means something in HTML; no number so large that it is rounded as an amount."""
    texts = st.lists(st.one_of(st.sampled_from([*_HOSTILE, *"<>&\"'{}%/=`"]), st.text())).map("".join)
    return texts.filter(lambda text: bool(text) and text not in ("0", "-", "?") and rounded(text) == text)


PLAIN = page("word")
PLAIN_GANG = gang_page("word")


@given(some_text())
@example("".join(_HOSTILE))
@example("\N{SUPERSCRIPT TWO}" * 9)
def test_no_text_becomes_a_tag_an_attribute_or_another_address(word: str) -> None:
    for shown, plain in ((page(word), PLAIN), (gang_page(word), PLAIN_GANG)):
        assert shown.tags == plain.tags
        assert not [link for link in shown.links if ":" in link or link.startswith("//")]
        assert shown.text.count(printable(word)) >= plain.text.count("word")


@pytest.mark.parametrize("word", _HOSTILE)
def test_an_error_is_text(word: str) -> None:
    def error(text: str) -> _Parsed:
        known = {"revision": 1, "reader": "you"}
        return _Parsed(render("error.html", title=text, server=text, cluster=text, viewer=text, message=text, **known))

    assert error(word).tags == error("word").tags


@given(some_text())
def test_nothing_turns_the_direction_of_a_line_or_breaks_it(word: str) -> None:
    assert [character for character in page(word).text if not character.isprintable()] == [
        character for character in PLAIN.text if not character.isprintable()
    ]


async def test_a_real_answer_has_them_as_text_too() -> None:
    """What the apiserver lets pass as annotations, and in the address."""
    word = "".join(_HOSTILE)
    workloads, pods, groups = gangs(["wait"], state=word, message=word)
    cluster = filled(workloads=workloads, pods=pods, groups=groups, queues=[limited("q", cpu="1")])
    async with served(cluster) as where:
        _, text, _ = await where.get("?queue=%3Cscript%3E&namespace=%22%3E%3Cscript%3E")
        _, found, _ = await where.get("nothing/%3Cscript%3Ealert(1)%3C/script%3E")
        _, all_of_it, _ = await where.get()
    assert "<script>" not in text + found + all_of_it
    assert printable(word) in _Parsed(all_of_it).text


def test_a_page_without_a_value_is_no_page() -> None:
    """A template that asks for what nobody gives it fails, and shows nothing in its place."""
    with pytest.raises(UndefinedError, match="'title' is undefined"):
        render("error.html", revision=1, server="", viewer="", reader="you", message="")
