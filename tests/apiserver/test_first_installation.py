"""What a first installation finds in place of certificates, and that it is called as soon as it can answer.

Each test installs muster into a control plane of this file's own that has none, as `helm install` leaves it, and looks
what becomes of a member: before anybody serves it passes as if there were no muster, afterwards it is held.
"""

import base64
import datetime as dt
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.testbed import Testbed, TestbedError, wait_for
from hack.testbed.api import Api, NotFoundError, answers
from hack.testbed.muster import MusterInstall, gates_of_a_new_pod, install
from muster.model.names import GATE
from muster.model.resource import SECRETS
from muster.process.certificates import Certificates, issue
from tests.support.cluster.desk import PATIENCE
from tests.support.manifests.members import DEFINITIONS
from webhook.certificates.bundles import CLOSED, CONFIGURATIONS

pytestmark = pytest.mark.part("replicas")

_NAMESPACE, _OWN = "muster-system", "muster-webhook-tls"
_NAMES = ["muster-webhook.muster-system.svc", "muster-webhook.muster-system", "muster-webhook"]
_OF_HELM = {
    "labels": {"app.kubernetes.io/managed-by": "Helm"},
    "annotations": {"meta.helm.sh/release-name": "muster", "meta.helm.sh/release-namespace": _NAMESPACE},
}


@pytest.fixture(scope="module")
def plane() -> Iterator[Testbed]:
    """A control plane without muster."""
    with Testbed.start(parts=(), progress=print) as running:
        yield running


@pytest.fixture
def api(plane: Testbed) -> Iterator[Api]:
    """Calls to it. Muster's namespace is there, and empty of Secrets."""
    api = plane.api()
    if not api("GET", f"/api/v1/namespaces/{_NAMESPACE}").ok:
        api.create("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE}})
    yield api
    api.done("DELETE", SECRETS.path(_NAMESPACE))
    api.close()


class Installed:
    """A release without processes, and who is to go with it."""

    def __init__(self, plane: Testbed, api: Api) -> None:
        self._plane = plane
        self._api = api
        self._muster: MusterInstall | None = None

    def helm(self, **values: str) -> MusterInstall:
        """`helm install` with these values, and nobody who serves yet."""
        settings = {name.replace("_", "."): value for name, value in values.items()}
        self._muster = install(self._plane, values=settings, webhooks=0, controllers=0)
        wait_for("the apiserver to have heard of the entries", lambda: self.closed, PATIENCE)
        return self._muster

    @property
    def closed(self) -> set[str]:
        """The entries for which the apiserver calls nobody yet."""
        found = [self._api.get(kind.path(name="muster")) for kind in CONFIGURATIONS]
        return {
            entry["name"]
            for configuration in found
            for entry in configuration["webhooks"]
            if CLOSED in {condition["name"] for condition in entry.get("matchConditions", [])}
        }

    @property
    def bundles(self) -> set[str]:
        """The caBundles of all entries."""
        found = [self._api.get(kind.path(name="muster")) for kind in CONFIGURATIONS]
        return {entry["clientConfig"].get("caBundle", "") for one in found for entry in one["webhooks"]}

    def trust(self, bundle: bytes) -> None:
        """Write the authority into every entry, as cert-manager's cainjector does."""
        for kind in CONFIGURATIONS:
            found = self._api.get(kind.path(name="muster"))
            for entry in found["webhooks"]:
                entry["clientConfig"]["caBundle"] = base64.b64encode(bundle).decode()
            self._api.done("PUT", kind.path(name="muster"), found)

    def remove(self) -> None:
        """End the processes, and take the release away."""
        if self._muster is not None:
            self._muster.uninstall(hooks=False)


@pytest.fixture
def installed(plane: Testbed, api: Api) -> Iterator[Installed]:
    """Muster, once it is installed; removed with the test."""
    installed = Installed(plane, api)
    yield installed
    installed.remove()


def _held(api: Api) -> bool:
    """Whether a member that is made now gets the gate. Raises TestbedError where it is refused."""
    return GATE in gates_of_a_new_pod(api, gang=True)


def _becomes_called(api: Api, installed: Installed, muster: MusterInstall) -> None:
    muster.wait_ready(PATIENCE)
    wait_for("the entries to be opened", lambda: not installed.closed, PATIENCE)

    def held() -> bool:
        try:
            return _held(api)
        except TestbedError:  # opened a moment ago, and the apiserver has an older caBundle
            return False

    wait_for("members to be held", held, PATIENCE)


def _of_helm(api: Api, data: dict[str, str]) -> None:
    body = {"metadata": {"name": _OWN, **_OF_HELM}, "type": "Opaque", "data": data}
    api.create(SECRETS.path(_NAMESPACE), body)


def _data(api: Api) -> dict[str, str]:
    data: dict[str, str] = api.get(SECRETS.path(_NAMESPACE, _OWN))["data"]
    return data


def _good() -> Certificates:
    return issue(_NAMES, dt.datetime.now(dt.UTC))


def _without_key() -> dict[str, str]:
    return {name: value for name, value in _good().secret_data().items() if name != "ca.key"}


def _edited() -> dict[str, str]:
    return _good().secret_data() | {"tls.key": base64.b64encode(b"somebody's words").decode()}


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(None, id="there is none: the chart makes it, empty"),
        pytest.param({}, id="an empty one", marks=pytest.mark.long),
        pytest.param(
            _without_key(), id="tls.crt, tls.key and ca.crt, as cert-manager writes them", marks=pytest.mark.long
        ),
        pytest.param(_edited(), id="one that somebody edited"),
    ],
)
def test_what_cannot_be_used_is_made_anew_before_anybody_is_called(
    api: Api, installed: Installed, data: dict[str, str] | None
) -> None:
    """The Secret of muster's own certificates; those that are there are Helm's, from an earlier release."""
    if data is not None:
        _of_helm(api, data)
    muster = installed.helm()
    assert not _held(api), "a member was held, or somebody called, before a replica served"
    muster.start_webhook()
    _becomes_called(api, installed, muster)
    made = Certificates.from_secret(_data(api))
    assert made.pair.serves(_NAMES)
    assert made.secret_data()["tls.crt"] != (data or {}).get("tls.crt")
    assert installed.bundles == {_data(api)["ca.crt"]}


def test_a_filled_one_is_served_as_it_is(api: Api, installed: Installed) -> None:
    """As a backup of the namespace brings it back: key and authority stay what they were."""
    before = _good().secret_data()
    _of_helm(api, before)
    muster = installed.helm()
    muster.start_webhook()
    _becomes_called(api, installed, muster)
    assert _data(api) == before
    assert installed.bundles == {before["ca.crt"]}


def test_one_of_somebody_else_is_not_taken(plane: Testbed, api: Api) -> None:
    """Helm names it, installs nothing, and nobody's pods wait."""
    body = {"metadata": {"name": _OWN}, "type": "kubernetes.io/tls", "data": _without_key()}
    api.create(SECRETS.path(_NAMESPACE), body)
    before = _data(api)
    with pytest.raises(TestbedError, match=rf'Secret "{_OWN}" .*exists and cannot be imported'):
        install(plane, webhooks=0, controllers=0)
    assert _data(api) == before
    assert [api("GET", kind.path(name="muster")).status for kind in CONFIGURATIONS] == [404, 404]
    plane.helm("uninstall", "muster", f"--namespace={_NAMESPACE}", "--no-hooks", "--ignore-not-found")


@pytest.fixture
def cert_manager(api: Api) -> None:
    """Its kinds are served, with any fields: tests/chart compares what the chart writes with its own CRDs."""
    for kind, plural in {"Certificate": "certificates", "Issuer": "issuers"}.items():
        name = f"{plural}.cert-manager.io"
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }
        spec = {
            "group": "cert-manager.io",
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [version],
        }
        if not api("GET", f"{DEFINITIONS}/{name}").ok:
            api.create(DEFINITIONS, {"metadata": {"name": name}, "spec": spec})

        def served(plural: str = plural) -> bool:
            return api("GET", f"/apis/cert-manager.io/v1/{plural}").ok

        wait_for(f"{plural} to be served", served, PATIENCE)


def _serves(muster: MusterInstall) -> bool:
    (process,) = muster.webhooks
    return answers(muster.url(process, "/readyz"), muster.testbed.ca_file)


def _mount(folder: Path, data: dict[str, str]) -> None:
    """Write the Secret's files as a kubelet does: each at once."""
    for name, value in data.items():
        fresh = folder / uuid.uuid4().hex
        fresh.write_bytes(base64.b64decode(value))
        fresh.replace(folder / name)


@pytest.mark.usefixtures("cert_manager")
def test_cert_managers_is_called_when_its_injector_has_written_the_bundles(
    api: Api, installed: Installed, tmp_path: Path
) -> None:
    """The Secret is there first, and mounted; until the caBundles are, nobody is called and no member waits."""
    muster = installed.helm(certManager_enabled="true")
    with pytest.raises(NotFoundError):
        api.get(SECRETS.path(_NAMESPACE, _OWN))
    data = _without_key()
    _mount(tmp_path, data)
    muster.start_webhook(f"--certificate-directory={tmp_path}")
    wait_for("the webhook to serve", lambda: _serves(muster), PATIENCE)
    assert installed.closed
    assert not _held(api)
    installed.trust(base64.b64decode(data["ca.crt"]))
    _becomes_called(api, installed, muster)
    assert installed.bundles == {data["ca.crt"]}, "a caBundle was written that is not muster's to write"


@pytest.mark.parametrize("first", [pytest.param("an empty one", marks=pytest.mark.long), "one that somebody edited"])
def test_ones_own_is_called_when_it_is_put_right(api: Api, installed: Installed, tmp_path: Path, first: str) -> None:
    """`webhook.existingSecret` with `webhook.caBundle`: what is wrong with it is said, and waited for."""
    good = _without_key()
    authority = tmp_path / "ca.pem"
    authority.write_bytes(base64.b64decode(good["ca.crt"]))
    folder = tmp_path / "mounted"
    folder.mkdir()
    if first != "an empty one":
        _mount(folder, _edited())
    # As --set-file: a certificate's text has no comma, and helm takes its lines.
    muster = installed.helm(webhook_existingSecret="mine", webhook_caBundle=authority.read_text())
    process = muster.start_webhook(f"--certificate-directory={folder}")
    wait_for("what is wrong to be said", lambda: "CertificateInvalid" in process.log.read_text(), PATIENCE)
    assert installed.closed
    assert not _held(api)
    _mount(folder, good)
    _becomes_called(api, installed, muster)
