"""Which objects the webhook watches for its certificates."""

from __future__ import annotations

import asyncio

from muster.kube.resource import Resource
from muster.model.objects import Namespace
from tests.support.manifests.observed import as_client, made
from webhook.certificates.watching import watches

SECRETS = Resource("", "v1", "secrets", "Secret")
CONFIGURATIONS = Resource("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "", namespaced=False)


class Unused:
    """A client of which nothing is asked here."""


def test_each_object_has_a_watch_by_its_name_that_wakes_whoever_waits() -> None:
    """The right to watch one object is enough."""
    changed = asyncio.Event()
    objects = [(SECRETS, "tls", "muster-system"), (CONFIGURATIONS, "muster", None)]
    found = watches(as_client(Unused()), objects, changed)
    assert [(one.resource, one._field_selector, one._namespace) for one in found] == [
        (SECRETS, "metadata.name=tls", "muster-system"),
        (CONFIGURATIONS, "metadata.name=muster", None),
    ]
    for one in found:
        changed.clear()
        one.store.apply("added", made(Namespace, {"metadata": {"name": "any"}}))
        assert changed.is_set()
