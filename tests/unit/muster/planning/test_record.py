"""What a gang was admitted for, written down and read back."""

from dataclasses import replace

from muster.cluster.observe import observe
from muster.model.names import ADMITTED_FOR
from muster.model.objects import PodGroup
from muster.planning.record import admitted_for, units_of, without_units, written_spec_of
from muster.planning.snapshot import AdmissionRecord
from tests.support.cases import cases
from tests.support.controller.stores import filled
from tests.support.manifests.observed import DEFAULTS, KEY, made, pod_group, ray_cluster

SPEC = made(PodGroup, pod_group(priorityClassName="high")).spec
TEXT = (
    '{"minMember":3,"minTaskMember":{"headgroup":1,"workers":2},"minResources":{"cpu":"3","memory":"3Gi"},'
    '"queue":"q","priorityClassName":"high"}'
)


def test_the_same_terms_are_the_same_words() -> None:
    turned = made(PodGroup, pod_group(priorityClassName="high", minTaskMember={"workers": 2, "headgroup": 1})).spec
    assert admitted_for(SPEC) == admitted_for(turned) == TEXT
    assert admitted_for(None) == ""


def test_what_no_annotation_can_hold_is_left_out() -> None:
    """Else the mark could not be written, and the gang would never start."""
    many = made(PodGroup, pod_group(minTaskMember={f"role-{number}": 1 for number in range(2000)})).spec
    assert admitted_for(many) == ""


@cases(
    "admitted, text, known",
    ("as written", "uid-demo", TEXT, True),
    ("not admitted", "", TEXT, False),
    ("of a former workload", "uid-old", TEXT, False),
    ("by an older muster", "uid-demo", "", False),
    ("no JSON", "uid-demo", "{", False),
    ("no terms", "uid-demo", '{"minMember": "many"}', False),
)
def test_they_are_believed_with_the_mark_of_this_workload(admitted: str, text: str, known: bool) -> None:
    group = pod_group(admitted=admitted, annotations={ADMITTED_FOR: text}, minMember=9)
    view = observe(KEY, filled(workloads=[ray_cluster()], groups=[group]), DEFAULTS)
    said = written_spec_of(view)
    assert admitted_for(said) == (TEXT if known else "")
    assert (said is None) is not known


def test_what_this_leader_said_itself_comes_first() -> None:
    group = pod_group(admitted="uid-demo", annotations={ADMITTED_FOR: TEXT})
    view = observe(KEY, filled(workloads=[ray_cluster()], groups=[group]), DEFAULTS)
    said = made(PodGroup, pod_group(minMember=2)).spec
    assert written_spec_of(replace(view, written_spec=said)) is said


def test_units_that_are_being_opened_stand_beside_the_terms() -> None:
    text = admitted_for(SPEC, {"b", "a"})
    assert text == TEXT.removesuffix("}") + ',"openingUnits":["a","b"]}'
    mark = AdmissionRecord("uid-demo", admitted_for=text)
    assert units_of(mark, "uid-demo") == {"a", "b"}
    assert not units_of(mark, "uid-old")
    assert not units_of(AdmissionRecord("uid-demo", admitted_for="{"), "uid-demo")
    assert without_units(mark) == AdmissionRecord("uid-demo", admitted_for=TEXT)


def test_where_the_units_are_too_many_the_terms_are_written_alone() -> None:
    assert admitted_for(SPEC, {f"{number:016}" for number in range(1000)}) == TEXT
