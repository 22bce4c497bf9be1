"""Starts Kueue: with the configuration of its release, for batch Jobs and the workloads of Ray and Kubeflow."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

from hack.testbed.kubernetes import STRIPPED
from hack.testbed.modules import module_dir
from hack.testbed.part import Launch
from hack.testbed.service import host_service, lead_webhooks, mounted_certificate, tried
from hack.testbed.site import Site

KUEUE = "kueue"
"""The add-on."""
LDFLAGS = f"{STRIPPED} -X sigs.k8s.io/kueue/pkg/version.GitVersion=v0.19.2"

_MODULE = "sigs.k8s.io/kueue"
_NAMESPACE = "kueue-system"
# The names after kustomize: Kueue looks for its webhooks by these.
_PREFIX = "kueue-"
_SERVICE = f"{_PREFIX}webhook-service"
_SECRET = f"{_PREFIX}webhook-server-cert"
_FRAMEWORKS = (
    "batch/job",
    "kubeflow.org/mpijob",
    "kubeflow.org/pytorchjob",
    "kubeflow.org/tfjob",
    "ray.io/raycluster",
    "ray.io/rayjob",
)
_SELECTED = re.compile(r"webhooks\.\[name=(\S+)\]\.namespaceSelector")


def prepare(site: Site) -> None:
    """Create Kueue's certificate, Service, webhooks (conversion included) and configuration."""
    port = site.port_of("kueue-webhooks")
    address = host_service(site, _NAMESPACE, _SERVICE, port)
    bundle = mounted_certificate(
        site, _certificates(site), authority="kueue-ca", namespace=_NAMESPACE, secret=_SECRET, service=_SERVICE
    )
    lead_webhooks(site, f"{_NAMESPACE}/{_SERVICE}", port, _configurations(), bundle)
    for patch in _conversions():
        client = patch["spec"]["conversion"]["webhook"]["clientConfig"]
        client["caBundle"] = bundle
        client["service"] |= {"name": _SERVICE, "namespace": _NAMESPACE, "port": port}
        name = patch["metadata"]["name"]
        path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        site.api.merge(path, {"spec": patch["spec"]})
    configuration(site).write_text(json.dumps(_configured(site, address, port), indent=1))


def configuration(site: Site) -> Path:
    """Return Kueue's configuration file, its release's until a test writes another; Kueue reads it when it starts."""
    return site.state / "conf" / "kueue.json"


def kueue(site: Site) -> Launch:
    """Kueue's controller manager."""
    return Launch(
        (f"--config={configuration(site)}", "--feature-gates=VisibilityOnDemand=false"),
        health=f"http://{_health(site)}/readyz",
        environment={"KUBECONFIG": str(site.kubeconfig_of(KUEUE))},
    )


def kueue_serves(site: Site) -> bool:
    """True if Kueue's webhooks answer: they suspend this Job because it is in a queue."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "probe", "labels": {"kueue.x-k8s.io/queue-name": "probe"}},
        "spec": {"template": {"spec": pod}},
    }
    created = tried(site, "/apis/batch/v1/namespaces/default/jobs", job)
    return bool(created and created["spec"].get("suspend"))


def _configured(site: Site, address: str, port: int) -> dict[str, Any]:
    folder = module_dir(_MODULE) / "config/components/manager"
    shipped: dict[str, Any] = yaml.safe_load((folder / "controller_manager_config.yaml").read_bytes())
    return shipped | {
        "namespace": _NAMESPACE,
        "health": {"healthProbeBindAddress": _health(site)},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": address, "port": port, "certDir": str(_certificates(site))},
        "leaderElection": {"leaderElect": False},
        "integrations": {"frameworks": list(_FRAMEWORKS)},
    }


def _configurations() -> list[dict[str, Any]]:
    """The webhook configurations with their names and the selector of namespaces that kustomize would give them."""
    folder = module_dir(_MODULE) / "config/components/webhook"
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_bytes())
    (patch,) = (yaml.safe_load(one["patch"]) for one in kustomization["patches"])
    (source,) = patch["webhooks"]
    (replacement,) = kustomization["replacements"]
    paths = [path for target in replacement["targets"] for path in target["fieldPaths"]]
    selected = {source["name"], *(found[1] for found in map(_SELECTED.fullmatch, paths) if found)}
    manifests = [one for one in yaml.load_all((folder / "manifests.yaml").read_bytes(), yaml.CSafeLoader) if one]
    for manifest in manifests:
        manifest["metadata"]["name"] = f"{_PREFIX}{manifest['metadata']['name']}"
        for webhook in manifest["webhooks"]:
            if webhook["name"] in selected:
                webhook["namespaceSelector"] = source["namespaceSelector"]
    return manifests


def _conversions() -> list[dict[str, Any]]:
    """The patches by which the CRDs of several versions are converted by Kueue's webhook."""
    folder = module_dir(_MODULE) / "config/components/crd"
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_bytes())
    return [yaml.safe_load((folder / one["path"]).read_bytes()) for one in kustomization["patches"]]


def _certificates(site: Site) -> Path:
    return site.state / "tmp" / "kueue" / "serving-certs"


def _health(site: Site) -> str:
    return f"127.0.0.1:{site.port_of('kueue-health')}"
