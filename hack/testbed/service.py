"""Services whose process is one of the testbed's own, not a pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hack.testbed.site import Site

__all__ = ["host_service"]


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
