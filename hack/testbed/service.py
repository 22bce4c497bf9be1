"""Services whose process is one of the testbed's own, not a pod, and the webhooks behind them."""

from collections.abc import Iterable
from typing import Any

from hack.testbed.site import Site

# What is called late is refused: as long as Kubernetes allows.
_REVIEW_SECONDS = 30


def host_service(site: Site, namespace: str, name: str, port: int) -> str:
    """Create a Service of this port, when it is not there, and return the address that its process has to bind.

    That is its ClusterIP, on loopback. Beside a real node kube-proxy leads it to the node's address.
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

    Without a `bundle` what is called fills in its own.
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
