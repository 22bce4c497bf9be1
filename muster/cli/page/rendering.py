"""Turns values into the HTML of the page. All that comes from the cluster is text: it is escaped, and on one line."""

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from muster.cli.ui import age, amounts, counted, lasting
from muster.model.gang_states import GangState
from muster.model.texts import printable

_HERE = Path(__file__).parent
STATIC = _HERE / "static"
"""The folder of the files that the page loads in addition to its HTML."""


def render(template: str, **values: object) -> str:
    """The HTML of a template of `templates/`."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    environment = Environment(
        # For every file, independent of its name.
        autoescape=True,
        loader=FileSystemLoader(_HERE / "templates"),
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["known_states"] = frozenset(map(str, GangState))
    environment.filters.update(
        age=age,
        amounts=amounts,
        counted=counted,
        lasting=lasting,
        moment=_moment,
        query=_query,
    )
    return environment


def _finalized(value: object) -> object:
    """The text of an expression of a template, without control characters or marks that turn its direction."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _moment(seconds: float) -> str:
    """A moment in UTC, for people: `2026-11-24 14:03:22`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _query(text: str) -> str:
    """Text as a value in the query of a link."""
    return quote(text, safe="")
