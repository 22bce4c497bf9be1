"""`muster.plan` in Python: what it takes, what it answers, and what its errors name."""

import asyncio
import io
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import muster

TEXT = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: demo, labels: {volcano.sh/queue-name: q}}
spec: {headGroupSpec: {template: {spec: {containers: [{name: head, resources: {requests: {cpu: 3}}}]}}}}
"""
QUEUE = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: q}
spec: {capability: {cpu: 2}}
"""
OBJECT: dict[str, Any] = yaml.safe_load(TEXT)
ITSELF: dict[str, Any] = dict(OBJECT)
ITSELF["spec"] = ITSELF
CLOSED = io.StringIO(TEXT)
CLOSED.close()


class Model:
    """A model of a client, under Python's names, as the Kubernetes client has it."""

    attribute_map = {"api_version": "apiVersion", "kind": "kind", "metadata": "metadata", "spec": "spec"}  # noqa: RUF012

    def __init__(self) -> None:
        self.api_version, self.kind = OBJECT["apiVersion"], OBJECT["kind"]
        self.metadata, self.spec = OBJECT["metadata"], OBJECT["spec"]

    def to_dict(self) -> dict[str, Any]:
        """Return what no apiserver would take."""
        return {"api_version": self.api_version}


class Pydantic:
    """A model under the names of the API."""

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest."""
        return OBJECT


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(lambda _: TEXT, id="text"),
        pytest.param(lambda _: TEXT.encode(), id="bytes"),
        pytest.param(lambda _: bytearray(TEXT.encode()), id="a buffer"),
        pytest.param(lambda _: TEXT.encode("utf-16"), id="bytes of Windows"),
        pytest.param(lambda _: io.StringIO(TEXT), id="an open text"),
        pytest.param(lambda file: io.BytesIO(file.read_bytes()), id="an open file"),
        pytest.param(lambda _: TEXT.replace("\n", ", ").join("{}"), id="a line of text"),
        pytest.param(lambda file: file, id="a path"),
        pytest.param(str, id="a path as text"),
        pytest.param(lambda _: OBJECT, id="a dictionary"),
        pytest.param(
            lambda _: OBJECT | {"metadata": OBJECT["metadata"] | {"annotations": {1: "x"}}}, id="a number as a key"
        ),
        pytest.param(lambda _: {"apiVersion": "v1", "kind": "List", "items": [OBJECT]}, id="a list of the API"),
        pytest.param(lambda _: Model(), id="a model of the Kubernetes client"),
        pytest.param(lambda _: Pydantic(), id="a model with to_dict"),
        pytest.param(lambda file: [file], id="a list of paths"),
    ],
)
def test_a_manifest_is_taken_in_each_form(given: Callable[[Path], object], tmp_path: Path) -> None:
    file = tmp_path / "demo.yaml"
    file.write_text(TEXT)
    (verdict,) = muster.plan(given(file))
    assert (verdict.kind, verdict.namespace, verdict.name) == ("RayCluster", "default", "demo")
    assert (verdict.allowed, verdict.managed, verdict.queue, verdict.min_member) == (True, True, "q", 1)
    assert verdict.pod_group is not None
    assert verdict.pod_group["spec"]["minResources"] == {"cpu": "3"}


def test_a_refusal_names_the_field_and_can_be_raised() -> None:
    verdicts = muster.plan([TEXT, QUEUE])
    (verdict,) = verdicts
    (finding,) = verdict.refusals
    assert (verdicts.allowed, finding.reason, finding.field) == (
        False,
        "ExceedsCapability",
        "metadata.labels[volcano.sh/queue-name]",
    )
    for refused in (verdict.raise_for_refusal, verdicts.raise_for_refusals):
        with pytest.raises(muster.RefusedError, match=r"RayCluster default/demo is refused: .* needs cpu 3") as raised:
            refused()
        assert raised.value.findings == verdict.refusals
    (allowed,) = muster.plan(TEXT)
    allowed.raise_for_refusal()


@pytest.mark.parametrize(
    ("manifests", "words"),
    [
        pytest.param("no-such.yaml", "no-such.yaml: No such file or directory", id="no file"),
        pytest.param({"kind": "RayCluster"}, "no apiVersion and kind", id="no apiVersion"),
        pytest.param(OBJECT | {"spec": {"headGroupSpec": 3}}, "spec.headGroupSpec", id="a wrong type"),
        pytest.param([], "no manifests given", id="nothing"),
        pytest.param(3, "int is no manifest", id="a number"),
        pytest.param(Pydantic, "the class Pydantic is no manifest", id="a class"),
        pytest.param(io.StringIO, "the class StringIO is no manifest", id="a class of files"),
        pytest.param(CLOSED, "file: I/O operation on closed file", id="a closed file"),
        pytest.param("a\0b", "embedded null byte", id="no name of a file"),
        pytest.param(b"kind: caf\xe9\n", "text, line 1: byte 0xE9 is not UTF-8", id="a foreign byte"),
        pytest.param("kind: \udce9\n", "text, line 1: ", id="text that is no Unicode"),
        pytest.param("", "text: it is empty", id="an empty text"),
        pytest.param("kind: x", "text, document 1, line 1: no apiVersion and kind", id="a line of YAML"),
        pytest.param(ITSELF, "object: it contains itself", id="an object in itself"),
        pytest.param([TEXT, "a: [\n"], "text", id="text that is no YAML"),
    ],
)
def test_what_cannot_be_read_is_named(manifests: object, words: str) -> None:
    with pytest.raises(muster.ManifestError) as raised:
        muster.plan(manifests)
    assert words in str(raised.value)
    assert isinstance(raised.value, ValueError)


def test_what_is_given_stays_as_it_is() -> None:
    given = {**OBJECT, "metadata": {"name": "demo"}}
    (verdict,) = muster.plan(given, namespace="team")
    assert (verdict.namespace, given["metadata"]) == ("team", {"name": "demo"})


def test_all_that_cannot_be_read_is_named_at_once() -> None:
    with pytest.raises(muster.ManifestError) as raised:
        muster.plan(["no-such.yaml", {"kind": "x"}])
    assert len(raised.value.errors) == 2


def test_other_kinds_are_notes_and_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    verdicts = muster.plan([TEXT, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}])
    assert len(verdicts) == 1
    assert "ConfigMap" in " ".join(verdicts.notes)
    assert capfd.readouterr() == ("", "")


def test_names_of_the_input_are_escaped_in_a_notebook() -> None:
    shown = muster.plan(TEXT.replace("queue-name: q", "queue-name: 'a&b'"))._repr_html_()
    assert "a&amp;b" in shown
    assert "a&b" not in shown


def test_names_of_the_input_do_nothing_to_a_terminal() -> None:
    (verdict,) = muster.plan(OBJECT | {"metadata": {"name": "demo", "labels": {"volcano.sh/queue-name": "a\x1b[2Jb"}}})
    assert "\x1b" in verdict.message
    assert "\x1b" not in repr(verdict)


def test_a_verdict_reads_as_a_sentence() -> None:
    (verdict,) = muster.plan(TEXT)
    assert repr(verdict).startswith("RayCluster default/demo: allowed, gang of 1 in queue q")
    assert repr(muster.plan([QUEUE])) == "no workloads"


async def test_it_works_where_an_event_loop_runs_already() -> None:
    """As in a notebook: its cells run in a loop."""
    there, awaited = muster.plan(TEXT), await muster.plan_async(TEXT)
    assert there == awaited
    with pytest.raises(muster.ManifestError):
        muster.plan("no-such.yaml")


def test_two_event_loops_get_their_own_answers() -> None:
    async def several() -> list[muster.Verdicts]:
        return await asyncio.gather(*(muster.plan_async(TEXT) for _ in range(3)))

    assert [len(found) for found in asyncio.run(several())] == [1, 1, 1]


def test_an_interrupted_notebook_leaves_nothing_behind() -> None:
    """The kernel raises KeyboardInterrupt in the cell; the work in its thread is cancelled."""
    code = """
import asyncio, os, signal, threading
from muster.api.functions import _run

cancelled = threading.Event()

async def work():
    os.kill(os.getpid(), signal.SIGINT)
    try:
        await asyncio.Event().wait()
    finally:
        cancelled.set()

async def cell():
    try:
        _run(work)
    except KeyboardInterrupt:
        print("interrupted", cancelled.wait(60))

asyncio.new_event_loop().run_until_complete(cell())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("interrupted True\n", "")


def test_errors_survive_another_process() -> None:
    """As Airflow and joblib send them."""
    (verdict,) = muster.plan([TEXT, QUEUE])
    for error in (muster.RefusedError("no", verdict.refusals), muster.ManifestError(["no"])):
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - its own
        assert (str(again), vars(again)) == (str(error), vars(error))


def test_the_processes_do_not_pay_for_it() -> None:
    """`import muster` loads nothing of it, and `dir` names it."""
    code = "import sys, muster; print(sorted(n for n in sys.modules if n.startswith('muster')), 'plan' in dir(muster))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['muster'] True\n"


def test_the_names_for_type_checkers_are_those_that_are_there() -> None:
    stub = (Path(muster.__file__).parent / "__init__.pyi").read_text()
    assert {line.split()[-1] for line in stub.splitlines() if " as " in line} == set(vars(muster)["__all__"])
    assert all(getattr(muster, name).__doc__ for name in vars(muster)["__all__"])
    with pytest.raises(AttributeError, match="no attribute 'plna'"):
        _ = muster.plna  # type: ignore[attr-defined]
