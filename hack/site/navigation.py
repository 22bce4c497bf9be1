"""The menu of the site, read from the lists of docs/index.md, which GitHub shows as they are.

Each heading with a list of pages below it is a part of the menu. A link into the middle of a page stands in the list
for readers, and adds nothing to the menu: its page has its place already.
"""

import re

_LINE = re.compile(r"^- \[([^\]]+)\]\(([^)\s#]+\.md)\)", re.MULTILINE)


def parts(index: str) -> dict[str, dict[str, str]]:
    """The title in the menu of each page, by its path as the index has it, by the heading."""
    _, *sections = re.split(r"^## ", index, flags=re.MULTILINE)
    found = {
        section.partition("\n")[0]: {path: title for title, path in _LINE.findall(section)} for section in sections
    }
    return {heading: pages for heading, pages in found.items() if pages}


def toctrees(index: str) -> str:
    """The index with the menu behind it, in the words of Sphinx; a page that two parts name is in the first one."""
    seen: set[str] = set()
    menu = []
    for heading, pages in parts(index).items():
        own = [f"{title} <{path}>" for path, title in pages.items() if path not in seen]
        seen |= pages.keys()
        menu.append("\n".join(["```{toctree}", ":hidden:", f":caption: {heading}", "", *own, "```", ""]))
    return "\n".join([index, *menu])
