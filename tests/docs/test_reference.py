"""The pages of reference that are written from the code: names, metrics, commands."""

import os

import pytest

from muster.model import names
from tests.docs.test_documents import CHECKOUT
from tests.support.pages import commands, keys, metrics

_PAGES = {"names": keys.page, "metrics": metrics.page, "commands": commands.page}
_NAMES = {
    name for name in vars(names) if name.isupper() and isinstance(text := getattr(names, name), str) and "/" in text
}


@pytest.mark.parametrize("name", _PAGES)
def test_the_page_is_what_the_code_says(name: str) -> None:
    file, page = CHECKOUT / "docs" / f"{name}.md", _PAGES[name]()
    if os.environ.get("MUSTER_REWRITE"):
        file.write_text(page)
    assert file.read_text() == page, f"docs/{name}.md is out of date: MUSTER_REWRITE=1 pytest {__file__} writes it"


def test_every_name_has_its_row() -> None:
    """And each row says something of a name that there is."""
    described = {key.name for keys_of in keys.KEYS.values() for key in keys_of}
    assert described == _NAMES
