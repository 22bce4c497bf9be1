"""The commands of docs/operations.md: its blocks of shell, and what stands in its sentences."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["PAGE", "blocks", "inline"]

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_PROGRAMS = ("curl", "helm", "kubectl", "make", "muster", "python")


def blocks() -> list[str]:
    """Every block of shell, as it stands there, in order."""
    return [text for language, text in _FENCED.findall(PAGE.read_text()) if language == "sh"]


def inline() -> list[str]:
    """Every command in a sentence, once, in the order of the alphabet: a program's name and more."""
    spans = re.findall(r"`([^`]+)`", _FENCED.sub("", PAGE.read_text()))
    words = {re.sub(r"\s+", " ", span) for span in spans}
    return sorted(span for span in words if span.split(" ")[0] in _PROGRAMS and " " in span)
