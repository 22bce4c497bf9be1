"""What a ClusterQueue can never hold."""

from collections.abc import Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.admitters.kueue import KueueWorkload
from muster.admitters.kueue_quota import ClusterQueue, needs_of, never_fits
from tests.support.cases import cases
from tests.support.examples import examples
from tests.support.manifests.kueue import PENDING, flavored_queue, kueue_workload, pod_set
from tests.support.manifests.observed import JSON, made


def never(sets: list[JSON], *flavors: Mapping[str, str], cohort: str = "") -> str:
    needs = needs_of(made(KueueWorkload, kueue_workload(PENDING, *sets)))
    return never_fits(needs, made(ClusterQueue, flavored_queue(*flavors, cohort=cohort)))


HEAD, WORKERS = pod_set("head", 1, cpu="1"), pod_set("worker", 2, cpu="1")


@cases(
    "sets, flavors, words",
    ("just enough", [HEAD, WORKERS], [{"cpu": "3"}], ""),
    (
        "more than all flavors have",
        [HEAD, WORKERS],
        [{"cpu": "2"}],
        'it needs cpu 3, and all flavors of ClusterQueue "cq" have cpu 2',
    ),
    (
        "a pod set larger than every flavor",
        [pod_set("worker", 3, cpu="1")],
        [{"cpu": "2"}, {"cpu": "2"}],
        'its pod set "worker" needs cpu 3 of one flavor, and none of ClusterQueue "cq" has as much',
    ),
    ("each in a flavor of its own", [HEAD, WORKERS], [{"cpu": "2"}, {"cpu": "1"}], ""),
    (
        "a remainder in each flavor that holds nobody",
        [pod_set("a", 1, cpu="2"), pod_set("b", 1, cpu="2"), pod_set("c", 1, cpu="2")],
        [{"cpu": "3"}, {"cpu": "3"}],
        'no choice of flavors of ClusterQueue "cq" holds its pod sets together, which need cpu 6',
    ),
    (
        "a resource that is not covered",
        [pod_set("worker", 2, **{"cpu": "1", "nvidia.com/gpu": "1"})],
        [{"cpu": "9"}],
        'ClusterQueue "cq" has no quota of nvidia.com/gpu, and the gang needs nvidia.com/gpu 2',
    ),
    ("nothing of it is asked for", [pod_set("worker", 2, cpu="0")], [{"memory": "1Gi"}], ""),
)
def test_what_never_fits_is_told_with_numbers(sets: list[JSON], flavors: list[dict[str, str]], words: str) -> None:
    assert never(sets, *flavors) == words


def test_what_kueue_admits_in_part_is_to_fit_in_part() -> None:
    partial = {**pod_set("main", 4, cpu="1"), "minCount": 2}
    assert never([partial], {"cpu": "2"}) == ""
    assert never([partial], {"cpu": "1"}) == 'it needs cpu 2, and all flavors of ClusterQueue "cq" have cpu 1'


def test_what_kueue_has_counted_counts() -> None:
    """Its configuration leaves resources out, and puts others in the place of some."""
    sets = [pod_set("worker", 2, **{"cpu": "1", "example.com/vpc": "1", "nvidia.com/mig-1g.5gb": "1"}), HEAD]
    asked = {"name": "worker", "resources": {"cpu": "2", "credits": "10"}}
    counted = made(KueueWorkload, kueue_workload(PENDING, *sets, resourceRequests=[asked]))
    queue = made(ClusterQueue, flavored_queue({"cpu": "3", "credits": "10"}))
    assert never_fits(needs_of(counted), queue) == ""
    assert "example.com/vpc 2" in never_fits(needs_of(made(KueueWorkload, kueue_workload(PENDING, *sets))), queue)
    small = made(ClusterQueue, flavored_queue({"cpu": "3", "credits": "9"}))
    assert "needs credits 10" in never_fits(needs_of(counted), small)


def test_in_a_cohort_nobody_can_say() -> None:
    assert never([HEAD, WORKERS], {"cpu": "1"}, cohort="all") == ""


def test_a_quota_that_is_no_quantity_says_nothing() -> None:
    assert never([HEAD], {"cpu": "many"}) == ""


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
    st.lists(st.integers(0, 8), min_size=1, max_size=3),
)
@settings(max_examples=examples(200))
def test_it_never_says_so_of_what_some_choice_of_flavors_holds(asked: list[int], quotas: list[int]) -> None:
    """Against all choices, one by one."""

    def holds(left: tuple[int, ...], rest: tuple[int, ...]) -> bool:
        if not rest:
            return True
        return any(
            holds((*left[:at], room - rest[0], *left[at + 1 :]), rest[1:])
            for at, room in enumerate(left)
            if rest[0] <= room
        )

    sets = [pod_set(f"s{number}", 1, cpu=str(cpu)) for number, cpu in enumerate(asked)]
    said = never(sets, *({"cpu": str(most)} for most in quotas))
    assert bool(said) is not holds(tuple(quotas), tuple(asked))
