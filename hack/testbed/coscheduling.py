"""Starts scheduler-plugins: a scheduler that knows gangs and ElasticQuotas, and its controller."""

import json
from pathlib import Path
from typing import Any

import yaml

from hack.testbed.control_plane import serving
from hack.testbed.kubernetes import ldflags_of
from hack.testbed.modules import module_dir
from hack.testbed.part import Launch
from hack.testbed.site import Site

AS_SECOND = "coscheduling"
"""The add-on in addition to kube-scheduler: for pods with `schedulerName: scheduler-plugins-scheduler`."""
AS_DEFAULT = "coscheduling-as-default"
"""The add-on in place of kube-scheduler: for pods that name no scheduler."""
# The Kubernetes that it is made of, by its go.mod: with another version it refuses to start.
LDFLAGS = ldflags_of("1.34.4")

_SCHEDULER = "scheduler-plugins-scheduler"
_CONTROLLER = "scheduler-plugins-controller"
_CHART = "manifests/install/charts/as-a-second-scheduler"
# The plugins of its chart without the ones whose CRDs its release does not have.
_PLUGINS = ("Coscheduling", "CapacityScheduling")


def prepare_scheduler(site: Site) -> None:
    """Write the scheduler's configuration, with what the values of its chart say of its plugins."""
    values: dict[str, Any] = yaml.safe_load(
        (module_dir("sigs.k8s.io/scheduler-plugins") / _CHART / "values.yaml").read_bytes()
    )
    profile = {
        "schedulerName": "default-scheduler" if AS_DEFAULT in site.parts else _SCHEDULER,
        "plugins": {
            "multiPoint": {
                "enabled": [{"name": name} for name in values["plugins"]["enabled"] if name in _PLUGINS],
                "disabled": [{"name": name} for name in values["plugins"]["disabled"]],
            }
        },
        "pluginConfig": values["pluginConfig"],
    }
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        # A scheduler with a configuration file takes these from nowhere else.
        "clientConnection": {"kubeconfig": str(site.kubeconfig_of(_SCHEDULER)), "qps": 1000, "burst": 2000},
        "leaderElection": {"leaderElect": False},
        "profiles": [profile],
    }
    _configuration(site).write_text(json.dumps(configuration))


def scheduler(site: Site) -> Launch:
    """kube-scheduler of 1.34 with Coscheduling and CapacityScheduling."""
    return Launch(
        (f"--config={_configuration(site)}", *serving(site, _SCHEDULER)),
        health=f"https://127.0.0.1:{site.port_of(_SCHEDULER)}/healthz",
    )


def controller(site: Site) -> Launch:
    """Writes the status of PodGroups and ElasticQuotas."""
    health = f"127.0.0.1:{site.port_of(_CONTROLLER)}"
    return Launch(
        (
            f"--probeAddr={health}",
            f"--metricsAddr=127.0.0.1:{site.port_of('scheduler-plugins-metrics')}",
            "--qps=1000",
            "--burst=2000",
        ),
        health=f"http://{health}/readyz",
        environment={"KUBECONFIG": str(site.kubeconfig_of(_CONTROLLER))},
    )


def _configuration(site: Site) -> Path:
    return site.state / "conf" / f"{_SCHEDULER}.json"
