"""What running pods ask for is kept by their events, and is at any time what one finds who looks at all of them."""

from hypothesis import given
from hypothesis import strategies as st

from muster.cluster.cluster import Cluster
from muster.cluster.stores import gangs_of_pod
from muster.kube.store import ChangeKind
from muster.model.pods import Pod
from muster.queueing.ledger import GangKey
from muster.queueing.usage import amounts_of
from muster.resources.amounts import Resources, total
from tests.support.calls import Calls
from tests.support.manifests.observed import made, ray_pod


def pod(number: int, gang: int, phase: str, cpu: int) -> Pod:
    one = ray_pod(f"p{number}", cluster=f"g{gang}", owner_uid=f"uid-{gang}", held=False, nodeName="n")
    one["spec"]["containers"][0]["resources"]["requests"] = {"cpu": str(cpu)}
    one["status"]["phase"] = phase
    one["metadata"]["resourceVersion"] = f"{phase}{cpu}"
    return made(Pod, one)


def looked_up(cluster: Cluster, gangs: set[GangKey]) -> Resources:
    running = [one for one in cluster.pods if one.status.phase == "Running"]
    return total(cluster.requests.of(one) for one in running for gang in gangs_of_pod(one) if gang in gangs)


events = st.tuples(
    st.integers(0, 5), st.integers(0, 2), st.sampled_from(["Running", "Running", "Pending", "gone"]), st.integers(1, 4)
)


@given(st.lists(events, max_size=20), st.sets(st.integers(0, 2)))
def test_whatever_happens_it_is_the_sum_of_what_runs(happens: list[tuple[int, int, str, int]], holds: set[int]) -> None:
    cluster = Cluster(elastic_quotas=True)
    gangs = {GangKey("team", f"ray-g{number}-pg") for number in holds}
    for number, gang, phase, cpu in happens:
        kind: ChangeKind = "deleted" if phase == "gone" else "modified"
        cluster.pods.of("volcano").apply(kind, pod(number, gang, phase, cpu))
        found = cluster.running_pods.of("team", gangs)
        assert set(amounts_of(found)) == set(amounts_of(looked_up(cluster, gangs)))


def test_a_question_costs_as_much_however_many_pods_run() -> None:
    def calls(pods: int) -> int:
        cluster = Cluster(elastic_quotas=True)
        for number in range(pods):
            cluster.pods.of("volcano").apply("added", pod(number, number % 3, "Running", 1))
        gangs = {GangKey("team", f"ray-g{number}-pg") for number in range(3)}
        with Calls() as counted:
            cluster.running_pods.of("team", gangs)
        return counted.count

    assert calls(400) <= calls(40) + 2
