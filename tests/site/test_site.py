"""The site as `make docs` builds it: complete, without anything of another host, and its diagrams are drawn."""

import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hack.site.loads import foreign, loaded
from tests.support.cli.browser import WIDTHS, Window, window

_CHECKOUT = Path(__file__).parents[2]
_SITE = _CHECKOUT / "dist" / "site"
_DIAGRAMS = {path.stem: path.read_text().count("```mermaid") for path in (_CHECKOUT / "docs").glob("*.md")}


class _Quiet(SimpleHTTPRequestHandler):
    """Says nothing of what it serves."""

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The site on loopback."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(_SITE)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    with window(tmp_path_factory.mktemp("browser")) as one:
        yield one


def test_every_document_is_a_page() -> None:
    missing = [
        path.stem for path in (_CHECKOUT / "docs").glob("*.md") if not (_SITE / f"docs/{path.stem}.html").exists()
    ]
    assert missing == []


def test_nothing_comes_from_another_host() -> None:
    assert loaded((_SITE / "docs/index.html").read_text()), "no style sheet was found"
    assert foreign(_SITE) == []


def test_every_link_and_anchor_leads_somewhere() -> None:
    """In the HTML itself, whatever the generator checked: pages, pictures, headings."""
    texts = {path: path.read_text() for path in _SITE.rglob("*.html")}
    anchors = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in texts.items()}
    dead = []
    for path, text in texts.items():
        for target in re.findall(r'(?:href|src)="(?!https?:|mailto:|data:)([^"]*)"', text):
            file, _, anchor = target.partition("#")
            found = (path.parent / file.partition("?")[0]).resolve() if file else path
            known = found.exists() and (not anchor or found.suffix != ".html" or anchor in anchors[found])
            if not known:
                dead.append(f"{path.relative_to(_SITE)}: {target}")
    assert dead == []


def test_the_first_page_leads_to_the_documents(browser: Window, address: str) -> None:
    browser.open(f"{address}/index.html")
    browser.wait(lambda: "Ten minutes with muster" in browser.text())
    assert browser.driver.current_url == f"{address}/docs/index.html"


@pytest.mark.parametrize("page", [page for page, count in _DIAGRAMS.items() if count])
def test_the_diagrams_are_drawn_without_a_network(browser: Window, address: str, page: str) -> None:
    """The browser of the tests reaches no host but loopback."""
    browser.look(WIDTHS["desktop"])
    browser.open(f"{address}/docs/{page}.html")
    browser.wait(lambda: browser.run("return document.querySelectorAll('.diagram svg').length") == _DIAGRAMS[page])
    assert [line for line in browser.said() if "favicon" not in line] == []


@pytest.mark.parametrize("page", ["index", "tutorial", "how-it-works", "names", "gangs"])
@pytest.mark.parametrize(
    "width",
    # The narrowest and the widest are the two layouts; between them one of both is shown.
    [pytest.param(width, marks=[pytest.mark.long] if name == "tablet" else []) for name, width in WIDTHS.items()],
)
def test_a_page_fits_a_window_and_everybody_can_read_it(browser: Window, address: str, page: str, width: int) -> None:
    """axe-core finds nothing, light or dark."""
    for scheme in ("light", "dark"):
        browser.look(width, scheme)
        browser.open(f"{address}/docs/{page}.html")
        browser.wait(lambda: browser.run("return document.querySelectorAll('.diagram svg').length") == _DIAGRAMS[page])
        assert browser.too_wide() == []
        assert browser.violations() == []
