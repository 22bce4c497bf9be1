"""`muster explain` finds objects by the names that kubectl prints and takes."""

import json
import subprocess

import pytest

from tests.support.cli.in_process import muster
from tests.support.cluster.desk import Desk
from tests.support.manifests.applied import ray_cluster

pytestmark = pytest.mark.part("commands")


def explained(desk: Desk, *arguments: str) -> subprocess.CompletedProcess[str]:
    return muster("explain", f"--kubeconfig={desk.testbed.kubeconfig}", "-ojson", *arguments)


def names(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [entry["workload"]["name"] for entry in json.loads(done.stdout)]


@pytest.mark.parametrize("word", ["raycluster", "rayclusters", "raycluster.ray.io", "rayclusters.v1.ray.io"])
def test_a_kind_has_the_names_that_kubectl_has_for_it(desk: Desk, word: str) -> None:
    desk.create(ray_cluster("demo").manifest())
    for words in ((f"{word}/demo",), (word, "demo")):
        done = explained(desk, "-n", desk.namespace, *words)
        assert (done.returncode, done.stderr, names(done)) == (0, "", ["demo"])


def test_one_wrong_name_does_not_hide_the_others(desk: Desk) -> None:
    for name in ("first", "last"):
        desk.create(ray_cluster(name).manifest())
    done = explained(desk, "-n", desk.namespace, "raycluster/first", "raycluster/gone", "web/x", "raycluster/last")
    assert (done.returncode, names(done)) == (2, ["first", "last"])
    first, second = sorted(done.stderr.splitlines())
    assert first.startswith('muster explain: muster does not support the kind "web"; ')
    assert second == f'muster explain: no RayCluster "gone" in namespace "{desk.namespace}"'


def test_a_name_is_found_in_all_namespaces(desk: Desk) -> None:
    name = f"only-in-{desk.namespace}"[:50].rstrip("-")
    desk.create(ray_cluster(name).manifest())
    done = explained(desk, "-A", f"raycluster/{name}")
    assert (done.returncode, names(done)) == (0, [name])
    gone = explained(desk, "-A", "raycluster/nowhere-at-all")
    assert (gone.returncode, gone.stdout) == (2, "")
    assert gone.stderr == 'muster explain: no RayCluster "nowhere-at-all" in any namespace\n'
