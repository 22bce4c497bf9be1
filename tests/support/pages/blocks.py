"""The commands that the pages show: blocks of shell, transcripts, and commands in sentences; and which test runs each.

A test takes what it runs from here, by `block`, `whole` or `sentence`, with the page and the beginning as plain text.
`asked` reads these calls from the sources of the tests, so that tests/docs/test_blocks.py knows what nobody runs.
"""

import ast
import re
import textwrap
from functools import cache
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).parents[3]
_FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$\n?", re.MULTILINE | re.DOTALL)
_SHELLS = ("sh", "console", "shell", "bash")
_PROGRAMS = ("cosign", "crane", "curl", "docker", "helm", "kubectl", "make", "muster", "python")
_ASKS = ("block", "whole", "sentence")


class Asked(NamedTuple):
    """What a test takes from a page."""

    page: str
    """Its path in the repository."""
    begins: str
    """How the block begins, or the whole command of a sentence; empty where the test follows all blocks of the page."""
    test: str
    """The path of the source that asks."""


def pages() -> list[str]:
    """Every document in which a reader may find a command, by its path in the repository."""
    found = [*_ROOT.glob("*.md"), *_ROOT.glob("docs/*.md"), *_ROOT.glob("charts/*/*.md")]
    return sorted(str(path.relative_to(_ROOT)) for path in found)


def shell(page: str) -> list[str]:
    """Every block of a page that shows commands, with or without their output, as it stands there, in order."""
    return [text for language, text in _fenced(page) if language in _SHELLS]


def unmarked(page: str) -> list[str]:
    """Blocks that begin as a command does, and are not marked as shell."""
    others = [text for language, text in _fenced(page) if language not in _SHELLS]
    return [text for text in others if text.removeprefix("$ ").split(" ")[0] in _PROGRAMS]


def blocks(page: str) -> list[str]:
    """Those of them that show commands alone: each is run as it stands there."""
    return [text for language, text in _fenced(page) if language == "sh"]


def inline(page: str) -> list[str]:
    """Every command in a sentence, once, in the order of the alphabet: a program's name and more."""
    spans = re.findall(r"`([^`]+)`", _FENCED.sub("", (_ROOT / page).read_text()))
    words = {re.sub(r"\s+", " ", span) for span in spans}
    return sorted(span for span in words if span.split(" ")[0] in _PROGRAMS and " " in span)


@cache
def block(page: str, begins: str) -> str:
    """The one block of a page that begins so; of equal ones the first. Whoever asks for it runs it."""
    found = list(dict.fromkeys(text for text in shell(page) if text.startswith(begins)))
    assert len(found) == 1, f"{len(found)} blocks of {page} begin with {begins!r}"
    return found[0]


def python(page: str, begins: str) -> str:
    """The one block of Python of a page that begins so."""
    return fenced(page, "python", begins)


def fenced(page: str, language: str, begins: str) -> str:
    """The one block of a page in this language that begins so."""
    found = [text for of, text in _fenced(page) if of == language and text.startswith(begins)]
    assert len(found) == 1, f"{len(found)} {language} blocks of {page} begin with {begins!r}"
    return found[0]


def whole(page: str) -> Path:
    """A page of which the caller runs every block."""
    path = _ROOT / page
    assert path.is_file(), f"there is no {page}"
    return path


def sentence(page: str, command: str) -> str:
    """A command that stands in a sentence of the page, and that the caller runs."""
    assert command in inline(page), f"no sentence of {page} has the command `{command}`"
    return command


def asked() -> list[Asked]:
    """What the tests take from the pages, as their sources have it."""
    return [
        one
        for path in sorted((_ROOT / "tests").rglob("*.py"))
        if "tests.support.pages.blocks" in (text := path.read_text())
        for one in _asked(text, str(path.relative_to(_ROOT)))
    ]


def _asked(text: str, path: str) -> list[Asked]:
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    asks = [call.args for call in calls if isinstance(call.func, ast.Name) and call.func.id in _ASKS]
    words = [[one.value for one in args if isinstance(one, ast.Constant)] for args in asks]
    plain = [texts for texts, args in zip(words, asks, strict=True) if texts and len(texts) == len(args)]
    return [Asked(str(page), "".join(map(str, begins)), path) for page, *begins in plain]


def _fenced(page: str) -> list[tuple[str, str]]:
    found = _FENCED.findall((_ROOT / page).read_text())
    return [(language, textwrap.dedent(text)) for _, language, text in found]
