"""The pages of reference: metrics and commands are written from the code; docs/names.md has every name of the code."""

import os
import re

import pytest

from muster.model import names
from tests.docs.test_documents import CHECKOUT
from tests.support.pages import commands, metrics


def _commands(_: str) -> str:
    return commands.page()


_PAGES = {"observability": metrics.page, "commands": _commands}


@pytest.mark.parametrize("name", _PAGES)
def test_the_page_is_what_the_code_says(name: str) -> None:
    file = CHECKOUT / "docs" / f"{name}.md"
    page = _PAGES[name](file.read_text())
    if os.environ.get("MUSTER_REWRITE"):
        file.write_text(page)
    assert file.read_text() == page, f"docs/{name}.md is out of date: MUSTER_REWRITE=1 pytest {__file__} writes it"


def test_every_name_has_its_row() -> None:
    """And each row of docs/names.md is of a label, annotation or gate of the code."""
    rows = re.findall(r"^\| `(.+?)` \|", (CHECKOUT / "docs/names.md").read_text(), re.MULTILINE)
    known = {text for name, text in vars(names).items() if name.isupper() and isinstance(text, str) and "/" in text}
    assert set(rows) == known
