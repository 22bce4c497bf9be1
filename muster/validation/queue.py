"""Findings in a Queue at admission: a wrong place in the tree, unreadable fields, gangs that no longer fit.

Volcano's own webhook, where it runs, checks some of the tree's rules; it does not know gangs that wait.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce

from muster.admitters import Admitter
from muster.model.findings import Finding, Reason, Validation, finding
from muster.model.objects import InvalidObjectError, PodGroup, Queue
from muster.model.texts import listed, nearest
from muster.queueing.queue_tree import QueueTree, exceeding
from muster.queueing.queue_view import ROOT, QueueView, read_queue
from muster.resources.amounts import Resources, describe, is_requestable, largest, parse_resources, total
from muster.resources.quantity import ZERO, Quantity
from muster.resources.resource_quotas import PODS
from muster.validation.ignored import idle_hold_of_queue, unsure_min_runtime

# The number of names in a line, and the characters of each.
_NAMED = 8
_LONGEST = 80


@dataclass(frozen=True, slots=True)
class _Misplaced(Finding):
    """A queue breaks this rule of the tree, by so much of each resource."""

    rule: str = field(default="", compare=False)
    excess: Resources = field(default_factory=dict, compare=False)


def faults(queue: Queue, tree: QueueTree, admitters: Collection[Admitter] = tuple(Admitter)) -> tuple[Finding, ...]:
    """Return the faults of a queue among the others in the tree, which may contain an older version of it.

    `admitters` are those that the installation has.
    """
    try:
        view = read_queue(queue)
    except InvalidObjectError as error:
        return (Finding(Reason.INVALID, error.field, str(error)),)
    unread = (Finding(Reason.INVALID, problem.field, str(problem)) for problem in view.problems)
    misspelled = (Finding(Reason.MISSPELLED, problem.field, str(problem)) for problem in view.unread)
    found = (*unread, *_misplaced(view, tree.having(view)), *idle_hold_of_queue(view, admitters), *misspelled)
    return (*found, *unsure_min_runtime(view, leaf=tree.leaf(view.name)), *_limiting_nothing(queue))


def all_faults(
    queue: Queue, tree: QueueTree, in_parent: Sequence[PodGroup] = (), too_large: Sequence[PodGroup] = ()
) -> tuple[Finding, ...]:
    """Return the findings in a queue that exists: its own faults, and those with PodGroups.

    `in_parent` are the PodGroups in its parent itself, `too_large` those in it and below that are beyond its limit.
    """
    found = faults(queue, tree)
    if queue.spec.parent not in ("", ROOT) and tree.get(queue.spec.parent):
        found += burdened(queue.spec.parent, in_parent)
    with suppress(InvalidObjectError):
        # One that cannot be read has that fault alone.
        found += tuple(left_outside(queue, too_large))
    return found


def _limiting_nothing(queue: Queue) -> Iterator[Finding]:
    """Yield the findings for resources of the queue that no pod requests."""
    spec = queue.spec
    for path, amounts in (
        ("spec.capability", spec.capability),
        ("spec.guarantee.resource", spec.guarantee.resource),
        ("spec.deserved", spec.deserved),
    ):
        if idle := [name for name in sorted(amounts) if not is_requestable(name)]:
            named = listed([f'"{name[:_LONGEST]}"{_meant(name)}' for name in idle], _NAMED)
            words = f"{named}: no pod requests that, and it limits nothing; name resources as pods do"
            if PODS in idle:
                words += ", and limit the number of pods by a ResourceQuota"
            yield finding(Reason.LIMITS_NOTHING, path, words)


def _meant(name: str) -> str:
    bare = name.removeprefix("requests.").removeprefix("limits.")
    meant = bare if bare != name and is_requestable(bare) else nearest(name, ("cpu", "memory", "ephemeral-storage"))
    return f" (did you mean {meant[:_LONGEST]}?)" if meant else ""


def new_faults(found: Iterable[Finding], before: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings that are new, or that have got worse: a fault may be corrected in steps."""
    return tuple(one for one in found if not any(_no_worse(one, old) for old in before))


def _no_worse(now: Finding, before: Finding) -> bool:
    if (now.reason, now.field) != (before.reason, before.field):
        return False
    if not (isinstance(now, _Misplaced) and isinstance(before, _Misplaced)):
        return True
    within_before = all(amount <= before.excess.get(name, ZERO) for name, amount in now.excess.items())
    return now.rule == before.rule and within_before


def _misplaced(view: QueueView, tree: QueueTree) -> Iterator[Finding]:
    path = "spec.parent"
    name, parent = view.name, view.parent
    if parent not in ("", ROOT):
        if tree.get(parent) is None:
            words = f'queue "{parent}" does not exist; create it first, or name another'
            yield _hierarchy(path, words, f"parent {parent}")
        elif name in tree.path(parent):
            yield _hierarchy(path, f'queue "{parent}" is "{name}" itself or below it; name another parent', "ring")
            return
    over = exceeding(view.guarantee, view.limit)
    if over is not None:
        words = f"{over[0]} is above spec.capability {over[1]}; lower it"
        yield _hierarchy("spec.guarantee.resource", words, "own", _excess(view.guarantee, view.limit))
    above = [found for one in tree.path(name)[1:] if (found := tree.get(one))]
    yield from _beyond_those_above(view, above, tree)
    below = [found for one in tree.with_below(name)[1:] if (found := tree.get(one))]
    yield from _less_than_below(view, below)
    yield from _below_too_small(view, above, below)


def _beyond_those_above(view: QueueView, above: Sequence[QueueView], tree: QueueTree) -> Iterator[Finding]:
    tightest, guarantee = _tightest(above), "spec.guarantee.resource"
    for path, amounts in (("spec.capability", view.limit), (guarantee, view.guarantee)):
        if found := _first_exceeded(amounts, above):
            amount, most, queue = found
            words = f'{amount} is above the {most} of queue "{queue}" above it; lower it'
            yield _hierarchy(path, words, "above", _excess(amounts, tightest))
    if tree.get(view.parent) is not None and view.guarantee:
        promised = total(child.guarantee for child in tree if child.parent == view.parent)
        promised = {name: promised[name] for name in view.guarantee}
        if found := _first_exceeded(promised, above):
            amount, most, queue = found
            has = "which" if queue == view.parent else f'and queue "{queue}" above it'
            words = f'{amount} is guaranteed below queue "{view.parent}", {has} has {most}; lower it'
            yield _hierarchy(guarantee, words, "promised", _excess(promised, tightest))


def _first_exceeded(amounts: Resources, above: Sequence[QueueView]) -> tuple[str, str, str] | None:
    """Return an amount, the limit that it exceeds, and the first queue with such a limit."""
    found = ((exceeding(amounts, one.limit), one.name) for one in above)
    return next(((*over, name) for over, name in found if over), None)


def _less_than_below(view: QueueView, below: Sequence[QueueView]) -> Iterator[Finding]:
    """Yield the finding where the queue's capability is less than capabilities or guarantees below it."""
    if found := _beyond(view.limit, below):
        amount, most, excess = found
        words = f"{most} is below the {amount}; lower that first"
        yield _hierarchy("spec.capability", words, "below", excess)


def _below_too_small(view: QueueView, above: Sequence[QueueView], below: Sequence[QueueView]) -> Iterator[Finding]:
    """Yield the finding where queues below it exceed a queue above it: it may have been moved there."""
    if found := _beyond(_tightest(above), below):
        amount, most, excess = found
        words = f'the {amount} is above the {most} that there is in queue "{view.parent}"'
        yield _hierarchy("spec.parent", f"{words}; lower that first, or name another parent", "below", excess)


def _beyond(limit: Resources, below: Sequence[QueueView]) -> tuple[str, str, Resources] | None:
    """Return what the queues below have or are guaranteed beyond a limit, in words; the limit; and the excess."""
    promised = _promised(below)
    excess = _excess(largest(_most(below), promised), limit)
    if found := _larger(below, limit):
        (amount, most), which = found
        return f"{amount} of {which} below it", most, excess
    if over := exceeding(promised, limit):
        return f"{over[0]} that is guaranteed below it", over[1], excess
    return None


def _tightest(above: Sequence[QueueView]) -> dict[str, Quantity]:
    tightest: dict[str, Quantity] = {}
    for one in above:
        for name, most in one.limit.items():
            tightest[name] = min(most, tightest.get(name, most))
    return tightest


def _most(queues: Iterable[QueueView]) -> Resources:
    """Return the largest capability or guarantee of each resource."""
    return reduce(largest, (each for one in queues for each in (one.limit, one.guarantee)), {})


def _promised(queues: Iterable[QueueView]) -> Resources:
    """Return the most of each resource that is guaranteed to all queues with one parent together."""
    sums: dict[str, Resources] = {}
    for one in queues:
        sums[one.parent] = total((sums.get(one.parent, {}), one.guarantee))
    return reduce(largest, sums.values(), {})


def _excess(need: Resources, limit: Resources) -> dict[str, Quantity]:
    return {name: need[name] - most for name, most in limit.items() if name in need and need[name] > most}


def _larger(queues: Iterable[QueueView], limit: Resources) -> tuple[tuple[str, str], str] | None:
    """Return the amount of the first queue beyond the limit, the limit, and the queues beyond it."""
    most = ((one.name, exceeding(largest(one.limit, one.guarantee), limit)) for one in queues if limit)
    large = [(over, name) for name, over in most if over]
    if not large:
        return None
    (over, first), *rest = large
    return over, f'queue "{first}"' + (f" and {len(rest)} more" if rest else "")


def _hierarchy(path: str, words: str, rule: str, excess: Resources | None = None) -> Finding:
    return _Misplaced(Reason.QUEUE_HIERARCHY, path, f"{path}: {words}", rule, excess or {})


def new_parent(queue: Queue, tree: QueueTree) -> str:
    """Return the queue that becomes a parent by this one, "" for none."""
    parent = queue.spec.parent or ROOT
    return parent if parent != ROOT and tree.get(parent) is not None and tree.leaf(parent) else ""


def burdened(parent: str, groups: Sequence[PodGroup] | None) -> tuple[Finding, ...]:
    """Return the finding for a queue that becomes a parent and has these PodGroups; None if they could not be read."""
    if groups is None:
        words = (
            f'queue "{parent}" may hold PodGroups itself, which would stop all scheduling, and they cannot be read now'
        )
        return (_hierarchy("spec.parent", f"{words}; try again", "burdened"),)
    if not groups:
        return ()
    words = f'queue "{parent}" holds {_named(groups)} itself, and would stop all scheduling; move what is there first'
    return (_hierarchy("spec.parent", words, "burdened"),)


def tightened(old: Queue, new: Queue) -> bool:
    """True if the new capability allows less of anything than the old one did."""
    try:
        before, now = read_queue(old).limit, read_queue(new).limit
    except InvalidObjectError:
        return False
    return any(name not in before or amount < before[name] for name, amount in now.items())


def left_outside(queue: Queue, groups: Sequence[PodGroup] | None) -> Iterator[Finding]:
    """Yield findings for usage and PodGroups beyond the queue's capability; `groups` is None if they are unknown."""
    limit, path = read_queue(queue).limit, "spec.capability"
    over = exceeding(_amounts(queue.status.allocated), limit)
    if over is not None:
        words = f"{over[1]} is below the {over[0]} held there; it runs on, and nothing starts until less is held"
        yield finding(Reason.CAPABILITY_LOWERED, path, words)
    large = [group for group in groups or () if exceeding(_amounts(group.spec.min_resources), limit)]
    waiting = [group for group in large if group.status.phase != "Running"]
    if waiting:
        over = exceeding(_amounts(waiting[0].spec.min_resources), limit)
        needs = over[0] if over else "nothing"
        words = f"{_named(waiting)} can never start with {describe(limit)}, the first needs {needs}"
        yield finding(Reason.CAPABILITY_LOWERED, path, words)


def kept_out(found: Iterable[Finding], validation: Validation) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Return the refusals, and the warnings, of PodGroups and of pods that name a queue by themselves.

    Access to a queue does not depend on the mode of validation: an object accepted here is not held back later.
    """
    found = tuple(found)
    refusals = [one for one in found if one.reason is Reason.QUEUE_NOT_FOUND]
    refusals += [one for one in validation.refused(found) if one not in refusals]
    return tuple(refusals), tuple(one for one in validation.warned(found) if one not in refusals)


def _amounts(raw: dict[str, str | int | float]) -> Resources:
    try:
        return parse_resources(raw, path="")
    except InvalidObjectError:
        return {}


def _named(groups: Sequence[PodGroup]) -> str:
    meta = groups[0].metadata
    first = f"{meta.namespace}/{meta.name}"
    return f"PodGroup {first}" if len(groups) == 1 else f"{len(groups)} PodGroups ({first} and others)"
