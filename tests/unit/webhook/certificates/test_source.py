"""Certificates of others, mounted as cert-manager's or kubectl's TLS Secret is: ca.crt, tls.crt, tls.key."""

import asyncio
import base64
import datetime as dt
import os
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509 import Certificate

from hack.testbed.waiting import PATIENCE
from muster.kube.errors import ApiError
from muster.model.objects import Namespace
from muster.model.resource import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from muster.process.certificates import Certificates, Lives, issue
from tests.support.faults.apiserver import eventually
from tests.support.manifests.observed import as_client
from tests.support.manifests.observed import made as decoded
from tests.support.webhook.certificate_store import (
    BOTH,
    NAMES,
    SECRET,
    Places,
    configuration,
    listening,
    presented,
    trust,
)
from webhook.certificates.bundles import CLOSED, CertificateEvents
from webhook.certificates.source import CertificateSource, MountedCertificates

_DAY = dt.timedelta(days=1)


@pytest.fixture
def places() -> Places:
    return Places.as_installed()


@pytest.fixture
def made(places: Places) -> Certificates:
    return issue(NAMES, places.time.now)


def mount(folder: Path, certificates: Certificates, *names: str) -> None:
    """Change the files as a kubelet does: a new folder, and then one link to it, in one step."""
    data = {name: base64.b64decode(text) for name, text in certificates.secret_data().items()}
    version = folder / f"..{len(list(folder.iterdir()))}"
    version.mkdir()
    for name in names or ("ca.crt", "tls.crt", "tls.key"):
        (version / name).write_bytes(data[name])
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    fresh = folder / "..fresh"
    fresh.symlink_to(version.name)
    fresh.replace(folder / "..data")


def mounted(places: Places, folder: Path) -> MountedCertificates:
    client = as_client(places)
    events = CertificateEvents(client, "muster-system", "mine", "pod")
    return MountedCertificates(client, events, "muster", directory=folder, names=NAMES[:1])


def trusting(places: Places, certificates: Certificates) -> None:
    """Somebody writes the caBundles."""
    bundle = certificates.secret_data()["ca.crt"]
    places.objects[BOTH[0]] = configuration(bundle)
    places.objects[BOTH[1]] = configuration(bundle)


async def test_what_is_mounted_is_served_and_nothing_is_written(
    places: Places, made: Certificates, tmp_path: Path
) -> None:
    mount(tmp_path, made)
    trusting(places, made)
    one = mounted(places, tmp_path)
    await one.reload()
    await one._check(0.0)
    assert one.ready
    assert one.trusted
    assert one.expirations == {
        "serving": made.pair.leaf.not_valid_after_utc.timestamp(),
        "authority": made.authorities[0].not_valid_after_utc.timestamp(),
    }
    assert places.writes == []
    assert places.events == []


async def test_files_that_change_are_served_to_new_connections(
    places: Places, made: Certificates, tmp_path: Path
) -> None:
    """The loop at work, on a socket that stays open."""
    mount(tmp_path, made)
    one = mounted(places, tmp_path)
    task = asyncio.create_task(one.run())
    async with asyncio.timeout(PATIENCE):
        await one.loaded.wait()
        async with listening(one) as port:
            assert await presented(port) == made.pair.certificate
            renewed = made.with_new_pair(NAMES, places.time.now, Lives())
            mount(tmp_path, renewed)
            await eventually(lambda: one._serving.pair == renewed.pair)
            assert await presented(port) == renewed.pair.certificate
    task.cancel()


@pytest.mark.parametrize("broken", ["tls.crt", "tls.key"])
async def test_what_cannot_be_served_changes_nothing_and_is_said(
    places: Places, made: Certificates, tmp_path: Path, broken: str
) -> None:
    """A Secret of which one half was written, or nonsense."""
    mount(tmp_path, made)
    one = mounted(places, tmp_path)
    await one.reload()
    os.truncate(tmp_path / broken, 40)
    await one.reload()
    assert one.ready
    assert one._serving.pair == made.pair
    assert "cannot be served" in places.notes("CertificateInvalid")[0]


@pytest.mark.parametrize("present", [[], ["tls.crt"], ["ca.crt", "tls.key"]])
async def test_a_secret_without_its_keys_is_said_and_waited_for(
    places: Places, made: Certificates, tmp_path: Path, present: list[str]
) -> None:
    if present:
        mount(tmp_path, made, *present)
    one = mounted(places, tmp_path)
    await one.reload()
    assert not one.ready
    assert "cannot read" in places.notes("CertificateInvalid")[0]
    mount(tmp_path, made)
    await one.reload()
    assert one.ready


async def test_a_secret_without_an_authority_is_served_all_the_same(
    places: Places, made: Certificates, tmp_path: Path
) -> None:
    """`kubectl create secret tls` makes one without."""
    mount(tmp_path, made, "tls.crt", "tls.key")
    one = mounted(places, tmp_path)
    await one.reload()
    assert one.ready
    assert set(one.expirations) == {"serving"}


async def test_one_for_another_name_is_said(places: Places, tmp_path: Path) -> None:
    mount(tmp_path, issue(["elsewhere.svc"], places.time.now))
    await mounted(places, tmp_path).reload()
    assert places.notes("CertificateInvalid") == [
        "tls.crt is not good for muster-webhook.muster-system.svc: add it to its DNS names"
    ]


async def test_one_that_ends_soon_is_said_and_one_that_has_ended_is_not_ready(
    places: Places, made: Certificates, tmp_path: Path
) -> None:
    """cert-manager renews at a third of the life: at a quarter something is wrong."""
    mount(tmp_path, made)
    one = mounted(places, tmp_path)
    for days, warned in [(66, 0), (2, 1)]:
        places.time.passes(days=days)
        await one.reload()
        await one._check(0.0)
        assert (one.ready, len(places.notes("CertificateExpiring"))) == (True, warned)
    places.time.passes(days=30)
    await one.reload()
    assert not one.ready


async def test_a_bundle_that_does_not_fit_is_said_when_it_lasts(
    places: Places, made: Certificates, tmp_path: Path
) -> None:
    """cert-manager's injector may take a moment longer than its issuer."""
    mount(tmp_path, made)
    trusting(places, issue(NAMES, places.time.now))
    one = mounted(places, tmp_path)
    await one.reload()
    for at, warned in [(0.0, 0), (50.0, 0), (70.0, 1)]:
        await one._check(at)
        assert (one.trusted, len(places.notes("CertificateNotTrusted"))) == (False, warned)
    trusting(places, made)
    await one._check(80.0)
    assert one.trusted


def signed_again(certificates: Certificates, end: dt.datetime) -> Certificate:
    """The first authority with its name and its key, but valid until `end`."""
    authority = certificates.authorities[0]
    builder = x509.CertificateBuilder(authority.issuer, authority.subject, authority.public_key())
    builder = builder.serial_number(x509.random_serial_number())
    for extension in authority.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    key = serialization.load_pem_private_key(certificates.ca_key, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return builder.not_valid_before(authority.not_valid_before_utc).not_valid_after(end).sign(key, hashes.SHA256())


def outlived(places: Places, folder: Path, *, renewed: bool) -> tuple[MountedCertificates, Certificates, Certificate]:
    """A certificate without ca.crt, whose authority in the caBundle ends in 100 days; the longer one is `renewed`."""
    long = issue(NAMES, places.time.now, Lives(_DAY * 1000, _DAY * 1000))
    ending = signed_again(long, places.time.now + _DAY * 100)
    mount(folder, long, "tls.crt", "tls.key")
    trusting(places, replace(long, authorities=(ending, *(long.authorities if renewed else ()))))
    return mounted(places, folder), long, ending


async def test_an_authority_that_ends_before_its_certificate_is_said_before_and_after(
    places: Places, tmp_path: Path
) -> None:
    """Callers check it too; cert-manager lets a certificate outlive it, and a Secret of kubectl's does not name it."""
    one, long, ending = outlived(places, tmp_path, renewed=False)
    looks = []
    for days in (0, 90, 11):
        places.time.passes(days=days)
        await one.reload()
        await one._check(places.time.monotonic)
        looks.append((one.trusted, len(places.notes("CertificateExpiring"))))
    assert looks == [(True, 0), (True, 1), (False, 2)]
    assert all("the authority in the caBundle ends" in note for note in places.notes("CertificateExpiring"))
    assert places.notes("CertificateNotTrusted") == []
    places.time.passes(minutes=2)
    await one.reload()
    await one._check(places.time.monotonic)
    (note,) = places.notes("CertificateNotTrusted")
    assert f"to {ending.not_valid_after_utc:%Y-%m-%d %H:%M} UTC only" in note
    assert one.expirations == {
        "serving": long.pair.leaf.not_valid_after_utc.timestamp(),
        "authority": ending.not_valid_after_utc.timestamp(),
    }


async def test_an_authority_that_was_renewed_with_its_key_is_trusted_beside_the_old_one(
    places: Places, tmp_path: Path
) -> None:
    """A caBundle with both, which changes nothing for callers when one of them ends."""
    one, long, _ = outlived(places, tmp_path, renewed=True)
    places.time.passes(days=101)
    await one.reload()
    await one._check(0.0)
    assert one.trusted
    assert one.expirations["authority"] == long.authorities[0].not_valid_after_utc.timestamp()
    assert places.events == []


def closed(places: Places, certificates: Certificates) -> None:
    """A first installation whose caBundles are there: nothing is called yet."""
    trusting(places, certificates)
    for plural in BOTH:
        for webhook in places.objects[plural]["webhooks"]:
            webhook["matchConditions"] = [{"name": CLOSED, "expression": "false"}]


async def looked(places: Places, folder: Path, *, ending: bool = False) -> MountedCertificates:
    """A replica that has looked at everything once."""
    one = mounted(places, folder)
    one.ending = ending
    await one.reload()
    await one._check(0.0)
    return one


async def test_a_first_installation_is_opened_once_it_is_reached(
    places: Places, made: Certificates, tmp_path: Path
) -> None:
    mount(tmp_path, made)
    closed(places, made)
    places.fails["ask"] = [ApiError(500, "InternalError", "failed calling webhook")]
    one = await looked(places, tmp_path)
    assert CLOSED in str(places.objects)
    assert one._changed.is_set(), "it looks again with the next reading of the files"
    one = await looked(places, tmp_path)
    assert CLOSED not in str(places.objects)
    assert not one._changed.is_set()


async def test_a_replica_that_ends_opens_no_first_installation(
    places: Places, made: Certificates, tmp_path: Path
) -> None:
    mount(tmp_path, made)
    closed(places, made)
    await looked(places, tmp_path, ending=True)
    assert CLOSED in str(places.objects)
    assert places.asked_about == 0


_CONFIGURATIONS = [(one, "metadata.name=muster", None) for one in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)]


def _watches(source: CertificateSource) -> list[tuple[object, ...]]:
    """Resource, selector and namespace of each watch; each is seen to wake the source."""
    found = source.reflectors()
    for one in found:
        source._changed.clear()
        one.store.apply("added", decoded(Namespace, {"metadata": {"name": "any"}}))
        assert source._changed.is_set()
    return [(one.resource, one._selection["field_selector"], one._selection["namespace"]) for one in found]


async def test_each_object_has_a_watch_by_its_name_that_wakes_the_source() -> None:
    """The right to watch one object is enough."""
    assert _watches(trust(Places.as_installed())) == [
        (SECRETS, f"metadata.name={SECRET}", "muster-system"),
        *_CONFIGURATIONS,
    ]


async def test_where_certificates_are_mounted_no_secret_is_watched() -> None:
    client = as_client(Places.as_installed())
    events = CertificateEvents(client, "muster-system", SECRET, "pod")
    assert _watches(MountedCertificates(client, events, "muster", directory=Path(), names=["a"])) == _CONFIGURATIONS
