"""The URL path of each kind at the apiserver: no other module writes one."""

from dataclasses import dataclass
from urllib.parse import quote


class BadNameError(ValueError):
    """A name, or the name of a namespace, that no object has: it would lead elsewhere, or cannot be written."""


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind at the apiserver; `group` is "" for the core group."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects: `v1`, or `group/version`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """The name kubectl accepts without ambiguity, `podgroups.scheduling.volcano.sh`; for logs and metrics."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str | None = None, name: str | None = None) -> str:
        """Return the URL path of an object, or of a collection without `name` (in all namespaces without `namespace`).

        Raises ValueError when a namespace is missing or too many, BadNameError for a name that is no path segment.
        """
        if namespace and not self.namespaced:
            raise ValueError(f"{self.full_name} has no namespaces, got {namespace!r}")
        if name is not None and self.namespaced and not namespace:
            raise ValueError(f"{self.full_name} {name!r} needs a namespace")
        segments = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if namespace:
            segments += ["namespaces", namespace]
        segments += [self.plural] if name is None else [self.plural, name]
        return "/" + "/".join(map(_segment, segments))


def _segment(text: str) -> str:
    # quote() leaves dots alone, and a lone "." or ".." would climb to another object.
    if text in {"", ".", ".."}:
        raise BadNameError(f"{text!r} cannot be part of a path")
    try:
        return quote(text, safe="")
    except UnicodeEncodeError as error:  # an argument of a command that is no UTF-8
        raise BadNameError(f"{text!r} cannot be part of a path") from error


PODS = Resource("", "v1", "pods", "Pod")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
LIMIT_RANGES = Resource("", "v1", "limitranges", "LimitRange")
RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
SECRETS = Resource("", "v1", "secrets", "Secret")
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
JOBS = Resource("batch", "v1", "jobs", "Job")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
RUNTIME_CLASSES = Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)
QUEUES = Resource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", namespaced=False)
ELASTIC_QUOTAS = Resource("scheduling.x-k8s.io", "v1alpha1", "elasticquotas", "ElasticQuota")
POD_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
CLUSTER_ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)


def _of_admission(kind: str, plural: str) -> Resource:
    return Resource("admissionregistration.k8s.io", "v1", plural, kind, namespaced=False)


MUTATING_WEBHOOKS = _of_admission("MutatingWebhookConfiguration", "mutatingwebhookconfigurations")
VALIDATING_WEBHOOKS = _of_admission("ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
ADMISSION_POLICIES = _of_admission("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
ADMISSION_POLICY_BINDINGS = _of_admission("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")
SELF_REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
