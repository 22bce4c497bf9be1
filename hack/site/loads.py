"""The files that a browser loads to show a page: none may come from another host."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

# By element, the attributes whose address is fetched when the page is shown; `a` waits for a click.
_FETCHES = {
    "script": ("src",),
    "link": ("href",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "object": ("data",),
    "embed": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "image": ("href", "xlink:href"),
    "use": ("href", "xlink:href"),
}
# Of a link these name a page, and fetch nothing.
_NAMES = frozenset({"canonical", "next", "prev", "author", "license", "alternate"})
_OF_STYLES = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and (given.get("rel") or "") in _NAMES:
            return
        self.found += [address for name in _FETCHES.get(tag, ()) if (address := given.get(name))]
        self.found += _styles(given.get("style") or "")


def loaded(page: str) -> list[str]:
    """The addresses that the HTML of a page has a browser fetch, its styles included."""
    reader = _Page()
    reader.feed(page)
    styles = re.findall(r"<style[^>]*>(.*?)</style>", page, re.DOTALL)
    return [*reader.found, *(address for style in styles for address in _styles(style))]


def foreign(site: Path) -> list[str]:
    """A line for each address of another host that a page, a style sheet or a drawing of the site fetches."""
    return [f"{file.relative_to(site)}: loads {address}" for file, address in _of(site) if _is_elsewhere(address)]


def _of(site: Path) -> Iterator[tuple[Path, str]]:
    for file in sorted(site.rglob("*")):
        if file.suffix in {".html", ".svg"}:
            yield from ((file, address) for address in loaded(file.read_text()))
        elif file.suffix == ".css":
            yield from ((file, address) for address in _styles(file.read_text()))


def _styles(text: str) -> list[str]:
    return [one or other for one, other in _OF_STYLES.findall(text)]


def _is_elsewhere(address: str) -> bool:
    return bool(re.match(r"\s*(?:[a-z][a-z0-9+.-]*:)?//", address, re.IGNORECASE))
