"""Values that nobody expects, and documents into which some of them have got."""

# ruff: noqa: SIM905 - many words are read best as a line of text

import json
from random import Random
from typing import Any

_DEEP: Any = json.loads("[" * 200 + "]" * 200)
_ODD: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 2**31 - 1, 2**31, 2**63, -(2**70), 0.5, -0.0, 1e300),
    *("", " ", "x" * 300, "x" * 300_000, "9" * 200),
    *"0 -1 1e1000000 5000000E 1Ki -3m 0x10 true null 1e64 .. ../../secrets/x a/b ~1 %2e".split(),
    *("a\nb", "a\x00b", "\x1b[2J", "é", "q\u0430", "\u202ecpu", "\u0665"),
    *"q small closed parent gone late demo volcano mine default-scheduler high Always".split(),
    *({}, [], [None], {"a": None}, {"": ""}, [{}], [[]], _DEEP, {str(n): "x" for n in range(200)}),
)
_KEYS = (
    *("labels", "annotations", "ownerReferences", "spec", "replicas", "minReplicas", "template", "suspend", "status"),
    *("muster.dev/gang", "muster.dev/managed", "volcano.sh/queue-name", "a~1/b", "é", ""),
)
# What Python reads and writes as JSON, and JSON has not: those who send it are refused.
_NO_JSON = (float("nan"), float("inf"), "\ud800")
_BYTES = (b"\x00", b"\xff", b"\xed\xa0\x80", b'"', b"\\u0000", b"{", b"[" * 100_000, b"1e999", b"NaN", b'{"a":1}', b"")


def mutated(chance: Random, document: Any, most: int = 4) -> Any:  # noqa: ANN401 - any JSON
    """The document; every other time with up to `most` places other than they should be."""
    for _ in range(chance.randint(1, most) if chance.randrange(2) else 0):
        document = _changed(chance, document)
    return document


def _changed(chance: Random, value: Any) -> Any:  # noqa: ANN401 - any JSON
    """The value with something within it replaced, removed, added or doubled."""
    if not value or not isinstance(value, (dict, list)) or not chance.randrange(12):
        return chance.choice(_NO_JSON if not chance.randrange(500) else _ODD)
    what = chance.randrange(12)
    if isinstance(value, dict):
        key = chance.choice(list(value))
        if what == 0:
            return {name: item for name, item in value.items() if name != key}
        if what == 1:
            return {**value, chance.choice(_KEYS): value[key]}
        return {**value, key: _changed(chance, value[key])}
    at = chance.randrange(len(value))
    if what == 0:
        return [*value[:at], *value[at + 1 :]]
    if what == 1:
        return [*value, value[at]]
    return [*value[:at], _changed(chance, value[at]), *value[at + 1 :]]


def spoilt(chance: Random, body: bytes) -> bytes:
    """The bytes; of one body in ten some are others."""
    if chance.randrange(10):
        return body
    if not chance.randrange(10):
        return chance.randbytes(chance.randrange(64))
    start = chance.randrange(len(body) + 1)
    return body[:start] + chance.choice(_BYTES) + body[start + chance.randrange(40) :]
