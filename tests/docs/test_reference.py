"""The pages of reference: metrics and options are written from the code; docs/names.md has every name of the code."""

import os
import re

from muster.model import names
from tests.docs.test_documents import CHECKOUT
from tests.support.pages import commands, metrics


def _is_written(name: str, expected: str) -> None:
    """Compare a page with the expected text; `MUSTER_REWRITE=1` writes it."""
    file = CHECKOUT / "docs" / name
    if os.environ.get("MUSTER_REWRITE"):
        file.write_text(expected)
    assert file.read_text() == expected, f"docs/{name} is out of date: MUSTER_REWRITE=1 pytest {__file__} writes it"


def test_the_page_of_metrics_is_what_the_code_says() -> None:
    _is_written("observability.md", metrics.page((CHECKOUT / "docs/observability.md").read_text()))


def test_every_option_is_on_the_page_of_the_commands() -> None:
    """In a sentence, or in the table at its end."""
    before, _, rest = (CHECKOUT / "docs/cli.md").read_text().partition(commands.BEGIN)
    _, _, after = rest.partition(commands.END)
    _is_written("cli.md", before + commands.BEGIN + commands.options(before) + commands.END + after)


def test_every_name_has_its_row() -> None:
    """And each row of docs/names.md is of a label, annotation or gate of the code."""
    cells = re.findall(r"^\| (`.+?`) \|", (CHECKOUT / "docs/names.md").read_text(), re.MULTILINE)
    rows = [name for cell in cells for name in re.findall(r"`(.+?)`", cell)]
    known = {text for name, text in vars(names).items() if name.isupper() and isinstance(text, str) and "/" in text}
    assert set(rows) == known
