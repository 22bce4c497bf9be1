"""Decoding manifests: what is absent, what is null, what is wrong and where."""

import msgspec
import pytest

from muster.model.names import label_value
from muster.model.objects import InvalidObjectError, OwnerReference, convert, decode
from muster.model.pods import Pod
from tests.support.cases import cases
from tests.support.manifests.observed import as_json, made, pod


def test_null_means_absent_everywhere() -> None:
    """As it does to the apiserver, also inside lists and maps."""
    raw = {
        "metadata": {"name": "a", "labels": None, "creationTimestamp": None, "ownerReferences": [None]},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": None}, "limits": None}}]},
        "status": None,
    }
    assert decode(as_json(raw), Pod) == decode(
        '{"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}}', Pod
    )


def test_the_null_of_every_new_object_is_read_the_short_way() -> None:
    """An apiserver before 1.34 sends one with each; to look for nulls takes ten times as long as to read a pod."""
    new = msgspec.json.decode('{"metadata": {"creationTimestamp": null}}', type=Pod)
    assert new.metadata.creation_timestamp == ""
    assert new == Pod()


def test_unknown_fields_are_skipped() -> None:
    assert made(Pod, {"spec": {"hostNetwork": True, "volumes": [{"name": "v"}]}, "kind": "Pod"}) == Pod()


@cases(
    "raw, line",
    ("broken", "{", "not JSON: Input data was truncated"),
    ("a list", "[]", "expected an object, found a list"),
    ("null", "null", "expected an object, found null"),
    ("label", '{"metadata": {"labels": {"a": 1}}}', "metadata.labels[...]: expected a string, found an integer"),
    ("priority", '{"spec": {"priority": "high"}}', "spec.priority: expected an integer, found a string"),
    (
        "a boolean is no amount",
        '{"spec": {"containers": [{"resources": {"requests": {"cpu": true}}}]}}',
        "spec.containers[0].resources.requests[...]: expected a quantity, found true or false",
    ),
)
def test_a_wrong_type_is_named_with_its_path(raw: str, line: str) -> None:
    with pytest.raises(InvalidObjectError) as refused:
        decode(raw, Pod)
    assert str(refused.value) == line


@cases(
    "raw",
    ("not UTF-8", b'{"metadata": {"name": "\xff"}}'),
    ("an integer of thousands of digits", '{"spec": {"priority": 1' + "0" * 5000 + "}}"),
    ("too deep", '{"other": ' + "[" * 100_000 + "]" * 100_000 + "}"),
    ("empty", b""),
)
def test_hostile_json_is_an_error_of_the_object(raw: bytes | str) -> None:
    with pytest.raises(InvalidObjectError, match=r"^not JSON: "):
        decode(raw, Pod)


def test_nesting_that_only_json_can_bear_is_an_error_of_the_object() -> None:
    """Whoever may write one odd object must not stop the reading of all others."""
    raw = '{"status": null, "spec": {"priority": "x", "other": ' + "[" * 900 + "]" * 900 + "}}"
    with pytest.raises(InvalidObjectError, match="nested too deeply"):
        decode(raw, Pod)


def test_convert_reads_a_parsed_manifest_like_decode() -> None:
    manifest = pod("a", labels={"x": "y"})
    assert convert(manifest, Pod) == made(Pod, manifest)


@cases(
    "meta, phase, living",
    ("pending", {}, "Pending", True),
    ("running", {}, "Running", True),
    ("its node is silent: it may run", {}, "Unknown", True),
    ("succeeded", {}, "Succeeded", False),
    ("failed", {}, "Failed", False),
    ("being deleted", {"deletionTimestamp": "2026-11-21T10:00:00Z"}, "Running", False),
)
def test_a_pod_lives_until_it_ends_or_is_being_deleted(meta: dict[str, str], phase: str, living: bool) -> None:
    assert made(Pod, pod("a", meta=meta, phase=phase)).living is living


@pytest.mark.parametrize(("api_version", "group"), [("ray.io/v1", "ray.io"), ("v1", ""), ("", "")])
def test_the_group_of_an_owner(api_version: str, group: str) -> None:
    assert OwnerReference(api_version=api_version).group == group


def test_the_controller_is_the_owner_that_says_so() -> None:
    owners = [{"kind": "A", "uid": "1"}, {"kind": "B", "uid": "2", "controller": True}]
    found = made(Pod, {"metadata": {"ownerReferences": owners}}).metadata.controller
    assert found is not None
    assert found.kind == "B"


@pytest.mark.parametrize("length", [1, 62, 63])
def test_a_name_that_fits_a_label_is_its_own_label_value(length: int) -> None:
    assert label_value("x" * length) == "x" * length


def test_a_longer_name_becomes_a_label_value_of_63_that_tells_it_from_its_neighbours() -> None:
    one, other = label_value("x" * 70 + "a"), label_value("x" * 70 + "b")
    assert len(one) == len(other) == 63
    assert one != other
    assert one.startswith("x" * 52 + "-")


def test_the_cut_of_a_label_value_never_doubles_a_separator() -> None:
    assert "--" not in label_value("x" * 51 + "-" * 20 + "y")
