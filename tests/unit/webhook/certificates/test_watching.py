"""Which objects the webhook watches for its certificates."""

from pathlib import Path

from muster.kube.resource import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS
from muster.model.objects import Namespace
from tests.support.manifests.observed import as_client, made
from tests.support.webhook.certificate_store import SECRET, Places, trust
from webhook.certificates.bundles import CertificateEvents
from webhook.certificates.source import CertificateSource, MountedCertificates

BY_NAME = [(one, "metadata.name=muster", None) for one in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)]


def watches(source: CertificateSource) -> list[tuple[object, ...]]:
    """Resource, selector and namespace of each watch; each is seen to wake the source."""
    found = source.reflectors()
    for one in found:
        source._changed.clear()
        one.store.apply("added", made(Namespace, {"metadata": {"name": "any"}}))
        assert source._changed.is_set()
    return [(one.resource, one._field_selector, one._namespace) for one in found]


async def test_each_object_has_a_watch_by_its_name_that_wakes_the_source() -> None:
    """The right to watch one object is enough."""
    assert watches(trust(Places.as_installed())) == [
        (SECRETS, f"metadata.name={SECRET}", "muster-system"),
        *BY_NAME,
    ]


async def test_where_certificates_are_mounted_no_secret_is_watched() -> None:
    client = as_client(Places.as_installed())
    events = CertificateEvents(client, "muster-system", SECRET, "pod")
    assert watches(MountedCertificates(client, events, "muster", directory=Path(), names=["a"])) == BY_NAME
