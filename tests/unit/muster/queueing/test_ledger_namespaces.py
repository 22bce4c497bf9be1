"""ElasticQuotas beside queues: what the namespaces of gangs may hold, in whatever queues."""

from functools import cache
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from muster.queueing.entries import Claim, EndKind, EntryKey
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import QueueView
from muster.resources.amounts import Resources, total
from muster.resources.elastic_quotas import NamespaceLimit
from muster.resources.quantity import ZERO
from tests.support.examples import examples
from tests.support.manifests.observed import amounts
from tests.support.queueing.facts import Holder
from tests.support.queueing.world import World
from tests.unit.muster.queueing.test_ledger_histories import AnyHistory, sizes

NOW = 1_000_000.0
NAMESPACES = ("team", "other", "empty")


class WorldWithQuotas(World):
    """The facts, with ElasticQuotas: what each namespace may hold, and what others use there."""

    def __init__(self) -> None:
        super().__init__()
        self.limits: dict[str, NamespaceLimit] = {}
        self.others: dict[str, Resources] = {}
        self.kept: dict[str, Resources] = {}
        self.lasting_kept: list[Candidate] = []

    def facts(self) -> tuple[object, ...]:
        """With the quotas."""
        return *super().facts(), dict(self.limits), dict(self.others)

    def judge(self, now: float) -> dict[EntryKey, Candidate]:
        """Who may start, in order, and what is kept for whom."""
        self.kept, self.lasting_kept = {}, []
        return super().judge(now)

    def used_in(self, namespace: str, beside: list[Candidate], *, lasting: bool = False) -> Resources:
        """What gangs and others use of a namespace, beside those that start."""
        held = [one for gang, one in self.held.items() if gang.namespace == namespace]
        claims = [one.claim for one in held]
        if lasting:
            claims = [one.claim if one.lasts else {} if one.idle else one.soft for one in held]
        starting = (one.need for one in beside if one.key.namespace == namespace)
        return total([*claims, *starting, self.others.get(namespace, {})])

    def fits_in_namespace(
        self, candidate: Candidate, beside: list[Candidate], kept: Resources, *, lasting: bool
    ) -> bool:
        """As CapacityScheduling asks, with what is kept for gangs before it."""
        namespace = candidate.key.namespace
        limit = self.limits.get(namespace)
        if limit is None or not candidate.limited:
            return True
        need = {name: amount for name, amount in candidate.need.items() if amount}
        own = total([self.used_in(namespace, beside, lasting=lasting), kept, need])
        all_ = [self.used_in(one, beside, lasting=lasting) for one in self.limits]
        together = total([*all_, kept, need])
        least = total(one.least for one in self.limits.values())
        below_max = all(own[name] <= limit.most[name] for name in need if name in limit.most)
        guaranteed = all(own[name] <= limit.least.get(name, ZERO) for name in need)
        return below_max and (guaranteed or all(together[name] <= least.get(name, ZERO) for name in need))

    def lacks_in_namespace(self, candidate: Candidate, starting: list[Candidate]) -> bool:
        """Whether its namespace has no room for it, beside what is kept for those before it."""
        kept = {} if candidate.begun else self.kept.get(candidate.key.namespace, {})
        return not self.fits_in_namespace(candidate, starting, kept, lasting=False)

    def waits_in_namespace(self, candidate: Candidate, trust: EndKind) -> None:
        """The first keeps what it needs."""
        if candidate.key.namespace not in self.kept:
            self.keeps_in_namespace(candidate, trust)

    def keeps_in_namespace(self, candidate: Candidate, trust: EndKind) -> None:
        """From those behind it, in all queues; of no gang here the end is known: where estimates count all may pass."""
        if candidate.limited:
            namespace, keeps = candidate.key.namespace, {} if trust is EndKind.ABOUT else candidate.need
            self.kept[namespace] = total([self.kept.get(namespace, {}), keeps])
            self.lasting_kept += [candidate] if candidate.lasts else []

    def in_vain(
        self,
        tree: QueueTree,
        candidate: Candidate,
        victims: tuple[str, int] | None,
        starting: list[Candidate],
        barring: list[Candidate],
    ) -> bool:
        """In its queue, or in its namespace."""
        staying = [one for one in starting if one.lasts] + self.lasting_kept
        in_the_end = self.fits_in_namespace(candidate, staying, {}, lasting=True)
        return not in_the_end or super().in_vain(tree, candidate, victims, starting, barring)


class AnyHistoryWithQuotas(AnyHistory):
    """As any history of queues, while quotas come, change and go."""

    world: WorldWithQuotas

    def new_world(self) -> World:
        """With quotas."""
        return WorldWithQuotas()

    def new_ledger(self) -> Ledger:
        """It knows the limits of namespaces, and what others use there."""
        ledger = Ledger()
        for namespace, limit in self.world.limits.items():
            ledger.limit_namespace(namespace, limit)
            ledger.others_use(namespace, self.world.others.get(namespace, {}))
        return ledger

    def has_room_in_namespace(self, candidate: Candidate) -> bool:
        """Beside those who may start."""
        fitting = [*self.world.fitting(self.now).values()]
        return self.world.fits_in_namespace(candidate, fitting, {}, lasting=False) and not any(self.world.kept.values())

    @rule(namespace=st.sampled_from(NAMESPACES), most=sizes(8, 3), least=sizes(6, 2))
    def a_namespace_is_limited(self, namespace: str, most: Resources, least: Resources) -> None:
        """Or its limit changes."""
        limit = NamespaceLimit(("quota",), most, least)
        assert self.ledger.limit_namespace(namespace, limit) is (self.world.limits.get(namespace) != limit)
        self.world.limits[namespace] = limit

    @rule(namespace=st.sampled_from(NAMESPACES))
    def the_last_quota_of_a_namespace_goes(self, namespace: str) -> None:
        """Whoever waited for it may start."""
        known = self.world.limits.pop(namespace, None) is not None
        assert self.ledger.limit_namespace(namespace, None) is known
        self.world.others.pop(namespace, None)

    @rule(namespace=st.sampled_from(NAMESPACES), use=sizes(4, 2))
    def other_pods_come_and_go(self, namespace: str, use: Resources) -> None:
        """They count where there is a quota."""
        if namespace in self.world.limits:
            changed = {name: amount for name, amount in self.world.others.get(namespace, {}).items() if amount}
            assert self.ledger.others_use(namespace, use) is (changed != use)
            self.world.others[namespace] = use
        else:
            assert not self.ledger.others_use(namespace, use)

    @invariant()
    def nobody_takes_a_namespace_beyond_its_quota(self) -> None:
        """Nor all together beyond what all are guaranteed, but those who stay within their own."""
        fitting = [one for one in self.world.fitting(self.now).values() if self._fits(one.key)]
        for namespace, limit in self.world.limits.items():
            mine = [one for one in fitting if one.key.namespace == namespace and one.limited]
            asked = {name for one in mine for name, amount in one.need.items() if amount}
            # Those whom no quota limits start all the same.
            ours = self.world.used_in(namespace, mine)
            assert all(ours[name] <= limit.most[name] for name in asked if name in limit.most)
        least = total(one.least for one in self.world.limits.values())
        limited = [one for one in fitting if one.limited and one.key.namespace in self.world.limits]
        together = total(self.world.used_in(namespace, limited) for namespace in self.world.limits)
        for one in limited:
            own = self.world.used_in(one.key.namespace, limited)
            asked = {name for name, amount in one.need.items() if amount}
            guaranteed = all(own[name] <= self.world.limits[one.key.namespace].least.get(name, ZERO) for name in asked)
            last = one is limited[-1]
            assert not last or guaranteed or all(together[name] <= least.get(name, ZERO) for name in asked)

    @invariant()
    def it_knows_who_holds_in_a_namespace(self) -> None:
        """A limit may come at any time."""
        for namespace in NAMESPACES:
            holding = {gang for gang in self.world.held if gang.namespace == namespace}
            assert self.ledger.holding_in(namespace) == holding


AnyHistoryWithQuotas.TestCase.settings = settings(max_examples=examples(200), stateful_step_count=30, deadline=None)
TestAnyHistoryWithQuotas = AnyHistoryWithQuotas.TestCase


@cache
def cpus(*choice: int) -> st.SearchStrategy[Resources]:
    return st.sampled_from(choice).map(lambda cpu: amounts(**({"cpu": str(cpu)} if cpu else {})))


MEMBERS = [*(GangKey("team", name) for name in "abcdef"), GangKey("other", "x"), GangKey("other", "y")]

crowded = st.builds(
    Candidate,
    st.sampled_from(MEMBERS),
    st.sampled_from(["t1", "u1"]),
    st.just(0),
    st.sampled_from(["09:00", "10:00", "11:00"]),
    cpus(1, 2, 3, 4, 5),
    st.sampled_from([None, NOW - 700]),
    begun=st.sampled_from([False] * 7 + [True]),
    lasts=st.sampled_from([False, False, True]),
    follows=st.sampled_from([False] * 7 + [True]),
    limited=st.sampled_from([True] * 7 + [False]),
)


# Made once, as those of the histories.
_thirds = st.sampled_from([False, False, True])
_queues = st.sampled_from(["t1", "u1"])
_namespaces = st.sampled_from([["team"], ["team", "other"]])
_claims = st.dictionaries(st.sampled_from(MEMBERS), cpus(1, 2, 3), max_size=3)
_waiting = st.lists(crowded, min_size=4, max_size=6, unique_by=lambda one: one.key)


@st.composite
def crowds(draw: st.DrawFn) -> WorldWithQuotas:
    """Gangs of two namespaces in two queues, most of which lack room in one or the other."""
    world = WorldWithQuotas()
    for name in ("t1", "u1"):
        world.queues[name] = QueueView(name, "Open", draw(cpus(0, 3, 4, 8)), strict=draw(_thirds))
    for namespace in draw(_namespaces):
        world.limits[namespace] = NamespaceLimit(("quota",), draw(cpus(0, 4, 5, 6)), draw(cpus(2, 4, 12, 12)))
        world.others[namespace] = draw(cpus(0, 1))
    for gang, claim in draw(_claims).items():
        soft = claim if draw(_thirds) else {}
        idle = bool(soft) and draw(_thirds)
        world.held[gang] = Holder(draw(_queues), claim, 0, "08:00", soft, idle=idle, lasts=draw(_thirds))
    for candidate in draw(_waiting):
        if candidate.key not in world.held:
            world.waits[candidate.key] = candidate
    return world


def ledger_of(world: WorldWithQuotas) -> Ledger:
    """A ledger of these facts."""
    ledger = Ledger()
    for view in world.queues.values():
        ledger.set_queue(view)
    for gang, holder in world.held.items():
        idle, lasts = holder.idle, holder.lasts
        ledger.hold(
            Claim(gang, holder.queue, holder.claim, since=holder.since, soft=holder.soft, idle=idle, lasts=lasts)
        )
    for namespace, limit in world.limits.items():
        ledger.limit_namespace(namespace, limit)
        ledger.others_use(namespace, world.others[namespace])
    for candidate in world.waits.values():
        ledger.wait(candidate)
    return ledger


@settings(max_examples=examples(1000), deadline=None)
@given(crowds(), st.randoms(use_true_random=False))
def test_with_quotas_each_start_leaves_the_others_what_the_model_says(world: WorldWithQuotas, random: Random) -> None:
    """Whoever starts first of those that may."""
    ledger = ledger_of(world)
    while True:
        fitting = world.fitting(NOW)
        assert set(ledger.startable("t1", NOW)) == set(fitting)
        if not fitting:
            return
        together = [*fitting.values()]
        random.shuffle(together)
        for one in together:
            ledger.hold(one.claim(NOW))
            del world.waits[one.key]
            world.held[one.key] = Holder(one.queue, one.need, one.priority, one.since, {}, idle=False, lasts=one.lasts)
