"""The Python API on a real apiserver: docs/python.md as it stands there, and the errors of each function."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import muster
from muster.model.names import QUEUE_LABEL
from muster.model.resource import QUEUES
from tests.support.cluster.desk import Desk
from tests.support.manifests import applied
from tests.support.manifests.applied import ray_cluster
from tests.support.pages.blocks import fenced, python

pytestmark = pytest.mark.part("commands")

PAGE = "docs/python.md"
CHECKOUT = Path(__file__).parents[2]
SILENT: dict[str, Any] = {"progress": False, "interval": 0.1}


@pytest.fixture
def queue(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A queue of 2 cpu, and the reader's kubeconfig."""
    monkeypatch.setenv("KUBECONFIG", str(desk.testbed.kubeconfig))
    name = desk.namespace
    desk.create(applied.queue(name, cpu="2"))
    yield name
    desk.delete(QUEUES, name)


def run(desk: Desk, *begins: str) -> dict[str, Any]:
    """The names that these blocks of the page leave, in the namespace of the test, with short patience."""
    names: dict[str, Any] = {}
    for begin in begins:
        text = python(PAGE, begin).replace('"team"', f'"{desk.namespace}"').replace("timeout=3600", "timeout=0.5")
        exec(compile(text, PAGE, "exec"), names)  # noqa: S102 - as a reader pastes it into a cell
    return names


def test_the_notebook_of_the_page_runs(
    desk: Desk, queue: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CHECKOUT)
    desk.create(ray_cluster("demo").label(QUEUE_LABEL, queue).manifest())
    names = run(desk, "import muster\n\nverdicts", "gang = muster.explain", "try:\n    gang = muster.wait")
    assert names["verdicts"].allowed
    assert (names["gang"].kind, names["gang"].name, names["gang"].queue) == ("RayCluster", "demo", queue)
    out, err = capsys.readouterr()
    assert out.startswith("Assembling it has no pods yet")
    assert f"queue {queue}: " in out
    # Once, for it does not change.
    assert err.count(f"RayCluster {desk.namespace}/demo: Assembling") == 1


async def test_each_function_answers_in_an_event_loop_too(desk: Desk, queue: str) -> None:
    desk.create(ray_cluster("demo").label(QUEUE_LABEL, queue).manifest())
    where = {"namespace": desk.namespace}
    manifest = ray_cluster("large").label(QUEUE_LABEL, queue).workers(3, cpu="1").manifest()
    verdicts, gang, queues = await asyncio.gather(
        muster.plan_async(manifest, cluster=True, namespace=desk.namespace),
        muster.explain_async("raycluster/demo", **where),
        muster.queues_async(),
    )
    assert [one.refusals[0].reason for one in verdicts] == ["ExceedsCapability"]
    assert (gang, queue in {one.name for one in queues}) == (muster.explain("raycluster/demo", **where), True)
    seen: list[str] = []
    with pytest.raises(muster.WaitTimeoutError, match=r"raycluster/demo is not admitted after 0.3 s: Assembling: "):
        await muster.wait_async(
            "raycluster/demo",
            "admitted",
            timeout=0.3,
            interval=0.1,
            progress=lambda one: seen.append(one.state),
            **where,
        )
    assert seen == ["Assembling"]


def test_a_wait_ends_when_a_function_of_the_gang_says_so(desk: Desk, queue: str) -> None:
    desk.create(ray_cluster("demo").label(QUEUE_LABEL, queue).manifest())
    gang = muster.wait("raycluster/demo", lambda one: one.state == "Assembling", namespace=desk.namespace, **SILENT)
    assert gang.queue == queue


def test_what_muster_does_not_manage_is_not_waited_for(desk: Desk, queue: str) -> None:
    del queue
    desk.create(ray_cluster("alone").manifest())
    with pytest.raises(muster.WaitFailedError, match="raycluster/alone does not come to be running: NotManaged"):
        muster.wait("raycluster/alone", namespace=desk.namespace, **SILENT)


def test_each_error_names_what_is_wrong(desk: Desk, queue: str, tmp_path: Path) -> None:
    del queue
    with pytest.raises(muster.NotFoundError, match=f'no RayCluster "gone" in namespace "{desk.namespace}"'):
        muster.wait("raycluster/gone", namespace=desk.namespace, **SILENT)
    with pytest.raises(muster.NotFoundError, match='"gone" is not KIND/NAME or KIND NAME'):
        muster.explain("gone")
    with pytest.raises(muster.NotFoundError, match='muster does not support the kind "web"'):
        muster.explain("web/gone")
    with pytest.raises(ValueError, match='until: "ready" is none of admitted, running, finished'):
        muster.wait("raycluster/gone", "ready")  # type: ignore[arg-type]
    with pytest.raises(muster.ClusterError, match="nowhere"):
        muster.queues(kubeconfig=str(tmp_path / "nowhere"))
    with pytest.raises(muster.ClusterError, match="context"):
        muster.explain("raycluster/demo", context="no-such")


def test_a_refusal_has_a_cause_for_each_finding(desk: Desk, queue: str) -> None:
    """The body that every client gets; tests/apiserver/test_python_packages.py reads it with one of them."""
    manifest = ray_cluster("large").label(QUEUE_LABEL, queue).workers(3, cpu="1").manifest()
    answer = desk.ask(manifest)
    assert answer.status == 422
    (planned,) = muster.plan(manifest, cluster=True, namespace=desk.namespace)
    found = [(one["reason"], one["field"]) for one in answer.body["details"]["causes"]]
    assert found == [(one.reason, one.field) for one in planned.refusals]
    shown = json.loads(fenced(PAGE, "json", '{"kind": "Status"').replace("research", queue))
    causes = shown.pop("details")["causes"]
    assert answer.body.items() >= shown.items()
    assert answer.body["details"]["causes"] == causes
