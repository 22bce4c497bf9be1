"""Services whose process is one of the testbed's own, not a pod, the webhooks behind them, and their certificates."""

import base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hack.testbed.errors import TestbedError
from hack.testbed.pki import Authority
from hack.testbed.site import Site

# The longest timeout that Kubernetes allows: a late answer counts as a refusal.
_REVIEW_SECONDS = 30


def host_service(site: Site, namespace: str, name: str, port: int) -> str:
    """Create a Service of this port, when it is not there, and return the address that its process has to bind.

    That is its ClusterIP, on loopback. With a real node kube-proxy leads it to the node's address.
    """
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": [{"port": port}]}}
    created = site.api.apply(f"/api/v1/namespaces/{namespace}/services/{name}", service)
    if not site.real_node:
        return str(created["spec"]["clusterIP"])
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "ports": [{"port": port}],
        "endpoints": [{"addresses": [site.node_address]}],
    }
    site.api.apply(f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices/{name}", endpoints)
    return site.node_address


def lead_webhooks(site: Site, service: str, port: int, configurations: Iterable[dict[str, Any]], bundle: str) -> None:
    """Create these webhook configurations, which lead to this port of a Service (`namespace/name`).

    Without a `bundle` the webhook's own process fills it in.
    """
    namespace, _, name = service.partition("/")
    for configuration in configurations:
        for webhook in configuration["webhooks"]:
            webhook["timeoutSeconds"] = _REVIEW_SECONDS
            webhook["clientConfig"]["service"] |= {"name": name, "namespace": namespace, "port": port}
            if bundle:
                webhook["clientConfig"]["caBundle"] = bundle
        plural = f"{configuration['kind'].lower()}s"
        site.api.apply(
            f"/apis/admissionregistration.k8s.io/v1/{plural}/{configuration['metadata']['name']}", configuration
        )


def mounted_certificate(site: Site, folder: Path, *, authority: str, namespace: str, secret: str, service: str) -> str:
    """Create the Secret of a Service's certificate, and the files that a kubelet would mount in `folder`.

    For operators that rotate their own (open-policy-agent's cert-controller): such a one waits until the kubelet has
    mounted the Secret that it fills. Made beforehand it is spared a rotation, and a restart. Return the caBundle of the
    new authority, which has this common name.
    """
    created = Authority.create(authority)
    ca, ca_key = created.pem()
    certificate, key = created.issue([f"{service}.{namespace}.svc"])
    files = {"ca.crt": ca, "ca.key": ca_key, "tls.crt": certificate, "tls.key": key}
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).touch(mode=0o600)
        (folder / name).write_bytes(content)
    data = {name: base64.b64encode(content).decode() for name, content in files.items()}
    site.api.apply(
        f"/api/v1/namespaces/{namespace}/secrets/{secret}",
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": secret}, "data": data},
    )
    return data["ca.crt"]


def tried(site: Site, collection: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the object that the apiserver would create; empty where it, or a webhook that it calls, refuses."""
    try:
        return site.api.create(f"{collection}?dryRun=All", manifest)
    except TestbedError:
        return {}
