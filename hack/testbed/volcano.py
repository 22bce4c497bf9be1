"""Starts Volcano's three programs."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from hack.testbed.modules import module_dir
from hack.testbed.part import Launch
from hack.testbed.pki import Authority, write_pair
from hack.testbed.service import host_service, lead_webhooks
from hack.testbed.site import Site

_MODULE = "volcano.sh/volcano"
_NAMESPACE = "volcano-system"
_SERVICE = "volcano-admission-service"
_KINDS = {"mutate": "MutatingWebhookConfiguration", "validate": "ValidatingWebhookConfiguration"}
_LEFT_OUT = (
    ("mutate", "scheduling.volcano.sh", "v1beta1", "podgroups"),
    ("mutate", "", "v1", "pods"),
    ("validate", "", "v1", "pods"),
)


def scheduler_conf(site: Site) -> Path:
    """Return the scheduler's configuration file, upstream's default until a test writes another.

    It is alone in its folder: the scheduler watches the folder and reloads on whatever changes in it.
    """
    conf = site.state / "conf" / "volcano-scheduler" / "volcano-scheduler.conf"
    if not conf.exists():
        conf.parent.mkdir(parents=True, exist_ok=True)
        upstream = module_dir(_MODULE) / "installer/helm/chart/volcano/config/volcano-scheduler.conf"
        conf.write_bytes(upstream.read_bytes())
    return conf


def scheduler(site: Site) -> Launch:
    """vc-scheduler."""
    return Launch(
        (
            *_common(site, "volcano-scheduler"),
            f"--scheduler-conf={scheduler_conf(site)}",
            f"--cache-dump-dir={site.state / 'tmp'}",
        ),
        health=_health(site, "volcano-scheduler"),
    )


def controllers(site: Site) -> Launch:
    """vc-controller-manager."""
    return Launch(
        _common(site, "volcano-controllers"),
        health=_health(site, "volcano-controllers"),
        environment={"KUBE_POD_NAMESPACE": _NAMESPACE, "HELM_RELEASE_NAME": "volcano"},
    )


def default_queue_open(site: Site) -> bool:
    """True if the controllers have opened queue `default`: before that, the scheduler rejects every job."""
    queue = site.api.find("/apis/scheduling.volcano.sh/v1beta1/queues/default")
    return bool(queue.get("status", {}).get("state") == "Open")


def prepare_webhooks(site: Site) -> None:
    """Create the webhook manager's Service, certificate and webhook configurations, as its own chart has them."""
    port = site.port_of("volcano-webhooks")
    authority = Authority.load(site.pki, "ca")
    write_pair(site.pki, "volcano-webhooks", authority.issue([f"{_SERVICE}.{_NAMESPACE}.svc", "127.0.0.1"]))
    host_service(site, _NAMESPACE, _SERVICE, port)
    lead_webhooks(site, f"{_NAMESPACE}/{_SERVICE}", port, _configurations(), "")


def webhooks(site: Site) -> Launch:
    """vc-webhook-manager, listening where its Service's ClusterIP points."""
    port = site.port_of("volcano-webhooks")
    # One configuration per path, named after it; it waits for ever for the configuration of any other path.
    names = (manifest["metadata"]["name"].removeprefix(f"{_SERVICE}-") for manifest in _configurations())
    admissions = ",".join(sorted({f"/{name.replace('-', '/')}" for name in names}))
    pki = site.pki
    return Launch(
        (
            f"--kubeconfig={site.kubeconfig_of('volcano-webhooks')}",
            f"--listen-address={host_service(site, _NAMESPACE, _SERVICE, port)}",
            f"--port={port}",
            f"--tls-cert-file={pki / 'volcano-webhooks.crt'}",
            f"--tls-private-key-file={pki / 'volcano-webhooks.key'}",
            f"--ca-cert-file={site.ca_file}",
            f"--enabled-admission={admissions}",
            f"--webhook-namespace={_NAMESPACE}",
            f"--webhook-service-name={_SERVICE}",
            "--enable-healthz=true",
            f"--healthz-address=127.0.0.1:{site.port_of('volcano-webhooks-health')}",
        ),
        health=f"https://127.0.0.1:{site.port_of('volcano-webhooks-health')}/healthz",
    )


def _configurations() -> list[dict[str, Any]]:
    """The installer's configurations, and the ones that a value of its chart (`enabled_admissions`) turns on."""
    installer = (module_dir(_MODULE) / "installer/volcano-development.yaml").read_bytes()
    found = [one for one in yaml.load_all(installer, yaml.CSafeLoader) if one and one["kind"] in _KINDS.values()]
    for verb, group, version, resource in _LEFT_OUT:
        more = deepcopy(next(one for one in found if one["kind"] == _KINDS[verb]))
        more["metadata"]["name"] = f"{_SERVICE}-{resource}-{verb}"
        (webhook,) = more["webhooks"]
        webhook["name"] = f"{verb}{resource.removesuffix('s')}.volcano.sh"
        webhook["clientConfig"]["service"]["path"] = f"/{resource}/{verb}"
        (rule,) = webhook["rules"]
        rule |= {"apiGroups": [group], "apiVersions": [version], "operations": ["CREATE"], "resources": [resource]}
        found.append(more)
    return found


def _common(site: Site, part: str) -> tuple[str, ...]:
    return (
        f"--kubeconfig={site.kubeconfig_of(part)}",
        "--leader-elect=false",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--enable-healthz=true",
        f"--healthz-address=127.0.0.1:{site.port_of(part)}",
    )


def _health(site: Site, part: str) -> str:
    return f"http://127.0.0.1:{site.port_of(part)}/healthz"
