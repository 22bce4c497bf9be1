"""Documents with more in them: fields that muster reads, with values as a user might give them."""

# ruff: noqa: SIM905 - many words are read best as a line of text

import functools
from random import Random
from typing import Any

from msgspec import inspect

import muster.workloads  # noqa: F401 - its kinds name keys
from muster.model.names import READ_KEYS

_WORDS = (
    *"a b w demo main trainer node launcher torch q leaf high volcano mine Always True False hard soft".split(),
    *"SidecarMode HTTPMode InOrder AnyOrder WaitForWorkersReady AtStartup dataset-initializer".split(),
    *"Complete Completed Ready Aborted Failed Succeeded Suspended".split(),
)
_AMOUNTS = (
    *"0 1 250m 1500m 2Gi 1025Mi 1536 1e3 9E 1n -1 0.5Ki 3000000 12345678901 1e22 0.1 9Ei 0.0001Ki Ei e9".split(),
    *("", 0.25, 1e30),
)
_RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "hugepages-2Mi", "ephemeral-storage")
_KEYS = (
    *("muster.dev/gang", "muster.dev/gang-size", "volcano.sh/queue-name"),
    *sorted(READ_KEYS),
)
_NUMBERS = (0, 1, 1, 2, 2, 3, 5, 60, -1)


@functools.cache
def _shape(type_: type) -> inspect.Type:
    return inspect.type_info(type_)


def grown(chance: Random, type_: type, document: Any, most: int = 12) -> Any:  # noqa: ANN401 - any JSON
    """The document of that type, with up to `most` fields that it had not, or that were others."""
    for _ in range(chance.randint(0, most)):
        document = _grown(chance, _shape(type_), document)
    return document


def _grown(chance: Random, shape: inspect.Type, value: Any) -> Any:  # noqa: ANN401 - any JSON
    shape = _plain(shape)
    if isinstance(shape, inspect.StructType) and isinstance(value, dict):
        if not shape.fields:
            return value
        field = chance.choice(shape.fields)
        name = field.encode_name
        more = _grown(chance, field.type, value[name]) if value.get(name) else _example(chance, field.type)
        return {**value, name: more}
    if isinstance(shape, inspect.VarTupleType) and isinstance(value, list) and value:
        at = chance.randrange(len(value) + 1)
        if at == len(value):
            return [*value, _example(chance, shape.item_type)]
        return [*value[:at], _grown(chance, shape.item_type, value[at]), *value[at + 1 :]]
    if isinstance(shape, inspect.DictType) and isinstance(value, dict) and value and chance.randrange(2):
        key = chance.choice(list(value))
        return {**value, key: _grown(chance, shape.value_type, value[key])}
    return _example(chance, shape)


def _plain(shape: inspect.Type) -> inspect.Type:
    """The type that a field has when it is not null."""
    if not isinstance(shape, inspect.UnionType):
        return shape
    return next((one for one in shape.types if not isinstance(one, inspect.NoneType)), shape)


def _example(chance: Random, shape: inspect.Type) -> Any:  # noqa: ANN401 - any JSON
    """A value of that type."""
    if isinstance(shape, inspect.UnionType) and any(isinstance(one, inspect.FloatType) for one in shape.types):
        return chance.choice(_AMOUNTS)
    match _plain(shape):
        case inspect.StructType() as struct:
            return _grown(chance, struct, {})
        case inspect.VarTupleType() as items:
            return [_example(chance, items.item_type) for _ in range(chance.randint(1, 2))]
        case inspect.DictType() as entries:
            amounts = isinstance(entries.value_type, inspect.UnionType)
            return {chance.choice(_RESOURCES if amounts else _KEYS): _example(chance, entries.value_type)}
        case inspect.BoolType():
            return bool(chance.randrange(2))
        case inspect.IntType() | inspect.FloatType():
            return chance.choice(_NUMBERS)
        case _:
            return chance.choice(_WORDS)
