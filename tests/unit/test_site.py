"""The menu of the site, and what its pages may load."""

from pathlib import Path

from hack.site.loads import foreign, loaded
from hack.site.navigation import parts, toctrees
from tests.support.cases import cases

_INDEX = """# Title

[elsewhere](a.md), which is no entry.

## One

- [A](a.md): the first
- [A, in the middle](a.md#part)

## Empty

words

## Two

- [B](../b.md)
- [A again](a.md)
"""


def test_a_list_of_pages_is_a_part_of_the_menu() -> None:
    assert parts(_INDEX) == {"One": {"a.md": "A"}, "Two": {"../b.md": "B", "a.md": "A again"}}


def test_a_page_is_in_the_menu_once_where_it_comes_first() -> None:
    said = toctrees(_INDEX)
    assert said.startswith(_INDEX)
    menu = said.removeprefix(_INDEX)
    assert menu.count("a.md") == 1
    assert (
        menu.index(":caption: One") < menu.index("A <a.md>") < menu.index(":caption: Two") < menu.index("B <../b.md>")
    )


@cases(
    "page",
    ("script", '<script src="//host/x.js"></script>'),
    ("style sheet", '<link rel="stylesheet" href="https://host/x.css">'),
    ("preconnect", '<link rel="preconnect" href="https://host">'),
    ("picture", '<img src="HTTPS://host/x.png">'),
    ("style of an element", '<p style="background: url(https://host/x.png)">'),
    ("import", "<style>@import 'https://host/x.css';</style>"),
    ("picture in a drawing", '<svg><image xlink:href="http://host/x.png"/></svg>'),
)
def test_what_a_page_loads_from_another_host_is_found(tmp_path: Path, page: str) -> None:
    (tmp_path / "page.html").write_text(page)
    (line,) = foreign(tmp_path)
    assert line.startswith("page.html: loads ")


def test_style_sheets_and_drawings_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@font-face { src: url('https://host/font.woff2') }")
    (tmp_path / "b.svg").write_text('<svg><style>@import "https://host/c.css";</style></svg>')
    assert foreign(tmp_path) == ["a.css: loads https://host/font.woff2", "b.svg: loads https://host/c.css"]


def test_links_and_the_sites_own_files_are_no_fault(tmp_path: Path) -> None:
    page = '<a href="https://host/">x</a><link rel="next" href="https://host/n"><script src="_static/x.js"></script>'
    (tmp_path / "page.html").write_text(page)
    assert loaded(page) == ["_static/x.js"]
    assert foreign(tmp_path) == []


def test_every_document_is_in_the_menu() -> None:
    """And nothing in it that is not there."""
    docs = Path(__file__).parents[2] / "docs"
    listed = {(docs / page).resolve() for pages in parts((docs / "index.md").read_text()).values() for page in pages}
    assert {path for path in listed if not path.exists()} == set()
    assert {path.name for path in docs.glob("*.md") if path.resolve() not in listed} == {"index.md"}
