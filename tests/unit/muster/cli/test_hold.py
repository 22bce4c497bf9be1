"""`muster hold` and `muster resume` where a cluster has only some of the kinds, and for odd names."""

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import web

from muster.model.names import HOLD
from tests.support.cases import cases
from tests.support.cli.in_process import muster
from tests.support.faults.apiserver import Answer, FaultyApiserver, failure, listing, manifest, reply


@cases("others", ("not served", failure(404)), ("not allowed", failure(403, "Forbidden")))
async def test_resume_lists_only_what_the_workload_can_have_made(tmp_path: Path, others: Answer) -> None:
    """An older KubeRay has no RayCronJob, and the role that KubeRay gives for RayJobs names no RayServices."""

    def on_hold(name: str, **more: object) -> dict[str, object]:
        one = manifest(name, 1)
        return {**one, "metadata": {**dict(one["metadata"]), "annotations": {HOLD: "true"}, **more}}  # type: ignore[call-overload]

    owner = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "nightly", "uid": "nightly", "controller": True}
    clusters = listing(1, on_hold("demo", ownerReferences=[owner]))

    async def lists(request: web.Request) -> web.StreamResponse:
        answer = reply(clusters) if request.path.endswith("/rayclusters") else others
        return await answer(request)

    async with FaultyApiserver.serving() as apiserver:
        apiserver.on("GET", reply({"gitVersion": "v1.36.3"}), reply(on_hold("nightly")))
        apiserver.on("LIST", lists)
        apiserver.on("PATCH", reply({}))
        (tmp_path / "config").write_text(_kubeconfig(apiserver.url))
        done = await asyncio.to_thread(muster, "resume", f"--kubeconfig={tmp_path / 'config'}", "rayjob/nightly")
        patched = [request.path for request in apiserver.seen("PATCH")]
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "rayjob.ray.io/nightly: resumed\nraycluster.ray.io/demo: resumed\n"
    assert [path.rpartition("/")[2] for path in patched] == ["nightly", "demo"]


@cases("others", ("not served", failure(404)), ("not allowed", failure(403, "Forbidden")))
@pytest.mark.parametrize("command", ["hold", "explain"])
async def test_a_podgroup_stands_for_its_workload_whoever_places_gangs(
    tmp_path: Path, command: str, others: Answer
) -> None:
    """A cluster with coscheduling has no PodGroups of Volcano's, nor need a user be allowed to ask for them."""
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo", "uid": "demo", "controller": True}
    group, demo = manifest("ray-demo-pg", 1), manifest("demo", 1)
    group["metadata"] = {**dict(group["metadata"]), "namespace": "default", "ownerReferences": [owner]}  # type: ignore[call-overload]
    demo["metadata"] = {**dict(demo["metadata"]), "namespace": "default"}  # type: ignore[call-overload]
    served = {
        "/version": {"gitVersion": "v1.36.3"},
        "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups/ray-demo-pg": group,
        "/apis/ray.io/v1/namespaces/default/rayclusters/demo": demo,
    }

    async def gets(request: web.Request) -> web.StreamResponse:
        found = served.get(request.path)
        answer = failure(404) if "rayclusters" in request.path else others
        return await (answer if found is None else reply(found))(request)

    async with FaultyApiserver.serving() as apiserver:
        apiserver.on("GET", gets)
        apiserver.on("LIST", reply(listing(1)))
        apiserver.on("PATCH", reply({}))
        (tmp_path / "config").write_text(_kubeconfig(apiserver.url))
        words = f"--kubeconfig={tmp_path / 'config'}", "podgroup/ray-demo-pg"
        done = await asyncio.to_thread(muster, command, *words)
    assert (done.returncode, done.stderr) == (0, "")
    first = {"hold": "raycluster.ray.io/demo: on hold; running gangs continue", "explain": "RayCluster default/demo"}
    assert done.stdout.splitlines()[0] == first[command]


@pytest.mark.parametrize("command", ["hold", "explain"])
async def test_a_podgroup_that_nobody_has_is_missing_where_only_one_kind_may_be_read(
    tmp_path: Path, command: str
) -> None:
    async def gets(request: web.Request) -> web.StreamResponse:
        if request.path == "/version":
            return await reply({"gitVersion": "v1.36.3"})(request)
        return await (failure(404) if "volcano" in request.path else failure(403, "Forbidden"))(request)

    async with FaultyApiserver.serving() as apiserver:
        apiserver.on("GET", gets)
        (tmp_path / "config").write_text(_kubeconfig(apiserver.url))
        done = await asyncio.to_thread(muster, command, f"--kubeconfig={tmp_path / 'config'}", "podgroup/none")
    assert done.stderr == f'muster {command}: no PodGroup "none" in namespace "default"\n'


def _kubeconfig(server: str) -> str:
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    cluster, user = {"name": "c", "cluster": {"server": server}}, {"name": "u", "user": {"token": "t"}}
    return json.dumps({"current-context": "c", "contexts": [context], "clusters": [cluster], "users": [user]})


@cases("words, name", ("dots", ("pod/p", "-n=.."), "'..'"), ("no UTF-8", ("pod/\udcff",), r"'\udcff'"))
@pytest.mark.parametrize("command", ["hold", "explain"])
async def test_a_name_that_no_object_has_is_no_traceback(
    tmp_path: Path, command: str, words: tuple[str, ...], name: str
) -> None:
    async with FaultyApiserver.serving() as apiserver:
        apiserver.on("GET", reply({"gitVersion": "v1.36.3"}))
        apiserver.on("LIST", reply(listing(1)))
        (tmp_path / "config").write_text(_kubeconfig(apiserver.url))
        done = await asyncio.to_thread(muster, command, f"--kubeconfig={tmp_path / 'config'}", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"muster {command}: {name} cannot be part of a path\n"


async def test_of_several_names_one_that_is_none_has_nothing_changed(tmp_path: Path) -> None:
    async with FaultyApiserver.serving() as apiserver:
        apiserver.on("GET", reply({"gitVersion": "v1.36.3"}), reply(manifest("one", 1)))
        apiserver.on("PATCH", reply({}))
        (tmp_path / "config").write_text(_kubeconfig(apiserver.url))
        words = f"--kubeconfig={tmp_path / 'config'}", "raycluster/one", "raycluster/\udcff"
        done = await asyncio.to_thread(muster, "hold", *words)
        assert (done.returncode, done.stdout, apiserver.seen("PATCH")) == (2, "", [])
    assert done.stderr == "muster hold: '\\udcff' cannot be part of a path\n"


@pytest.mark.parametrize("command", ["hold", "explain"])
@cases("other", ("malformed", reply({"metadata": []})), ("missing", failure(404)))
async def test_what_cannot_be_read_of_several_keeps_no_answer_about_the_others(
    tmp_path: Path, command: str, other: Answer
) -> None:
    async def gets(request: web.Request) -> web.StreamResponse:
        return await (other if request.path.endswith("/two") else reply(manifest("one", 1)))(request)

    async with FaultyApiserver.serving() as apiserver:
        apiserver.on("GET", reply({"gitVersion": "v1.36.3"}), gets)
        apiserver.on("LIST", reply(listing(1)))
        apiserver.on("PATCH", reply({}))
        (tmp_path / "config").write_text(_kubeconfig(apiserver.url))
        words = f"--kubeconfig={tmp_path / 'config'}", "raycluster/one", "raycluster/two"
        done = await asyncio.to_thread(muster, command, *words)
    assert done.returncode == {"hold": 1, "explain": 2}[command]
    assert "one" in done.stdout.splitlines()[0]
    assert done.stderr.startswith(f"muster {command}: ")
