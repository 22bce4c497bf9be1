"""Starts the operators of MPIJob (v2beta1), JobSet and TrainJob: without any flag of gang scheduling.

The certificates of JobSet's and Trainer's webhooks are made here, so that neither waits for a rotation of its own.
"""

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonpatch
import yaml

from hack.testbed.errors import TestbedError
from hack.testbed.modules import module_dir
from hack.testbed.part import Launch
from hack.testbed.pki import Authority, write_pair
from hack.testbed.ports import check_free
from hack.testbed.service import host_service, lead_webhooks, tried
from hack.testbed.site import Site
from hack.testbed.waiting import wait_for

_MPI_NAMESPACE = "mpi-operator"
# Compiled into the MPI operator, and bound on every address.
_MPI_HEALTH = 8080
_JOBSET_NAMESPACE = "jobset-system"
_TRAINER_NAMESPACE = "kubeflow-system"


def prepare_mpi(site: Site) -> None:
    """Wait for the one port that the MPI operator can use, while another testbed's has it. Raises TestbedError."""
    del site

    def free() -> bool:
        check_free(_MPI_HEALTH, "the MPI operator")
        return True

    wait_for("the end of another testbed's MPI operator", free)


def mpi(site: Site) -> Launch:
    """Start the MPI operator. One per machine: the port of its health check cannot be chosen."""
    return Launch(
        (
            f"--lock-namespace={_MPI_NAMESPACE}",
            "--threadiness=4",
            "--kube-api-qps=1000",
            "--kube-api-burst=2000",
            "--controller-queue-rate-limit=1000",
            "--controller-queue-burst=2000",
        ),
        health=f"http://127.0.0.1:{_MPI_HEALTH}/healthz",
        environment={"KUBECONFIG": str(site.kubeconfig_of("mpi"))},
    )


def prepare_jobset(site: Site) -> None:
    """Create JobSet's configuration file, Service and webhook configurations, with upstream's selectors."""
    folder = module_dir("sigs.k8s.io/jobset") / "config/components/webhook"
    # Without the patches, every pod of the cluster would go through JobSet.
    configurations = _patched(folder, "patches/mutating-patch.yaml", "patches/validating-patch.yaml")
    for configuration in configurations:
        configuration["metadata"]["name"] = f"jobset-{configuration['metadata']['name']}"
    host, port = _webhooks(site, "jobset", f"{_JOBSET_NAMESPACE}/jobset-webhook-service", configurations)
    _configure(
        site,
        "jobset",
        {
            "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
            "kind": "Configuration",
            "webhook": {"host": host, "port": port},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
        },
    )


def jobset(site: Site) -> Launch:
    """JobSet's controller."""
    health = f"127.0.0.1:{site.port_of('jobset-health')}"
    return Launch(
        (
            f"--config={_configuration(site, 'jobset')}",
            "--metrics-bind-address=0",
            f"--health-probe-bind-address={health}",
        ),
        health=f"http://{health}/readyz",
        environment=_environment(site, "jobset"),
    )


def jobset_serves(site: Site) -> bool:
    """True if JobSet's webhooks accept JobSets, which may be a moment after it is ready."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}
    job_set = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "probe"},
        "spec": {"replicatedJobs": [{"name": "work", "template": {"spec": {"template": {"spec": pod}}}}]},
    }
    return bool(tried(site, "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets", job_set))


def prepare_trainer(site: Site) -> None:
    """Create Trainer's configuration file, Service and webhook configurations, with upstream's names and selectors."""
    folder = module_dir("github.com/kubeflow/trainer/v2") / "manifests/base/webhook"
    configurations = _patched(folder, "patch_mutating.yaml", "patch_validating.yaml")
    service = f"{_TRAINER_NAMESPACE}/kubeflow-trainer-controller-manager"
    host, port = _webhooks(site, "trainer", service, configurations)
    _configure(
        site,
        "trainer",
        {
            "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": _trainer_health(site)},
            "metrics": {"bindAddress": "0", "secureServing": False},
            "webhook": {"host": host, "port": port},
            "leaderElection": {"leaderElect": False},
            "certManagement": {"enable": False},
        },
    )


def trainer(site: Site) -> Launch:
    """Trainer's controller manager."""
    return Launch(
        (f"--config={_configuration(site, 'trainer')}",),
        health=f"http://{_trainer_health(site)}/readyz",
        environment=_environment(site, "trainer"),
    )


def trainer_serves(site: Site) -> bool:
    """True if Trainer's webhooks answer: they refuse this TrainJob because its runtime does not exist."""
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "probe"},
        "spec": {"runtimeRef": {"name": "nowhere"}},
    }
    try:
        site.api.create("/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs?dryRun=All", job)
    except TestbedError as error:
        return "denied the request" in str(error)
    return False


def _trainer_health(site: Site) -> str:
    return f"127.0.0.1:{site.port_of('trainer-health')}"


def _webhooks(site: Site, part: str, service: str, configurations: Iterable[dict[str, Any]]) -> tuple[str, int]:
    """Lead these webhook configurations to a Service, and return the address that the part has to bind for it."""
    namespace, _, name = service.partition("/")
    port = site.port_of(f"{part}-webhooks")
    host = host_service(site, namespace, name, port)
    authority = Authority.load(site.pki, "ca")
    bundle = base64.b64encode(authority.pem()[0]).decode()
    # Where controller-runtime looks for them, below the TMPDIR of the part.
    write_pair(
        _folder(site, part) / "k8s-webhook-server/serving-certs", "tls", authority.issue([f"{name}.{namespace}.svc"])
    )
    lead_webhooks(site, service, port, configurations, bundle)
    return host, port


def _documents(path: Path) -> list[Any]:
    return [document for document in yaml.load_all(path.read_bytes(), yaml.CSafeLoader) if document]


def _patched(folder: Path, *patches: str) -> list[Any]:
    """Return the webhook configurations of a folder, each with its patch."""
    both = zip(_documents(folder / "manifests.yaml"), patches, strict=True)
    return [jsonpatch.apply_patch(one, _documents(folder / patch)[0]) for one, patch in both]


def _folder(site: Site, part: str) -> Path:
    return site.state / "tmp" / part


def _configuration(site: Site, part: str) -> Path:
    return site.state / "conf" / f"{part}.json"


def _configure(site: Site, part: str, configuration: dict[str, Any]) -> None:
    _configuration(site, part).write_text(json.dumps(configuration))


def _environment(site: Site, part: str) -> dict[str, str]:
    return {"KUBECONFIG": str(site.kubeconfig_of(part)), "TMPDIR": str(_folder(site, part))}
