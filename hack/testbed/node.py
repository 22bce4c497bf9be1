"""Starts a real node: containerd, a kubelet and kube-proxy, in an enclosure (see `enclosure`)."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hack.testbed.archive import PAUSE, import_image, pause_archive
from hack.testbed.build import binary_path
from hack.testbed.debian import Debian
from hack.testbed.nodes import REAL
from hack.testbed.part import Launch, Part
from hack.testbed.pki import Authority, write_pair
from hack.testbed.site import Site
from hack.testbed.toolchain import find_go

NODE = "real-0"
PAUSE_PROGRAM = Part(name="pause", addon="node", family="pause", package=".")
_PODS = "10.97.0.0/24"
_CONTAINERD, _KUBELET, _KUBE_PROXY = 10260, 10248, 10256  # no other process is inside


def containerd(site: Site) -> Launch:
    """Run containers with runc on overlayfs; its socket and pid files are below the enclosure's own /run."""
    debian = Debian()
    folder = site.node_folder
    cni = folder / "cni"
    cni.mkdir(exist_ok=True)
    _write_json(cni / "10-bridge.conflist", _bridge())
    configuration = folder / "containerd.toml"
    configuration.write_text(
        f"""
version = 2
root = "{folder}/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
[metrics]
  address = "127.0.0.1:{_CONTAINERD}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  disable_apparmor = true
  # Without CAP_SYS_RESOURCE no sandbox would start.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{debian.cni}"
    conf_dir = "{cni}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
      BinaryName = "{debian.program("runc")}"
"""
    )
    return Launch(
        (f"--config={configuration}",),
        health=f"http://127.0.0.1:{_CONTAINERD}/v1/metrics",
        environment=debian.environment,
    )


def import_pause(site: Site) -> None:
    """Give containerd the image of sandboxes, which the kubelet needs for the first pod."""
    archive = site.node_folder / "pause.tar"
    pause_archive(binary_path(PAUSE_PROGRAM, find_go()), archive)
    import_image(site, archive)


def kubelet(site: Site) -> Launch:
    """Run pods. Its cgroups, volumes and logs stay below folders of this testbed, and no sysctl is changed."""
    folder = site.node_folder
    authority = Authority.load(site.pki, "ca")
    write_pair(site.pki, "kubelet", authority.issue([NODE, site.node_address]))
    resolver = folder / "resolv.conf"
    resolver.touch()
    configuration = folder / "kubelet.json"
    _write_json(
        configuration,
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(site.ca_file)},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(site.pki / "kubelet.crt"),
            "tlsPrivateKeyFile": str(site.pki / "kubelet.key"),
            "healthzPort": _KUBELET,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{site.cgroup}",
            "enforceNodeAllocatable": ["pods"],
            "failCgroupV1": False,
            "failSwapOn": False,
            "registerWithTaints": [{"key": REAL, "effect": "NoSchedule"}],
            # kube-proxy needs none of them, and there may be no iptables.
            "makeIPTablesUtilChains": False,
            # Images are imported, so one that is collected never comes back.
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "evictionHard": {
                "memory.available": "1%",
                "nodefs.available": "1%",
                "imagefs.available": "1%",
                "nodefs.inodesFree": "1%",
            },
            "resolvConf": str(resolver),
            "podLogsDir": str((site.logs / "pods").resolve()),
            "volumePluginDir": str(folder / "volume-plugins"),
        },
    )
    return Launch(
        (
            f"--config={configuration}",
            f"--kubeconfig={site.kubeconfig_of('kubelet')}",
            f"--hostname-override={NODE}",
            f"--node-ip={site.node_address}",
            f"--node-labels={REAL}=true",
            f"--root-dir={folder / 'kubelet'}",
            f"--cert-dir={folder / 'certificates'}",
        ),
        health=f"http://127.0.0.1:{_KUBELET}/healthz",
        environment=Debian().environment,
    )


def kube_proxy(site: Site) -> Launch:
    """Make ClusterIPs lead to pods, with nftables."""
    configuration = site.node_folder / "kube-proxy.json"
    _write_json(
        configuration,
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": str(site.kubeconfig_of("kube-proxy"))},
            "mode": "nftables",
            "clusterCIDR": _PODS,
            "hostnameOverride": NODE,
            "healthzBindAddress": f"127.0.0.1:{_KUBE_PROXY}",
            "metricsBindAddress": "127.0.0.1:10249",
            "nodePortAddresses": ["primary"],
            # These are the whole machine's.
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        },
    )
    return Launch(
        (f"--config={configuration}",),
        health=f"http://127.0.0.1:{_KUBE_PROXY}/livez",
        environment=Debian().environment,
    )


def real_node_ready(site: Site) -> bool:
    """True if the kubelet says that its node is Ready."""
    conditions = site.api.find(f"/api/v1/nodes/{NODE}").get("status", {}).get("conditions", [])
    return any(seen["type"] == "Ready" and seen["status"] == "True" for seen in conditions)


def _bridge() -> dict[str, Any]:
    address_management = {"type": "host-local", "ranges": [[{"subnet": _PODS}]], "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {"type": "bridge", "bridge": "pods0", "isGateway": True, "hairpinMode": True, "ipam": address_management}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge]}


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=1))
