"""Every log line names its event, and docs/observability.md lists all events."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_LEVELS = ("debug", "info", "warning", "error", "exception", "log")
_NAME = re.compile(r"[a-z_]+\.[a-z_]+")
_ROW = re.compile(r"^- `([^`]+)` \(([a-z, ]+)\): (.+)$", re.MULTILINE)


@cache
def _calls() -> list[tuple[str, int, str, str]]:
    """File, line, level and event of every call of a logger; "" where it names none."""
    found = []
    for folder in ("muster", "webhook", "controller"):
        for path in sorted((_ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                    continue
                of_logger = isinstance(node.func.value, ast.Name) and node.func.value.id == "logger"
                if of_logger and node.func.attr in _LEVELS:
                    found.append((str(path.relative_to(_ROOT)), node.lineno, node.func.attr, _event(node)))
    return found


def _event(call: ast.Call) -> str:
    for keyword in call.keywords:
        if keyword.arg == "extra" and isinstance(keyword.value, ast.Dict):
            for key, value in zip(keyword.value.keys, keyword.value.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "event" and isinstance(value, ast.Constant):
                    return str(value.value)
    return ""


def test_every_log_line_names_its_event() -> None:
    calls = _calls()
    assert len(calls) > 50
    assert [call for call in calls if not _NAME.fullmatch(call[3])] == []


def test_an_event_has_one_meaning() -> None:
    """It is told in one file; twice there, where a line has two levels."""
    files: defaultdict[str, set[str]] = defaultdict(set)
    for file, _, _, event in _calls():
        files[event].add(file)
    assert {event: found for event, found in files.items() if len(found) > 1} == {}


def test_the_page_lists_every_event_with_its_levels() -> None:
    told: defaultdict[str, set[str]] = defaultdict(set)
    for _, _, level, event in _calls():
        told[event] |= {"info", "warning"} if level == "log" else {level.replace("exception", "error")}
    _, _, page = (_ROOT / "docs" / "observability.md").read_text().partition("## Events of the log")
    rows = {name: {*levels.split(", ")} for name, levels, _ in _ROW.findall(page)}
    assert rows == dict(told)
    assert [name for name, _, _ in _ROW.findall(page)] == sorted(rows)
