"""Starts etcd, the apiserver, the controllers, the scheduler and kwok."""

from pathlib import Path

from hack.testbed.modules import module_dir
from hack.testbed.nodes import FAKE, REAL
from hack.testbed.part import Launch
from hack.testbed.process import LAZY_COLLECTOR
from hack.testbed.site import PARTS_GROUP, Site
from hack.testbed.waiting import PATIENCE

_STAGES = Path(__file__).parent / "stages"
_KWOK = "sigs.k8s.io/kwok"
_ALONE = (
    "--bind-address=127.0.0.1",
    "--advertise-address=127.0.0.1",
    # There is no kubelet or proxy; the `kubernetes` Service needs no endpoints, and loopback may not be one.
    "--endpoint-reconciler-type=none",
    "--authorization-mode=RBAC",
)


def etcd(site: Site) -> Launch:
    """Storage; losing it in a power cut is fine here, so it never waits for the disk."""
    client = f"http://127.0.0.1:{site.port_of('etcd')}"
    peer = f"http://127.0.0.1:{site.port_of('etcd-peer')}"
    return Launch(
        (
            f"--data-dir={site.state / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
            *(_ROOM if site.many_pods else ()),
        ),
        health=f"{client}/readyz",
    )


# With the operators' large CRDs 0.4 GB live; the nearer to a limit, the more Go's collector works.
_MEMORY = {"GOMEMLIMIT": "1536MiB"}
# A cluster of many pods may have 150,000: six versions of each may come within the five minutes after which the
# apiserver drops old ones, which is more than etcd's usual 2 GiB, and more than its own. It alone keeps the lazy
# collector there (lifecycle.py).
_MUCH_MEMORY = {"GOMEMLIMIT": "8GiB", **LAZY_COLLECTOR}
_ROOM = (f"--quota-backend-bytes={8 * 2**30}",)


def kube_apiserver(site: Site) -> Launch:
    """Serve on loopback, RBAC on, and ClusterIPs that a host process can bind; with a real node, to its pods too."""
    pki = site.pki
    return Launch(
        (
            f"--etcd-servers=http://127.0.0.1:{site.port_of('etcd')}",
            *(_for_pods(site) if site.real_node else _ALONE),
            f"--secure-port={site.port}",
            f"--tls-cert-file={pki / 'server.crt'}",
            f"--tls-private-key-file={pki / 'server.key'}",
            f"--client-ca-file={pki / 'ca.crt'}",
            f"--token-auth-file={pki / 'tokens.csv'}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={pki / 'sa.pub'}",
            f"--service-account-signing-key-file={pki / 'sa.key'}",
            f"--service-cluster-ip-range={site.service_range}",
            f"--cert-dir={site.state / 'tmp'}",
            "--allow-privileged=true",
            *site.kubernetes.apiserver,
        ),
        health=f"{site.server}/readyz",
        environment=_MUCH_MEMORY if site.many_pods else _MEMORY,
    )


def kube_controller_manager(site: Site) -> Launch:
    """Run every controller except the ones for clouds and real disks.

    nodelifecycle stays: without it the not-ready taint stays on every node.
    """
    return Launch(
        (
            *_clients(site, "kube-controller-manager"),
            *serving(site, "kube-controller-manager"),
            "--controllers=*," + ",".join(f"-{controller}" for controller in site.kubernetes.controllers_off),
            f"--service-account-private-key-file={site.pki / 'sa.key'}",
            f"--root-ca-file={site.ca_file}",
            # A kwok or a kubelet that waits for a core is no dead node, whose pods would be evicted.
            f"--node-monitor-grace-period={PATIENCE:g}s",
            *site.kubernetes.controller_manager,
        ),
        health=f"https://127.0.0.1:{site.port_of('kube-controller-manager')}/healthz",
    )


def kube_scheduler(site: Site) -> Launch:
    """Schedules what does not ask for another scheduler."""
    return Launch(
        (*_clients(site, "kube-scheduler"), *serving(site, "kube-scheduler"), *site.kubernetes.scheduler),
        health=f"https://127.0.0.1:{site.port_of('kube-scheduler')}/healthz",
    )


def kwok(site: Site) -> Launch:
    """Play kubelet for every node: heartbeats, pods that run at once, and ends by annotation (`stages/`)."""
    upstream = module_dir(_KWOK) / "kustomize" / "stage"
    stages = [
        *sorted((upstream / "node" / "fast").glob("node-*.yaml")),
        *sorted((upstream / "node" / "heartbeat-with-lease").glob("node-*.yaml")),
        *sorted((upstream / "pod" / "fast").glob("pod-*.yaml")),
        *sorted(_STAGES.glob("*.yaml")),
    ]
    port = site.port_of("kwok")
    return Launch(
        (
            f"--kubeconfig={site.kubeconfig_of('kwok')}",
            *((f"--manage-nodes-with-label-selector=!{REAL}",) if site.real_node else ("--manage-all-nodes=true",)),
            # As kubelets do it: a lease without watchers, renewed every 30 s, and seldom a node's status.
            "--node-lease-duration-seconds=120",
            "--node-ip=127.0.0.1",
            "--cidr=10.0.0.0/16",
            f"--server-address=127.0.0.1:{port}",
            *(f"--config={stage}" for stage in stages),
        ),
        health=f"http://127.0.0.1:{port}/healthz",
        # Its workers fill one map without a lock when they first meet their stages, and two of them at the same moment
        # end it: "concurrent map writes" (seen once, in 0.8.0, on a busy machine).
        environment={"GOMAXPROCS": "1"},
    )


def grant(site: Site) -> None:
    """Let every part do everything that a verb of Kubernetes names, and nothing beyond it.

    Not by system:masters: to those an admission policy that asks the authorizer, as muster's do, says yes to anything.
    """
    path, group = "/apis/rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io"
    verbs = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
    rules = [
        {"apiGroups": ["*"], "resources": ["*"], "verbs": [*verbs, "bind", "escalate", "approve", "sign"]},
        {"nonResourceURLs": ["*"], "verbs": ["get", "post"]},
    ]
    site.api.apply(
        f"{path}/clusterroles/{PARTS_GROUP}",
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": PARTS_GROUP}, "rules": rules},
    )
    site.api.apply(
        f"{path}/clusterrolebindings/{PARTS_GROUP}",
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": PARTS_GROUP},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": PARTS_GROUP},
            "subjects": [{"apiGroup": group, "kind": "Group", "name": PARTS_GROUP}],
        },
    )


def create_nodes(site: Site) -> None:
    """Create the Node objects: created, not applied, since only a creation takes the status along."""
    for node in site.nodes.manifests(tainted=site.real_node):
        if not site.api.find(f"/api/v1/nodes/{node['metadata']['name']}"):
            site.api.create("/api/v1/nodes", node)


def default_service_account(site: Site) -> bool:
    """True if pods can be created in namespace `default`: its ServiceAccount exists."""
    return bool(site.api.find("/api/v1/namespaces/default/serviceaccounts/default"))


def nodes_schedulable(site: Site) -> bool:
    """True if every node is Ready, with no taints but those that separate kwok's nodes from a real one."""
    nodes = site.api.get("/api/v1/nodes")["items"]
    return len(nodes) >= site.nodes.count and all(
        not any(taint["key"] not in {FAKE, REAL} for taint in node["spec"].get("taints", []))
        and any(seen["type"] == "Ready" and seen["status"] == "True" for seen in node["status"].get("conditions", []))
        for node in nodes
    )


def serving(site: Site, part: str) -> tuple[str, ...]:
    """Return the flags by which a scheduler or controller manager serves its health to users that the apiserver knows.

    Its port is the part's own, and there is no leader to be elected.
    """
    kubeconfig = site.kubeconfig_of(part)
    return (
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={site.port_of(part)}",
        f"--tls-cert-file={site.pki / 'server.crt'}",
        f"--tls-private-key-file={site.pki / 'server.key'}",
    )


def _for_pods(site: Site) -> tuple[str, ...]:
    return (
        "--bind-address=0.0.0.0",
        # The address behind the Service `kubernetes`.
        f"--advertise-address={site.node_address}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-client-certificate={site.pki / 'kubelet-client.crt'}",
        f"--kubelet-client-key={site.pki / 'kubelet-client.key'}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
    )


def _clients(site: Site, part: str) -> tuple[str, ...]:
    return (f"--kubeconfig={site.kubeconfig_of(part)}", "--kube-api-qps=1000", "--kube-api-burst=2000")
