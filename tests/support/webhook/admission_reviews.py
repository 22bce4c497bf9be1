"""AdmissionReviews as the apiserver sends them, and a stand-in for the client behind the webhook's knowledge."""

import base64
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from muster.gangs.intent import Defaults
from muster.kube.errors import ApiError
from muster.model.objects import Namespace, PriorityClass, Queue
from muster.model.pods import Pod
from muster.model.projection import Projection
from muster.model.resource import POD_GROUPS, PODS, Resource
from muster.resources.elastic_quotas import ElasticQuota
from muster.workloads import SOURCES, kind_of
from tests.support.controller.stores import fill_added, fill_outsiders
from tests.support.manifests.observed import DEFAULTS, JSON, NAMESPACE, as_client, as_json, made, namespace
from webhook.reviews.cluster_cache import ClusterCache
from webhook.reviews.cluster_reader import ClusterReader
from webhook.reviews.codec import AdmissionRequest, AdmissionResponse, decode_review, encode_answer
from webhook.server.limits import Limits, ReviewClass


@dataclass
class Reader:
    """Answers direct reads: an object by `plural/name`, an error, or 404; and lists of PodGroups, None for an error."""

    objects: dict[str, JSON | Exception] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)
    pod_groups: Sequence[JSON] | None = ()
    pods: Sequence[JSON] = ()

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, deadline: float = 10.0
    ) -> bytes:
        """Read one object; reads have little time."""
        assert deadline <= 2.0
        assert resource.path(namespace, name)
        key = f"{resource.plural}/{name}"
        self.reads.append(key)
        found = self.objects.get(key, ApiError(404, "NotFound", f"{key} not found"))
        if isinstance(found, Exception):
            raise found
        return as_json(found).encode()

    async def list_page(self, resource: Resource, *, deadline: float, **_: object) -> bytes:
        """List the PodGroups of all namespaces, or pods."""
        if resource == PODS:
            return as_json({"items": list(self.pods)}).encode()
        assert (resource.plural, deadline <= 2.0) == (POD_GROUPS.plural, True)
        if resource != POD_GROUPS:
            # The cluster serves none of other schedulers.
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        if self.pod_groups is None:
            raise ApiError(503, "", "busy")
        return as_json({"items": list(self.pod_groups)}).encode()


def knowing(
    reader: Reader | None = None,
    *,
    workloads: Iterable[JSON] = (),
    queues: Iterable[JSON] = (),
    classes: Iterable[JSON] = (),
    namespaces: Iterable[JSON] | None = None,
    pods: Iterable[JSON] = (),
    ranges: Iterable[JSON] = (),
    runtimes: Iterable[JSON] = (),
    quotas: Iterable[JSON] = (),
    elastic: Iterable[JSON] = (),
    defaults: Defaults = DEFAULTS,
) -> ClusterReader:
    """A review's reader: the watches have shown exactly these objects; all others are read through `reader`."""
    cache = ClusterCache(as_client(reader or Reader()), defaults)
    for item in workloads:
        kind = kind_of(item["apiVersion"], item["kind"])
        if kind is not None:
            read = Projection(cache.workload_type(kind)).decode
            cache.workloads[kind].apply("added", read(json.dumps(item).encode()))
        for source in SOURCES:
            if item["kind"] == source.resource.kind:
                cache.sources[source].apply("added", made(source.decoded, item))
    cache.queues.replace_all([made(Queue, item) for item in queues])
    cache.priority_classes.replace_all([made(PriorityClass, item) for item in classes])
    seen = [namespace()] if namespaces is None else namespaces
    cache.namespaces.replace_all([made(Namespace, item) for item in seen])
    fill_added(cache.added, ranges, runtimes, quotas)
    cache.elastic_quotas.store.replace_all([made(ElasticQuota, item) for item in elastic])
    fill_outsiders(cache.unmanaged_pods, [made(Pod, item) for item in pods])
    return ClusterReader(cache, ReviewClass(Limits()).slot(large=False, seconds=600))


def review(object_: JSON | None, *, old: JSON | None = None, operation: str = "CREATE", **kind: str) -> JSON:
    """The whole AdmissionReview of an object; a pod unless `kind` says otherwise."""
    api_version = (object_ or {}).get("apiVersion", "v1")
    group, _, version = api_version.rpartition("/")
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": {"group": group, "version": version, "kind": (object_ or {}).get("kind", "Pod"), **kind},
            "resource": {"group": group, "version": version, "resource": "ignored"},
            "operation": operation,
            "namespace": NAMESPACE,
            "userInfo": {"username": "system:serviceaccount:ray-system:kuberay-operator"},
            "object": object_,
            "oldObject": old,
            "dryRun": False,
            "options": None,
        },
    }


def request(object_: JSON | None, **rest: Any) -> AdmissionRequest:  # noqa: ANN401 - whatever `review` takes
    return decode_review(as_json(review(object_, **rest)).encode())


def answered(answer: AdmissionResponse) -> JSON:
    """The response as the apiserver reads it."""
    response: JSON = json.loads(encode_answer("u", answer))["response"]
    return response


def patch_of(answer: AdmissionResponse) -> list[JSON]:
    """The operations as the apiserver decodes them."""
    response = answered(answer)
    assert response["patchType"] == "JSONPatch"
    operations: list[JSON] = json.loads(base64.b64decode(response["patch"], validate=True))
    return operations
