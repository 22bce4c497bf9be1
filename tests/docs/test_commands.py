"""The commands, options, keys and values that the documents name are those that there are."""

import argparse
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.cli import parser
from muster.model import names
from tests.docs.test_documents import CHECKOUT, DOCUMENTS

(_COMMANDS,) = (one.choices for one in parser()._actions if isinstance(one, argparse._SubParsersAction))
OPTIONS = {name: {word for one in of._actions for word in one.option_strings} for name, of in _COMMANDS.items()}
VALUES = yaml.safe_load((CHECKOUT / "charts/muster/values.yaml").read_text())
SCHEMA = json.loads((CHECKOUT / "charts/muster/values.schema.json").read_text())
# As a user types them, in a span of code or at the start of a line of a block, up to what the output is piped to.
_TYPED = re.compile(r"(?:`|^(?:\$ )?)(?:kubectl )?(?:\S+/)?muster ([a-z]+)((?:\\\n|[^`\n|;#])*)", re.MULTILINE)
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")


def words(commands: str) -> list[str]:
    return re.findall(r"`([a-z]+)`", commands)


def test_every_option_of_a_command_that_is_shown_exists() -> None:
    shown = {
        (name, option)
        for path in DOCUMENTS
        for name, rest in _TYPED.findall(path.read_text())
        if name in OPTIONS
        for option in _OPTION.findall(rest)
    }
    assert {("plan", "--strict"), ("release", "--all"), ("withdraw", "--name")} <= shown
    assert sorted((name, option) for name, option in shown if option not in OPTIONS[name]) == []


def test_every_option_and_every_argument_has_its_help() -> None:
    """In `--help`, on the man pages and in docs/cli.md."""
    mute = [(name, one.dest) for name, of in _COMMANDS.items() for one in of._actions if not one.help]
    assert mute == []


def _of_commands(text: str) -> list[tuple[str, str]]:
    """The options that a page says to be of commands, each with the command."""
    found = re.findall(r"`(--[\w-]+)`\s+of\s+((?:`[a-z]+`(?:,\s+|\s+and\s+)?)+)", text)
    return [(option, name) for option, commands in found for name in words(commands)]


def test_every_option_that_is_said_to_be_of_a_command_is() -> None:
    """As `--settle` of `withdraw`, or `--output` of `explain`, `queues` and `audit`."""
    example = "`--output` of `explain`, `queues` and `audit`"
    assert _of_commands(example) == [("--output", "explain"), ("--output", "queues"), ("--output", "audit")]
    said = [one for path in DOCUMENTS for one in _of_commands(path.read_text())]
    assert [(option, name) for option, name in said if option not in OPTIONS.get(name, ())] == []


def test_every_option_with_which_a_page_of_the_command_line_deals_exists() -> None:
    page = (CHECKOUT / "docs/cli.md").read_text()
    mentioned = set(re.findall(r"`(--[a-z][\w-]*)", page))
    others = {"--version", "--batch-scheduler", "--validation-reason"}
    assert sorted(mentioned - others - set().union(*OPTIONS.values())) == []


@pytest.fixture(scope="module")
def keys() -> set[str]:
    """Labels, annotations, gates, and what the chart and the webhook write."""
    known = {value for value in vars(names).values() if isinstance(value, str)}
    sources = [
        *CHECKOUT.glob("charts/muster/templates/*"),
        *CHECKOUT.glob("webhook/**/*.py"),
        *CHECKOUT.glob("muster/**/*.py"),
    ]
    texts = (path.read_text() for path in sources)
    return known | {key for text in texts for key in re.findall(r"(?<![\w.])muster\.dev/[a-z][\w-]*", text)}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_key_of_musters_exists(keys: set[str], document: Path) -> None:
    named = set(re.findall(r"(?<![\w.])muster\.dev/[a-z][\w-]*", document.read_text()))
    assert sorted(named - keys) == []


def _is_value(path: str) -> bool:
    """Whether the chart has the value; below an open map any name will do."""
    schema, value = SCHEMA, VALUES
    for key in re.sub(r"\[\d+\]", "", path).split("."):
        while "$ref" in schema:
            schema = _resolved(schema["$ref"])
        if isinstance(value, dict) and key in value:
            schema, value = schema.get("properties", {}).get(key, {}), value[key]
        elif key in schema.get("properties", {}):
            schema, value = schema["properties"][key], None
        else:
            return bool(schema) and schema is not SCHEMA and schema.get("additionalProperties") is not False
    return True


def _resolved(reference: str) -> dict[str, Any]:
    found: dict[str, Any] = SCHEMA
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found


def test_every_value_that_a_command_sets_exists() -> None:
    setting = re.compile(r"--set(?:-json|-string|-file)?[ =]'?([A-Za-z][\w.\[\]]*)=")
    paths = {path for document in DOCUMENTS for path in setting.findall(document.read_text())}
    assert len(paths) > 3
    assert sorted(path for path in paths if not _is_value(path)) == []
    assert not _is_value("webhook.replica")
