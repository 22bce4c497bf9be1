"""Label selectors as kubectl's `-l` takes them: `team=ml,env in (dev, test),!legacy`; every part must hold.

A key alone asks for the label, `!key` for its absence; `!=` and `notin` hold also where the label is missing, as in
Kubernetes. Its comparisons of numbers (`>`, `<`) are not known here. Nor is an empty selector, which in one place of
Kubernetes means everything and in another nothing.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_LONGEST_NAME, _LONGEST_PREFIX, _LONGEST_TEXT = 63, 253, 4096
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
# A comma within the parentheses of a set does not end a part.
_PARTS = re.compile(r"(?:[^,(]|\([^)]*\)?)*")
_IN = re.compile(r"(\S+)\s+(in|notin)\s*\(([^()]*)\)")
_EQUAL = re.compile(r"([^\s=!]+)\s*(==|=|!=)\s*([^\s=!]*)")


class InvalidSelectorError(ValueError):
    """A text is no selector; the message names the part at fault, and the reason."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One part: the label has one of `values`, or any value if that is None; the opposite if `negated`."""

    key: str
    values: frozenset[str] | None = None
    negated: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """True if it holds for these labels."""
        found = labels.get(self.key)
        holds = found is not None and (self.values is None or found in self.values)
        return holds is not self.negated


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold; without any, everything is selected."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """True if an object with these labels is selected."""
        return all(requirement.matches(labels) for requirement in self.requirements)


NOTHING = Selector((Requirement("nothing", frozenset()),))
"""Selects no object."""


def parse_selector(text: str, *, bounded: bool = True) -> Selector:
    """Return the selector of a text, of 4096 characters at most if it is `bounded`. Raises InvalidSelectorError."""
    if bounded and len(text) > _LONGEST_TEXT:
        raise InvalidSelectorError(f"longer than {_LONGEST_TEXT} characters")
    if not text.strip():
        raise InvalidSelectorError("it is empty")
    parts = []
    start = 0
    while start <= len(text):
        found = _PARTS.match(text, start)
        end = found.end() if found else start
        parts.append(_requirement(text[start:end].strip()))
        start = end + 1
    return Selector(tuple(parts))


def _requirement(part: str) -> Requirement:
    if found := _IN.fullmatch(part):
        values = frozenset(_value(value.strip(), part) for value in found[3].split(","))
        return Requirement(_key(found[1], part), values, negated=found[2] == "notin")
    if found := _EQUAL.fullmatch(part):
        return Requirement(_key(found[1], part), frozenset({_value(found[3], part)}), negated=found[2] == "!=")
    return Requirement(_key(part.removeprefix("!").strip(), part), negated=part.startswith("!"))


def _key(text: str, part: str) -> str:
    prefix, slash, name = text.rpartition("/")
    valid = len(name) <= _LONGEST_NAME and _NAME.fullmatch(name)
    if slash:
        valid = valid and len(prefix) <= _LONGEST_PREFIX and _PREFIX.fullmatch(prefix)
    if not valid:
        raise InvalidSelectorError(f'"{part[:80]}" is neither key, !key, key=value, key!=value nor key in (a, b)')
    return text


def _value(text: str, part: str) -> str:
    if len(text) > _LONGEST_NAME or (text and not _NAME.fullmatch(text)):
        raise InvalidSelectorError(f'"{part[:80]}" has a value that no label can have')
    return text
