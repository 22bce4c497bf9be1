"""What administrators type by the documents at a real apiserver, and what GitOps tools meet there (docs/gitops.md)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from hack.testbed import Testbed
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.model.names import NAMESPACE_SELECTOR, RECLAIM, UNPLACED_AFTER
from muster.model.resource import QUEUES
from tests.docs.test_documents import CHECKOUT
from tests.support.manifests.applied import queue
from tests.support.pages.blocks import block, sentence
from tests.support.pages.walkthrough import Shell
from webhook.certificates.bundles import CLOSED

_RELEASE = "muster --namespace muster-system"
_FIELDS = "--show-managed-fields --output json"
_CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_SECRET = "muster-webhook-tls"  # noqa: S105 - a name
# What Argo CD makes of the chart, with the values of the release, applied as it applies.
_SYNC = f"""\
helm get values {_RELEASE} --output yaml |
  helm template {_RELEASE} charts/muster --no-hooks --values - |
  kubectl apply --server-side --force-conflicts --field-manager argocd-controller --dry-run=server --output json -f -
"""


@pytest.fixture
def reader(bare: Testbed, webhook: MusterInstall) -> Shell:
    """An administrator of the cluster in which muster's webhook is."""
    del webhook
    return Shell.on(bare, {})


@pytest.fixture
def queues(calls: Api) -> Iterator[None]:
    """The queues of the pages."""
    names = ("root", "gpu", "training", "alice")
    for name in names:
        calls("POST", QUEUES.path(), queue(name))
    yield
    for name in names:
        calls("DELETE", QUEUES.path(name=name))


@pytest.mark.usefixtures("queues")
def test_the_annotations_of_queues_are_taken_without_a_warning(reader: Shell, calls: Api) -> None:
    commands = (
        block("docs/platforms.md", "kubectl annotate queue gpu"),
        block("docs/queues.md", "kubectl annotate queue training"),
        sentence("docs/queues.md", "kubectl annotate queue root muster.dev/reclaim=beyond-share"),
    )
    said = "".join(map(reader.obey, commands)).splitlines()
    names = ("gpu", "training", "alice", "root")
    assert said == [f"queue.scheduling.volcano.sh/{name} annotated" for name in names]
    values = [calls.done("GET", QUEUES.path(name=name))["metadata"]["annotations"] for name in names]
    assert values == [
        {UNPLACED_AFTER: "20m"},
        {NAMESPACE_SELECTOR: "team in (ml, vision),!suspended"},
        {NAMESPACE_SELECTOR: "kubernetes.io/metadata.name=alice"},
        {RECLAIM: "beyond-share"},
    ]


def test_what_muster_writes_on_objects_from_git_is_what_both_tools_are_told_to_ignore(reader: Shell) -> None:
    """By the apiserver's own record of who wrote which field of the release's objects."""
    live = json.loads(reader.obey(f"helm get manifest {_RELEASE} | kubectl get {_FIELDS} -f -"))["items"]
    assert not _closed(live), "the webhook takes out what the first installation closes"
    written = {_key(item): fields for item in live if (fields := _musters(item))}
    # An upgrade applies the certificates that it finds, and may be their last writer; and no gang may have run.
    data = {("Secret", _SECRET): {"data"}, ("ConfigMap", "muster"): {"data"}}
    made = {**{(kind, "muster"): {"caBundle"} for kind in _CONFIGURATIONS}, **data}
    assert {**written, **data} == made
    argo, flux = _page("Application")["ignoreDifferences"], _page("HelmRelease")["driftDetection"]["ignore"]
    ignored = [(one["kind"], one.get("name", "muster")) for one in argo]
    assert ignored == [(one["target"]["kind"], one["target"].get("name", "muster")) for one in flux]
    assert set(ignored) == made.keys()


def test_a_sync_of_argo_cds_leaves_what_muster_has_written(reader: Shell) -> None:
    """It renders without a cluster, so that nothing is closed, and owns no field that it does not render."""
    synced = json.loads(reader.obey(_SYNC))["items"]
    assert not _closed(synced)
    found = {_key(item): item for item in synced}
    assert found[("Secret", _SECRET)]["data"].keys() >= {"ca.crt", "tls.crt", "tls.key"}
    clients = [one["clientConfig"] for kind in _CONFIGURATIONS for one in found[(kind, "muster")]["webhooks"]]
    assert clients
    assert all(client.get("caBundle") for client in clients)


def _closed(items: list[dict[str, Any]]) -> bool:
    """Whether a webhook of theirs has the condition that keeps it from being called."""
    webhooks = [one for item in items if item["kind"] in _CONFIGURATIONS for one in item["webhooks"]]
    assert webhooks
    return CLOSED in {condition["name"] for one in webhooks for condition in one.get("matchConditions", [])}


def _key(item: dict[str, Any]) -> tuple[str, str]:
    return item["kind"], "muster" if item["kind"] == "ConfigMap" else item["metadata"]["name"]


def _musters(item: dict[str, Any]) -> set[str]:
    """The last names of the fields that muster has written, but for the markers of their places."""
    entries = [one for one in item["metadata"]["managedFields"] if one["manager"].startswith("muster")]
    return {name for entry in entries for name in _leaves(entry["fieldsV1"])}


def _leaves(fields: dict[str, Any], name: str = "") -> Iterator[str]:
    below = {key.removeprefix("f:"): value for key, value in fields.items() if key != "."}
    if not below or name == "data":
        yield name
        return
    for key, value in below.items():
        yield from _leaves(value, key)


def _page(kind: str) -> dict[str, Any]:
    """The spec of a manifest of the page."""
    text = (CHECKOUT / "docs/gitops.md").read_text()
    found = [one for part in text.split("```yaml\n")[1:] for one in yaml.safe_load_all(part.partition("```")[0])]
    (spec,) = (one["spec"] for one in found if one["kind"] == kind)
    return dict(spec)
