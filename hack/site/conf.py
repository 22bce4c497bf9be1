"""Sphinx' configuration of the site; `python -m hack.site` runs it.

The documents are read where they are: their links are the same on GitHub and on the site. Nothing is loaded from
another host: the theme has no fonts of its own, and mermaid, which draws the diagrams, is a file of the site.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

from hack.site.navigation import toctrees

_CHECKOUT = Path(__file__).parents[2]
_INDEX = "docs/index"
# Of files that are no documents the site shows the place in the repository.
_OTHER = re.compile(r"(?<=\])\((?!https?:|#)([^)\s#]+)(?:#[^)]*)?\)")

project = "muster"
author = "the authors of muster"
(version,) = re.findall(r'^__version__ = "(.+)"$', (_CHECKOUT / "muster/__init__.py").read_text(), re.MULTILINE)
release = version
extensions = ["myst_parser"]
root_doc = _INDEX
include_patterns = ["docs/*.md", "charts/muster/README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
# Folders that are not read: they may hold thousands of files.
exclude_patterns = [".*", "dist", "build", "requirements", "tests", "muster", "webhook", "controller"]

# As GitHub names headings, down to the fourth level.
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
# A link to a heading that is not there is a warning, and a warning is an error.
nitpicky = True

html_theme = "furo"
html_title = f"muster {version}"
html_static_path = [os.environ["MUSTER_SITE_STATIC"]]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
# So that the same documents give the same pages.
html_last_updated_fmt = None
_MONOSPACE = {"font-stack--monospace": 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace'}
html_theme_options = {"footer_icons": [], "top_of_page_buttons": [], "light_css_variables": _MONOSPACE}


class Mermaid(Directive):  # type: ignore[misc]
    """A diagram: its text stands in the page, and the browser draws it; without scripts the text can be read."""

    has_content = True

    def run(self) -> Sequence[nodes.Node]:
        """The text as one element, and a mark on the page that it needs the script."""
        text = nodes.literal_block("", "\n".join(self.content), classes=["mermaid-source"])
        text["language"] = "text"
        return [nodes.container("", text, classes=["diagram"])]


def _index(_app: Sphinx, name: str, source: list[str]) -> None:
    if name == _INDEX:
        source[0] = toctrees(source[0])


def _links(app: Sphinx, name: str, source: list[str]) -> None:
    """Links to files that are no pages become names in the repository; one that leads nowhere stays, and fails."""
    folder = (_CHECKOUT / name).parent

    def instead(link: re.Match[str]) -> str:
        target = (folder / link[1]).resolve()
        if not target.exists() or target.suffix in {".png", ".svg"}:
            return link[0]
        path = target.relative_to(_CHECKOUT)
        if path.with_suffix("").as_posix() in app.env.found_docs:
            return link[0]
        return f" (`{path}`)"

    source[0] = _OTHER.sub(instead, source[0])


def _scripts(app: Sphinx, _name: str, _template: str, _context: dict[str, Any], tree: nodes.document | None) -> None:
    """Only pages with a diagram load what draws it."""
    if tree is not None and any("diagram" in one["classes"] for one in tree.findall(nodes.container)):
        app.add_js_file("mermaid.min.js")
        app.add_js_file("diagrams.js")


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_directive("mermaid", Mermaid)
    app.connect("source-read", _links)
    app.connect("source-read", _index)
    app.connect("html-page-context", _scripts)
