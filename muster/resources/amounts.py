"""Amounts of several resources at once: `{"cpu": 3, "memory": 4Gi}`.

A resource that is not named is zero in a need and unlimited in a limit.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from muster.model.objects import InvalidObjectError, RawQuantity
from muster.resources.quantity import ZERO, Format, InvalidQuantityError, Quantity, parse_quantity

Resources = Mapping[str, Quantity]
NOTHING: Resources = {}

MOST_RESOURCES = 64
"""Most resources that one pod, or one gang, may name: each costs time at every look, and space in annotations."""
# If there are more, a sentence names these first ones and the number of the others.
_MOST_NAMED = 8

# The usual resources first; all others follow by name.
_FIRST = ("cpu", "memory")
_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage"})
# The prefix by which ResourceQuotas name requests of pods.
_OF_QUOTAS = ("requests.", "limits.")


def parse_resources(
    raw: Mapping[str, RawQuantity],
    *,
    path: str,
    least: Quantity | None = ZERO,
) -> dict[str, Quantity]:
    """Read a resource list; raises InvalidObjectError, with the path, if an amount is no quantity or below `least`."""
    parsed = {}
    for name, text in raw.items():
        try:
            amount = parse_quantity(text)
        except InvalidQuantityError as error:
            raise InvalidObjectError(f"{path}.{name}", str(error)) from error
        if least is not None and amount < least:
            raise InvalidObjectError(f"{path}.{name}", f'"{text}" is negative; a resource is 0 or more')
        parsed[name] = amount
    return parsed


def check_few(names: Collection[str], path: str) -> None:
    """Raise InvalidObjectError, with the path, for more resources than muster reads of one pod, or of one gang."""
    if len(names) > MOST_RESOURCES:
        raise InvalidObjectError(
            path, f"names {len(names)} resources, and muster reads {MOST_RESOURCES} at most; use fewer"
        )


def shared(resources: Resources) -> Resources:
    """Return equal amounts, as one object for all pods that request as much; it must not be changed."""
    return _shared(tuple((name, amount.nano, amount.format) for name, amount in resources.items()))


@lru_cache(maxsize=1024)
def _shared(amounts: tuple[tuple[str, int, Format], ...]) -> Resources:
    return {name: Quantity(nano, form) for name, nano, form in amounts}


def total(parts: Iterable[Resources]) -> dict[str, Quantity]:
    """Return the sum of all parts."""
    result: dict[str, Quantity] = {}
    parts = list(parts)
    # Pods of a role share their requests: thousands of parts are a handful of objects.
    distinct = {id(part): part for part in parts}
    counts = Counter(map(id, parts)) if len(distinct) < len(parts) else {}
    for same, part in distinct.items():
        for name, one in part.items():
            amount = one * count if (count := counts.get(same, 1)) > 1 else one
            result[name] = result[name] + amount if name in result else amount
    return result


def times(part: Resources, count: int) -> dict[str, Quantity]:
    """`count` times the part."""
    return {name: amount * count for name, amount in part.items()}


def minus(whole: Resources, part: Resources) -> dict[str, Quantity]:
    """Return the whole less the part, for the resources of the whole; never below zero."""
    return {name: max(amount - part.get(name, ZERO), Quantity(0, amount.format)) for name, amount in whole.items()}


def part_of(whole: Resources, count: int, of: int) -> Resources:
    """Return `count` parts of the whole, which has `of`; all of it if `count` is no smaller."""
    return {name: Quantity(one.nano * count // of, one.format) for name, one in whole.items()} if count < of else whole


def positive(resources: Resources) -> dict[str, Quantity]:
    """Return the resources with an amount above zero."""
    return {name: amount for name, amount in resources.items() if amount.nano > 0}


def largest(first: Resources, second: Resources) -> dict[str, Quantity]:
    """Return the larger amount of each resource."""
    return {
        name: max(first.get(name, ZERO), second.get(name, ZERO), key=lambda amount: amount.nano)
        for name in (*first, *(name for name in second if name not in first))
    }


def smallest(first: Resources, second: Resources) -> dict[str, Quantity]:
    """Return the smaller amount of each resource that both name."""
    return {name: min(amount, second[name]) for name, amount in first.items() if name in second}


def within(need: Resources, limit: Resources) -> bool:
    """True if the need stays within the limit, for every resource that the limit names."""
    return all(need.get(name, ZERO) <= amount for name, amount in limit.items())


def as_text(resources: Resources) -> dict[str, str]:
    """Return the canonical text of each amount, as it is written into a manifest."""
    return {name: str(resources[name]) for name in _in_order(resources)}


def describe(resources: Resources) -> str:
    """Return the amounts in words: `cpu 3 and memory 4Gi`; of many the first, and the number of the others."""
    names = _in_order(resources)
    parts = [f"{name} {resources[name]}" for name in names[:_MOST_NAMED]]
    if more := len(names) - len(parts):
        parts.append(f"{more} more")
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts) or "nothing"


def is_requestable(name: str) -> bool:
    """True if containers may request a resource of that name: a standard one, or one with a domain."""
    return name in _STANDARD or name.startswith("hugepages-") or ("/" in name and not name.startswith(_OF_QUOTAS))


def _in_order(resources: Resources) -> list[str]:
    return sorted(resources, key=lambda name: (_FIRST.index(name) if name in _FIRST else len(_FIRST), name))
