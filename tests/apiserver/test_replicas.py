"""Two replicas at one address, 50 pods a second with failurePolicy Fail, and what must not fail any of them."""

import asyncio
import base64
import datetime as dt
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from email.utils import format_datetime
from pathlib import Path

import pytest
from cryptography import x509

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.model.names import QUEUE_LABEL
from muster.model.resource import EVENTS, QUEUES
from muster.process.certificates import Certificates, Lives, issue
from tests.apiserver.conftest import running
from tests.support.cluster.desk import PATIENCE, Desk, Manifest, open_desk
from tests.support.cluster.pod_load import Load, kinds
from tests.support.cluster.trust import (
    SECRET,
    authorities,
    bundles,
    certificate,
    everywhere,
    forget,
    served_by_all,
    settled,
    shown,
    trusted,
    whole,
)
from tests.support.faults.apiserver import FaultyApiserver
from tests.support.manifests import applied
from webhook.certificates.bundles import CONFIGURATIONS

pytestmark = pytest.mark.part("replicas")

CHART = Path(__file__).parents[2] / "charts" / "muster"
_SERVICE = "muster-webhook.muster-system.svc"
# One look reads both configurations and the Secret: 150 to 200 a second with two cores, and nobody else at work. Muster
# looks by itself after ten seconds. These are a third of them: the webhook may wait longer for a core than the looks.
_LOOKS_OF_A_WATCH = 500


@pytest.fixture(scope="module")
def release(webhook_of_session: MusterInstall) -> Iterator[MusterInstall]:
    """The release, whatever replicas the test before has left; in the end one is."""
    yield webhook_of_session
    while len(webhook_of_session.webhooks) > 1:
        webhook_of_session.webhooks.pop().stop(grace=PATIENCE)


@pytest.fixture
def pair(release: MusterInstall) -> MusterInstall:
    """Two replicas that serve."""
    running(release)
    while len(release.webhooks) > 2:
        release.webhooks.pop().stop(grace=PATIENCE)
    while len(release.webhooks) < 2:
        release.start_webhook()
    release.wait_ready(PATIENCE)
    return release


@pytest.fixture
def nobody(release: MusterInstall) -> MusterInstall:
    """No replica runs."""
    release.stop_webhooks()
    return release


@pytest.fixture(scope="module")
def gang(bare: Testbed, calls: Api, release: MusterInstall) -> Iterator[tuple[Desk, Manifest]]:
    """A RayCluster of muster's and its namespace."""
    running(release)
    with open_desk(bare, calls, "replicas") as desk:
        desk.create(applied.queue(desk.namespace, cpu="8"))
        yield desk, desk.create(applied.ray_cluster("c").label(QUEUE_LABEL, desk.namespace).workers(2).manifest())
        desk.delete(QUEUES, desk.namespace)


@pytest.fixture
def load(calls: Api, gang: tuple[Desk, Manifest]) -> Load:
    """Members of the RayCluster, not yet begun."""
    return Load(calls, *gang)


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Print a figure beside the test's name."""

    def write(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f" [{text}]")

    return write


@pytest.mark.usefixtures("pair")
def test_ca_rotation_under_load_with_0_failures(calls: Api, load: Load, tell: Callable[[str], None]) -> None:
    """The authority and the certificate change as asked for, then once more because the Secret was emptied."""
    first, before = authorities(calls)[0], certificate(calls)
    with load:
        rotation = {"metadata": {"annotations": {"muster.dev/rotate": "authority"}}}
        calls.done("PATCH", SECRET, rotation, patch="merge")
        wait_for("the new authority alone", lambda: first not in authorities(calls), PATIENCE)
        second, between = authorities(calls)[0], certificate(calls)
        calls.done("PATCH", SECRET, {"data": None}, patch="merge")
        wait_for("yet another certificate", lambda: "data" in calls.done("GET", SECRET), PATIENCE)
        wait_for("another authority to sign", lambda: certificate(calls) not in (before, between), PATIENCE)
        wait_for("both replicas to serve it", lambda: served_by_all(calls), PATIENCE)
        load.lasts(0.5)
    assert len({first, second, authorities(calls)[0]}) == 3
    tell(f"{len(load.attempts())} pods, {len(load.failures())} failed")
    assert not kinds(load.failures())
    said = calls.done("GET", EVENTS.path("muster-system"))["items"]
    notes = {event["note"] for event in said if event["reason"] == "CertificateRotated"}
    assert any("added a new authority, as was asked for" in note for note in notes)


@pytest.mark.usefixtures("pair")
def test_rotation_of_the_serving_certificate_alone_under_load_with_0_failures(
    calls: Api, load: Load, tell: Callable[[str], None]
) -> None:
    """Asked for, and made by one replica for both; the authority stays."""
    wait_for("the rotations of before to be over", lambda: settled(calls), PATIENCE)
    authority, before = authorities(calls), certificate(calls)
    with load:
        rotation = {"metadata": {"annotations": {"muster.dev/rotate": "serving"}}}
        calls.done("PATCH", SECRET, rotation, patch="merge")
        wait_for("another certificate", lambda: certificate(calls) != before, PATIENCE)
        wait_for("both replicas to serve it", lambda: served_by_all(calls), PATIENCE)
        load.lasts(0.5)
    tell(f"{len(load.attempts())} pods, {len(load.failures())} failed")
    assert not kinds(load.failures())
    assert authorities(calls) == authority
    assert "muster.dev/rotate" not in calls.done("GET", SECRET)["metadata"].get("annotations", {})


def _of_another() -> dict[str, str]:
    """A key that is not its certificate's."""
    return {"tls.key": issue([_SERVICE], dt.datetime.now(dt.UTC)).secret_data()["tls.key"]}


@pytest.mark.usefixtures("pair")
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
            calls.done("PATCH", SECRET, {"data": data}, patch="merge")
            wait_for("the Secret to be whole", lambda: whole(calls), PATIENCE)
            wait_for("both replicas to serve what it holds", lambda: served_by_all(calls), PATIENCE)
            wait_for("every caBundle to have its authorities", lambda: trusted(calls), PATIENCE)
        load.lasts(0.5)
    tell(f"{len(load.attempts())} pods, {len(load.failures())} failed")
    assert not kinds(load.failures())
    said = calls.done("GET", EVENTS.path("muster-system"))["items"]
    assert any(event["reason"] == "CertificateInvalid" for event in said)


def test_first_start_of_three_replicas_at_once_makes_one_certificate(
    calls: Api, nobody: MusterInstall, load: Load, tell: Callable[[str], None]
) -> None:
    """As after `helm install`: an empty Secret, no caBundle, nobody who leads; when all are ready no call fails."""
    forget(calls)
    for _ in range(3):
        nobody.start_webhook()
    nobody.wait_ready(PATIENCE)
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
    calls: Api, nobody: MusterInstall, load: Load, tmp_path: Path
) -> None:
    """To one the certificate ended long ago, to the other it begins far in the future: the apiserver's time counts."""
    before = calls.done("GET", SECRET)["data"]
    (tmp_path / "sitecustomize.py").write_text(_SKEWED)
    path = f"{tmp_path}:{Path(__file__).parents[2]}"
    years = 2 * 365 * 86400
    off = [nobody.start_webhook(env={"PYTHONPATH": path, "OFF_BY": str(by)}) for by in (years, -years)]
    nobody.wait_ready(PATIENCE)
    with load:
        load.lasts(1)
    now = dt.datetime.now(dt.UTC).year
    logged = [re.search(r"^.*?(20\d\d)-", process.log.read_text()) for process in off]
    assert [abs(int(found[1]) - now) >= 1 for found in logged if found] == [True, True], "their clocks were right"
    assert not kinds(load.failures())
    assert calls.done("GET", SECRET)["data"] == before
    nobody.stop_webhooks()


@pytest.mark.parametrize("off", [50, -50])
async def test_certificates_made_by_an_apiserver_s_clock_that_is_off_are_good_for_another_s(
    bare: Testbed, calls: Api, nobody: MusterInstall, tmp_path: Path, off: int
) -> None:
    """First start of a replica that asks an apiserver whose clock is so many minutes off; the other one calls it."""
    forget(calls)
    async with FaultyApiserver.in_front_of(bare) as proxy:
        proxy.date = lambda: format_datetime(dt.datetime.now(dt.UTC) + dt.timedelta(minutes=off), usegmt=True)
        process = nobody.start_webhook(nobody.through("webhook", proxy.url, tmp_path))
        await asyncio.to_thread(nobody.wait_ready, PATIENCE)
        made = x509.load_pem_x509_certificate(certificate(calls)).not_valid_before_utc
        queue = applied.queue("never-made", cpu="1")
        queue["spec"]["parent"] = "missing"
        answer = await asyncio.to_thread(calls, "POST", f"{QUEUES.path()}?dryRun=All", queue)
        nobody.webhooks.remove(process)
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
        load.lasts(2)
        heard = time.monotonic()
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
    calls: Api, nobody: MusterInstall, load: Load, tmp_path: Path
) -> None:
    """ca.crt, tls.crt and tls.key in a folder that a kubelet would keep; the caBundles are left to others."""
    held = Certificates.from_secret(calls.done("GET", SECRET)["data"])
    _mount(tmp_path, held)
    nobody.start_webhook(f"--certificate-directory={tmp_path}")
    nobody.wait_ready(PATIENCE)
    before, renewed = bundles(calls), held.with_new_pair([_SERVICE], dt.datetime.now(dt.UTC), Lives())
    with load:
        _mount(tmp_path, renewed)
        wait_for("the new files to be served", lambda: shown(calls) == renewed.pair.certificate, PATIENCE)
        load.lasts(0.2)
    assert not kinds(load.failures())
    assert bundles(calls) == before
    nobody.stop_webhooks()


def _mount(folder: Path, certificates: Certificates) -> None:
    for name in ("ca.crt", "tls.crt", "tls.key"):
        # Each at once, but not together: between two of them they do not match, and what was before is served.
        fresh = folder / f"{name}.new"
        fresh.write_bytes(base64.b64decode(certificates.secret_data()[name]))
        fresh.replace(folder / name)


@pytest.mark.usefixtures("webhook")
@pytest.mark.parametrize("how", ["emptied", "taken away", "of somebody else"])
def test_overwritten_ca_bundle_is_written_again_within_a_second(
    calls: Api, tell: Callable[[str], None], how: str
) -> None:
    """As `helm upgrade --force` and GitOps tools do it; each time, and not only when muster looks by itself.

    A second is counted in looks, which take longer on a busy machine, as do muster's. What somebody else has written
    stays beside muster's authority for a while, in case that he needs it.
    """
    foreign = base64.b64encode(issue(["elsewhere.svc"], dt.datetime.now(dt.UTC)).pair.certificate).decode()

    def overwrite() -> None:
        for resource in CONFIGURATIONS:
            path = resource.path(name="muster")
            found = calls.done("GET", path)
            for item in found["webhooks"]:
                if how == "taken away":
                    del item["clientConfig"]["caBundle"]
                else:
                    item["clientConfig"]["caBundle"] = "" if how == "emptied" else foreign
            calls.done("PUT", path, found)

    wait_for("the caBundles to be right", lambda: everywhere(calls), PATIENCE)
    for _ in range(3):
        overwrite()
        began = time.monotonic()
        needed = _looks_until_trusted(calls)
        tell(f"{needed} looks, {time.monotonic() - began:.2f} s")
        assert needed <= _LOOKS_OF_A_WATCH
    wait_for("what is not muster's to be gone", lambda: everywhere(calls), PATIENCE)


def _looks_until_trusted(calls: Api) -> int:
    seen: list[bool] = []

    def look() -> bool:
        seen.append(trusted(calls))
        return seen[-1]

    wait_for("the authority to be back", look, PATIENCE, interval=0)
    return len(seen)


def test_helm_upgrade_leaves_secret_and_ca_bundles_alone(calls: Api, webhook: MusterInstall) -> None:
    """Both are muster's, and an upgrade must not make the apiserver call in vain."""
    wait_for("the caBundles to be right", lambda: everywhere(calls), PATIENCE)
    before = calls.done("GET", SECRET)["data"], bundles(calls)
    webhook.testbed.helm(
        *("upgrade", webhook.release, str(CHART), "--namespace", webhook.namespace, "--reuse-values"),
        "--set=webhook.logLevel=info",
    )
    assert (calls.done("GET", SECRET)["data"], bundles(calls)) == before
