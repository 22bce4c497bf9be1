"""Two replicas at one address, 50 pods a second with failurePolicy Fail, and what must not fail any of them."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
import re
import signal
import ssl
import sys
import time
from email.utils import format_datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from hack.testbed import wait_for
from hack.testbed.site import kubeconfig_text
from muster.kube.resource import EVENTS, QUEUES, SECRETS
from muster.names import QUEUE_LABEL
from tests.support.cluster.desk import PATIENCE
from tests.support.cluster.pod_load import Load, kinds
from tests.support.faults.apiserver import FaultyApiserver
from tests.support.manifests import workloads as builders
from webhook.bundles import CONFIGURATIONS
from webhook.certificates import Certificates, InvalidCertificateError, Lives, authorities_in, issue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hack.testbed import Testbed
    from hack.testbed.api import Api
    from hack.testbed.muster import MusterInstall
    from tests.support.cluster.desk import Desk

CHART = Path(__file__).parents[2] / "charts" / "muster"
_SECRET = SECRETS.path("muster-system", "muster-webhook-tls")
_SERVICE_PATH = "/api/v1/namespaces/muster-system/services/muster-webhook"
_SERVICE = "muster-webhook.muster-system.svc"


@pytest.fixture
def pair(webhook: MusterInstall) -> Iterator[MusterInstall]:
    """Two replicas that serve; in the end one is left."""
    while len(webhook.webhooks) < 2:
        webhook.start_webhook()
    webhook.wait_ready(PATIENCE)
    yield webhook
    while len(webhook.webhooks) > 1:
        webhook.webhooks.pop().stop(grace=PATIENCE)


@pytest.fixture
def load(calls: Api, desk: Desk, pair: MusterInstall) -> Iterator[Load]:
    """Members of a RayCluster of muster's, not yet begun."""
    del pair
    desk.create(builders.queue(desk.namespace, cpu="8"))
    owner = desk.create(builders.ray_cluster("c").label(QUEUE_LABEL, desk.namespace).workers(2).manifest())
    yield Load(calls, desk, owner)
    desk.kubectl("delete", "queue", desk.namespace)


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Print a figure beside the test's name."""

    def write(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f" [{text}]")

    return write


def authorities(calls: Api) -> list[x509.Certificate]:
    """The authorities in the Secret."""
    return x509.load_pem_x509_certificates(base64.b64decode(calls.done("GET", _SECRET)["data"]["ca.crt"]))


def certificate(calls: Api) -> bytes:
    """The serving certificate in the Secret."""
    return base64.b64decode(calls.done("GET", _SECRET)["data"]["tls.crt"])


def shown(calls: Api) -> bytes:
    """The certificate that whichever replica takes the connection presents."""
    service = calls.done("GET", _SERVICE_PATH)["spec"]
    return ssl.get_server_certificate((service["clusterIP"], service["ports"][0]["port"])).encode()


def bundles(calls: Api) -> set[str]:
    """The caBundles of all webhooks of both configurations, "" where there is none."""
    return {
        webhook["clientConfig"].get("caBundle", "")
        for resource in CONFIGURATIONS
        for webhook in calls.done("GET", resource.path(name="muster"))["webhooks"]
    }


def everywhere(calls: Api) -> bool:
    """Whether every webhook has exactly the Secret's authorities."""
    return bundles(calls) == {calls.done("GET", _SECRET)["data"]["ca.crt"]}


def test_ca_rotation_under_load_with_0_failures(calls: Api, load: Load, tell: Callable[[str], None]) -> None:
    """The authority and the certificate change as asked for, then once more because the Secret was emptied."""
    first, before = authorities(calls)[0], certificate(calls)
    with load:
        rotation = {"metadata": {"annotations": {"muster.dev/rotate": "authority"}}}
        calls.done("PATCH", _SECRET, rotation, patch="merge")
        wait_for("the new authority alone", lambda: first not in authorities(calls), PATIENCE)
        second, between = authorities(calls)[0], certificate(calls)
        calls.done("PATCH", _SECRET, {"data": None}, patch="merge")
        wait_for("yet another certificate", lambda: "data" in calls.done("GET", _SECRET), PATIENCE)
        wait_for("another authority to sign", lambda: certificate(calls) not in (before, between), PATIENCE)
        wait_for(
            "both replicas to serve it", lambda: {shown(calls) for _ in range(8)} == {certificate(calls)}, PATIENCE
        )
        load.lasts(0.5)
    assert len({first, second, authorities(calls)[0]}) == 3
    tell(f"{len(load.attempts())} pods, {len(load.failures())} failed")
    assert not kinds(load.failures())
    said = calls.done("GET", EVENTS.path("muster-system"))["items"]
    notes = {event["note"] for event in said if event["reason"] == "CertificateRotated"}
    assert any("added a new authority, as was asked for" in note for note in notes)


def served_by_all(calls: Api) -> bool:
    """Whether whoever takes the connection presents what is in the Secret."""
    return {shown(calls) for _ in range(8)} == {certificate(calls)}


def test_rotation_of_the_serving_certificate_alone_under_load_with_0_failures(
    calls: Api, load: Load, tell: Callable[[str], None]
) -> None:
    """Asked for, and made by one replica for both; the authority stays."""
    authority, before = authorities(calls), certificate(calls)
    with load:
        rotation = {"metadata": {"annotations": {"muster.dev/rotate": "serving"}}}
        calls.done("PATCH", _SECRET, rotation, patch="merge")
        wait_for("another certificate", lambda: certificate(calls) != before, PATIENCE)
        wait_for("both replicas to serve it", lambda: served_by_all(calls), PATIENCE)
        load.lasts(0.5)
    tell(f"{len(load.attempts())} pods, {len(load.failures())} failed")
    assert not kinds(load.failures())
    assert authorities(calls) == authority
    assert "muster.dev/rotate" not in calls.done("GET", _SECRET)["metadata"].get("annotations", {})


def _of_another() -> dict[str, str]:
    """A key that is not its certificate's."""
    return {"tls.key": issue([_SERVICE], dt.datetime.now(dt.UTC)).secret_data()["tls.key"]}


def test_spoilt_secret_is_mended_under_load_with_0_failures(
    calls: Api, load: Load, tell: Callable[[str], None]
) -> None:
    """Emptied, half gone, no certificate at all, the key of another: what is served goes on until all trust the new."""
    spoilt: list[object] = [
        None,
        {"ca.key": None},
        {"tls.crt": base64.b64encode(b"no certificate").decode()},
        _of_another(),
    ]
    with load:
        for data in spoilt:
            calls.done("PATCH", _SECRET, {"data": data}, patch="merge")
            wait_for("the Secret to be whole", lambda: _whole(calls), PATIENCE)
            wait_for("both replicas to serve what it holds", lambda: served_by_all(calls), PATIENCE)
            wait_for("every caBundle to have its authorities", lambda: _trusted(calls), PATIENCE)
        load.lasts(0.5)
    tell(f"{len(load.attempts())} pods, {len(load.failures())} failed")
    assert not kinds(load.failures())
    said = calls.done("GET", EVENTS.path("muster-system"))["items"]
    assert any(event["reason"] == "CertificateInvalid" for event in said)


def _whole(calls: Api) -> bool:
    try:
        Certificates.from_secret(calls.done("GET", _SECRET).get("data") or {})
    except InvalidCertificateError:
        return False
    return True


def _trusted(calls: Api) -> bool:
    wanted = set(authorities(calls))
    return all(wanted <= authorities_in(base64.b64decode(one)) for one in bundles(calls))


def test_first_start_of_three_replicas_at_once_makes_one_certificate(
    calls: Api, webhook: MusterInstall, load: Load, tell: Callable[[str], None]
) -> None:
    """As after `helm install`: an empty Secret, no caBundle, nobody who leads; when all are ready no call fails."""
    webhook.stop_webhooks()
    calls.done("PATCH", _SECRET, {"data": None}, patch="merge")
    for resource in CONFIGURATIONS:
        path = resource.path(name="muster")
        found = calls.done("GET", path)
        for item in found["webhooks"]:
            item["clientConfig"].pop("caBundle", None)
        calls.done("PUT", path, found)
    for _ in range(3):
        webhook.start_webhook()
    webhook.wait_ready(PATIENCE)
    with load:
        load.lasts(0.5)
    tell(f"{len(load.attempts())} pods, {len(load.failures())} failed")
    assert not kinds(load.failures())
    assert len(authorities(calls)) == 1
    assert {shown(calls) for _ in range(16)} == {certificate(calls)}
    assert everywhere(calls)


# What Python calls the time is so many seconds off in a process that finds this on its path.
_SKEWED = """
import datetime, os, time
off = float(os.environ["OFF_BY"])
true, Real = time.time, datetime.datetime
time.time = lambda: true() + off
class Skewed(Real):
    @classmethod
    def now(cls, tz=None):
        return Real.now(tz) + datetime.timedelta(seconds=off)
datetime.datetime = Skewed
"""


def test_replicas_whose_clocks_are_years_off_serve_and_renew_nothing(
    calls: Api, webhook: MusterInstall, load: Load, tmp_path: Path
) -> None:
    """To one the certificate ended long ago, to the other it begins far in the future: the apiserver's time counts."""
    before = calls.done("GET", _SECRET)["data"]
    (tmp_path / "sitecustomize.py").write_text(_SKEWED)
    path = f"{tmp_path}:{Path(__file__).parents[2]}"
    webhook.stop_webhooks()
    years = 2 * 365 * 86400
    off = [webhook.start_webhook(env={"PYTHONPATH": path, "OFF_BY": str(by)}) for by in (years, -years)]
    webhook.wait_ready(PATIENCE)
    with load:
        load.lasts(1)
    now = dt.datetime.now(dt.UTC).year
    logged = [re.search(r"^.*?(20\d\d)-", process.log.read_text()) for process in off]
    assert [abs(int(found[1]) - now) >= 1 for found in logged if found] == [True, True], "their clocks were right"
    assert not kinds(load.failures())
    assert calls.done("GET", _SECRET)["data"] == before
    webhook.stop_webhooks()


@pytest.mark.parametrize("off", [50, -50])
async def test_certificates_made_by_an_apiserver_s_clock_that_is_off_are_good_for_another_s(
    bare: Testbed, calls: Api, webhook: MusterInstall, tmp_path: Path, off: int
) -> None:
    """First start of a replica that asks an apiserver whose clock is so many minutes off; the other one calls it."""
    webhook.stop_webhooks()
    calls.done("PATCH", _SECRET, {"data": None}, patch="merge")
    (own,) = json.loads(webhook.programs["webhook"].kubeconfig.read_text())["users"]
    async with FaultyApiserver.in_front_of(bare) as proxy:
        proxy.date = lambda: format_datetime(dt.datetime.now(dt.UTC) + dt.timedelta(minutes=off), usegmt=True)
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_text(kubeconfig_text(proxy.url, bare.ca_file, own["user"]["token"]))
        process = webhook.start_webhook(f"--kubeconfig={kubeconfig}")
        await asyncio.to_thread(webhook.wait_ready, PATIENCE)
        made = x509.load_pem_x509_certificate(certificate(calls)).not_valid_before_utc
        queue = builders.queue("never-made", cpu="1")
        queue["spec"]["parent"] = "missing"
        answer = await asyncio.to_thread(calls, "POST", f"{QUEUES.path()}?dryRun=All", queue)
        webhook.webhooks.remove(process)
        await asyncio.to_thread(process.stop)
    assert abs(made + dt.timedelta(minutes=60 - off) - dt.datetime.now(dt.UTC)) < dt.timedelta(minutes=5)
    assert "queues.muster.dev" in answer.message, "nobody was called, or nobody believed"


def test_rolling_restart_under_load_with_0_failures(
    pair: MusterInstall, load: Load, tell: Callable[[str], None]
) -> None:
    """As a Deployment does it: one more, and when it is ready an old one ends; twice."""
    with load:
        for _ in range(2):
            pair.start_webhook()
            pair.wait_ready(PATIENCE)
            load.lasts(0.2)
            pair.webhooks.pop(0).stop(grace=PATIENCE)
        load.lasts(0.5)
    tell(f"{len(load.attempts())} pods, {len(load.failures())} failed")
    assert not kinds(load.failures())


def test_kill_9_of_one_replica_fails_what_was_under_way_in_it(
    pair: MusterInstall, load: Load, tell: Callable[[str], None]
) -> None:
    """Nothing that is sent later, though connections to it were kept."""
    with load:
        dying = pair.webhooks.pop(0)
        began = time.monotonic()
        dying.kill()
        # Until it has read that a kept connection ended, the apiserver may still write to it. It has had its turn when
        # it has answered others.
        load.lasts(0.5)
        heard = time.monotonic() + 1
        load.lasts(3)
    failures = load.failures()
    under_way = [one for one in load.attempts() if one.sent <= heard and one.answered >= began]
    tell(f"{len(failures)} of {len(under_way)} under way failed")
    assert all(one in under_way for one in failures), kinds(one for one in failures if one not in under_way)


def test_with_no_replica_every_failure_lies_in_between(
    pair: MusterInstall, load: Load, tell: Callable[[str], None]
) -> None:
    """From the moment that the last one ends until another is ready, and not a call longer."""
    with load:
        down = time.monotonic()
        for process in pair.webhooks:
            process.signal(signal.SIGKILL)
        pair.stop_webhooks()
        load.lasts(0.5)
        pair.start_webhook()
        pair.wait_ready(PATIENCE)
        up = time.monotonic()
        load.lasts(1)
    failures = load.failures()
    tell(f"{len(failures)} failed in {up - down:.1f} s")
    assert len(failures) > 10
    assert all(one.answered >= down and one.sent <= up for one in failures)
    assert all("failed calling webhook" in said for said in kinds(failures))


def test_mounted_certificates_as_cert_manager_s_are_served_and_reloaded(
    calls: Api, webhook: MusterInstall, load: Load, tmp_path: Path
) -> None:
    """ca.crt, tls.crt and tls.key in a folder that a kubelet would keep; the caBundles are left to others."""
    held = Certificates.from_secret(calls.done("GET", _SECRET)["data"])
    _mount(tmp_path, held)
    webhook.stop_webhooks()
    webhook.start_webhook(f"--certificate-directory={tmp_path}")
    webhook.wait_ready(PATIENCE)
    before, renewed = bundles(calls), held.with_new_pair([_SERVICE], dt.datetime.now(dt.UTC), Lives())
    with load:
        _mount(tmp_path, renewed)
        wait_for("the new files to be served", lambda: shown(calls) == renewed.pair.certificate, PATIENCE)
        load.lasts(0.2)
    assert not kinds(load.failures())
    assert bundles(calls) == before
    webhook.stop_webhooks()


def _mount(folder: Path, certificates: Certificates) -> None:
    for name in ("ca.crt", "tls.crt", "tls.key"):
        # Each at once, but not together: between two of them they do not match, and what was before is served.
        fresh = folder / f"{name}.new"
        fresh.write_bytes(base64.b64decode(certificates.secret_data()[name]))
        fresh.replace(folder / name)


@pytest.mark.parametrize("how", ["emptied", "taken away", "of somebody else"])
def test_overwritten_ca_bundle_is_written_again_within_seconds(
    calls: Api, webhook: MusterInstall, tell: Callable[[str], None], how: str
) -> None:
    """As `helm upgrade --force` and GitOps tools do it."""
    del webhook
    foreign = base64.b64encode(issue(["elsewhere.svc"], dt.datetime.now(dt.UTC)).pair.certificate).decode()

    def mended() -> float:
        for resource in CONFIGURATIONS:
            path = resource.path(name="muster")
            found = calls.done("GET", path)
            for item in found["webhooks"]:
                if how == "taken away":
                    del item["clientConfig"]["caBundle"]
                else:
                    item["clientConfig"]["caBundle"] = "" if how == "emptied" else foreign
            calls.done("PUT", path, found)
        began = time.monotonic()
        wait_for("the caBundles to be right", lambda: everywhere(calls), PATIENCE, interval=0.02)
        return time.monotonic() - began

    # Muster looks by itself ten seconds after the last time: not so soon after this.
    mended()
    # A busy machine is none of its business, and not busy for ever.
    seconds = [mended()]
    while seconds[-1] >= 5 and len(seconds) < 5:
        seconds.append(mended())
    tell(f"{seconds[-1]:.2f} s")
    assert seconds[-1] < 5


def test_helm_upgrade_leaves_secret_and_ca_bundles_alone(calls: Api, webhook: MusterInstall) -> None:
    """Both are muster's, and an upgrade must not make the apiserver call in vain."""
    wait_for("the caBundles to be right", lambda: everywhere(calls), PATIENCE)
    before = calls.done("GET", _SECRET)["data"], bundles(calls)
    webhook.testbed.helm(
        *("upgrade", webhook.release, str(CHART), "--namespace", webhook.namespace, "--reuse-values"),
        "--set=webhook.logLevel=info",
    )
    assert (calls.done("GET", _SECRET)["data"], bundles(calls)) == before
