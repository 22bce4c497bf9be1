"""Starts the operators of Ray and Kubeflow: without any flag that has to do with gang scheduling."""

import ipaddress
from pathlib import Path
from typing import Any

import yaml

from hack.testbed.modules import module_dir
from hack.testbed.part import Launch
from hack.testbed.service import host_service, lead_webhooks, mounted_certificate, tried
from hack.testbed.site import Site
from hack.testbed.versions import chosen

_RAY_DASHBOARD_PORT = 8265

_TRAINING = "training-operator"
_TRAINING_NAMESPACE = "kubeflow"
_TRAINING_KINDS = ("tfjob", "pytorchjob", "xgboostjob", "paddlejob", "jaxjob")
# Compiled into the operator, which only looks whether tls.crt is there; it reads the files below its TMPDIR.
_TRAINING_LOOKS_AT = Path("/tmp/k8s-webhook-server/serving-certs/tls.crt")  # noqa: S108


def ray_dashboards(service_range: str) -> tuple[str, int]:
    """Return the address and port at which KubeRay looks for Ray's dashboards, those of all its clusters.

    There is no Ray in the pods, and no name of a Service leads anywhere here: KubeRay has this for its HTTP proxy, and
    a listener there learns for which Service each question is. The last address of the range is no Service's.
    """
    return str(ipaddress.ip_network(service_range)[-1]), _RAY_DASHBOARD_PORT


_SAMPLES = "config/samples"
# The Queue of KubeRay's guide, for versions whose sample has none (1.3).
_QUEUE = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "kuberay-test-queue"},
    "spec": {"weight": 1, "capability": {"cpu": "4", "memory": "6Gi"}},
}


def ray_sample() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the Queue and the RayCluster of KubeRay's sample for Volcano."""
    *queues, cluster = _sample("ray-cluster.volcano-scheduler-queue.yaml")
    return (*queues, _QUEUE)[0], cluster


def first_ray_sample() -> dict[str, Any]:
    """Return the RayCluster of step 4 of KubeRay's guide for Volcano: a head alone."""
    (cluster,) = _sample("ray-cluster.volcano-scheduler.yaml")
    return cluster


def _sample(name: str) -> list[dict[str, Any]]:
    path = module_dir("github.com/ray-project/kuberay/ray-operator") / _SAMPLES / name
    return list(yaml.safe_load_all(path.read_text()))


# Versions of KubeRay that have no options for their client's pace.
_UNPACED = ("1.3", "1.4")


def kuberay(site: Site) -> Launch:
    """KubeRay's operator."""
    health = f"127.0.0.1:{site.port_of('kuberay-health')}"
    dashboards, port = ray_dashboards(site.service_range)
    return Launch(
        (
            "--enable-leader-election=false",
            f"--metrics-addr=127.0.0.1:{site.port_of('kuberay-metrics')}",
            f"--health-probe-bind-address={health}",
            *(() if chosen("kuberay") in _UNPACED else ("--qps=1000", "--burst=2000")),
        ),
        health=f"http://{health}/readyz",
        environment={
            "KUBECONFIG": str(site.kubeconfig_of("kuberay")),
            "POD_NAMESPACE": "ray-system",
            "HTTP_PROXY": f"http://{dashboards}:{port}",
            # Not the machine's own exceptions.
            "NO_PROXY": "127.0.0.1",
        },
    )


def prepare_training(site: Site) -> None:
    """Create the Training operator's Service, certificate Secret and webhook configuration.

    It waits for its certificate before it starts a controller.
    """
    mounted = site.state / "tmp" / "k8s-webhook-server" / "serving-certs"
    bundle = mounted_certificate(
        site,
        mounted,
        authority="training-operator-ca",
        namespace=_TRAINING_NAMESPACE,
        secret=f"{_TRAINING}-webhook-cert",
        service=_TRAINING,
    )
    _TRAINING_LOOKS_AT.parent.mkdir(parents=True, exist_ok=True)
    _TRAINING_LOOKS_AT.touch()
    port = site.port_of("training-webhooks")
    host_service(site, _TRAINING_NAMESPACE, _TRAINING, port)
    upstream = module_dir("github.com/kubeflow/training-operator") / "manifests/base/webhook/manifests.yaml"
    configuration = yaml.load(upstream.read_bytes(), yaml.CSafeLoader)
    configuration["metadata"]["name"] = f"validator.{_TRAINING}.kubeflow.org"
    lead_webhooks(site, f"{_TRAINING_NAMESPACE}/{_TRAINING}", port, [configuration], bundle)


def training_serves(site: Site) -> bool:
    """True if the operator's own webhook accepts jobs, which may be a moment after it is ready."""
    container = {"name": "pytorch", "image": "none"}
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "probe"},
        "spec": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": {"containers": [container]}}}}},
    }
    return bool(tried(site, "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs", job))


def training(site: Site) -> Launch:
    """Start the Training operator for every kind but MPIJob, whose CRD belongs to the MPI operator."""
    return _training(site, "training", _TRAINING_KINDS)


def training_mpi(site: Site) -> Launch:
    """Start the Training operator for every kind, MPIJob v1 too."""
    return _training(site, "training-mpi", (*_TRAINING_KINDS, "mpijob"))


def _training(site: Site, part: str, kinds: tuple[str, ...]) -> Launch:
    health = f"127.0.0.1:{site.port_of('training-health')}"
    return Launch(
        (
            *(f"--enable-scheme={kind}" for kind in kinds),
            f"--metrics-bind-address=127.0.0.1:{site.port_of('training-metrics')}",
            f"--health-probe-bind-address={health}",
            f"--webhook-server-port={site.port_of('training-webhooks')}",
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
            "--controller-threads=4",
        ),
        health=f"http://{health}/readyz",
        environment={
            "KUBECONFIG": str(site.kubeconfig_of(part)),
            "MY_POD_NAMESPACE": _TRAINING_NAMESPACE,
            "TMPDIR": str(site.state / "tmp"),
        },
    )
