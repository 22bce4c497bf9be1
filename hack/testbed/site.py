"""The state folder of one testbed: addresses, keys, kubeconfigs, ports. Everything that must survive the starter."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from hack.testbed.api import Api
from hack.testbed.errors import TestbedError
from hack.testbed.kubernetes import DEFAULT_KUBERNETES, KUBERNETES, Kubernetes
from hack.testbed.nodes import Nodes
from hack.testbed.paths import write_atomically
from hack.testbed.pki import Authority, write_pair, write_service_account_keys
from hack.testbed.ports import free_port, service_range

ADMIN = "admin"
NODE_ADDON = "node"
PARTS_GROUP = "testbed:parts"
"""The group of every other client; `control_plane.grant` has its rights."""
FILE = "testbed.json"
"""The file of a testbed that was laid out in a folder and not taken down."""
_ENCLOSED_SERVICES, _NODE_ADDRESS = "10.96.0.0/24", "198.51.100.1"


@dataclass(frozen=True)
class Site:
    """One testbed on disk."""

    state: Path
    port: int
    """The apiserver's."""
    parts: tuple[str, ...]
    nodes: Nodes
    detached: bool
    version: str = DEFAULT_KUBERNETES
    """A key of `KUBERNETES`."""
    many_pods: bool = False
    """True if tens of thousands may be there, for which the apiserver has 8 GiB."""

    @classmethod
    def create(
        cls,
        state: Path,
        parts: Sequence[str],
        nodes: Nodes,
        users: Mapping[str, str],
        *,
        detached: bool,
        version: str = DEFAULT_KUBERNETES,
        many_pods: bool = False,
    ) -> Site:
        """Lay out a state folder. `users` gives the apiserver's name of every client, by the client's name."""
        site = cls(state, free_port(), tuple(parts), nodes, detached, version, many_pods)
        for folder in ("kubeconfigs", "conf", "tmp", "logs", "processes"):
            (state / folder).mkdir(parents=True, exist_ok=True)
        facts = asdict(site)
        del facts["state"]
        write_atomically(state / FILE, json.dumps(facts))
        authority = Authority.create("muster-testbed-ca")
        write_pair(site.pki, "ca", authority.pem())
        first_address = str(ipaddress.ip_network(site.service_range)[1])
        kubernetes = [
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ]
        write_pair(site.pki, "server", authority.issue(["localhost", "127.0.0.1", first_address, *kubernetes]))
        write_pair(site.pki, "kubelet-client", authority.issue_client("kube-apiserver", "system:masters"))
        write_service_account_keys(site.pki)
        lines = []
        for client, user in {ADMIN: ADMIN, **users}.items():
            token = secrets.token_hex(24)
            others = "system:nodes" if user.startswith("system:node:") else PARTS_GROUP
            group = "system:masters" if client == ADMIN else others
            lines.append(f'{token},{user},{client},"{group}"\n')
            path = site.kubeconfig_of(client)
            path.touch(mode=0o600)
            path.write_text(kubeconfig_text(site.server, site.ca_file, token))
        (site.pki / "tokens.csv").touch(mode=0o600)
        (site.pki / "tokens.csv").write_text("".join(lines))
        return site

    @classmethod
    def load(cls, state: Path) -> Site:
        """Read a state folder. Raises TestbedError when there is no testbed in it."""
        try:
            facts = json.loads((state / FILE).read_text())
        except FileNotFoundError:
            raise TestbedError(f"no testbed in {state}: start one with `python -m hack.testbed up`") from None
        facts |= {"parts": tuple(facts["parts"]), "nodes": Nodes(**facts["nodes"])}
        return cls(state, **facts)

    @property
    def server(self) -> str:
        """The apiserver's URL."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def service_range(self) -> str:
        """The CIDR of ClusterIPs."""
        return _ENCLOSED_SERVICES if self.real_node else service_range(self.port)

    @property
    def kubernetes(self) -> Kubernetes:
        """The version and the configuration of the control plane."""
        return KUBERNETES[self.version]

    @property
    def real_node(self) -> bool:
        """True if it has a real node, and all of it is enclosed with that node."""
        return NODE_ADDON in self.parts

    @property
    def node_address(self) -> str:
        """The real node's own address, which is not seen outside of the enclosure."""
        return _NODE_ADDRESS

    @property
    def node_folder(self) -> Path:
        """The folder of what the real node writes."""
        return self.state / "node"

    @property
    def cgroup(self) -> str:
        """The name of the folder that holds all cgroups of the real node, in every hierarchy."""
        return cgroup_name(self.state)

    @property
    def pki(self) -> Path:
        """The folder of keys and certificates."""
        return self.state / "pki"

    @property
    def ca_file(self) -> Path:
        """The certificate that the apiserver's is signed with."""
        return self.pki / "ca.crt"

    @property
    def logs(self) -> Path:
        """The folder of log files, one per process; it outlives the testbed."""
        return self.state / "logs"

    @cached_property
    def admin_token(self) -> str:
        """The bearer token of a member of system:masters."""
        config = json.loads(self.kubeconfig_of(ADMIN).read_text())
        return str(config["users"][0]["user"]["token"])

    @cached_property
    def api(self) -> Api:
        """The apiserver as the administrator sees it."""
        return Api(self.server, self.admin_token, self.ca_file)

    def kubeconfig_of(self, client: str) -> Path:
        """Return the kubeconfig file of a part, or of ADMIN."""
        return self.state / "kubeconfigs" / client

    def port_of(self, purpose: str) -> int:
        """Return this testbed's port for a purpose; a restarted part finds its old one."""
        path = self.state / "ports.json"
        ports: dict[str, int] = json.loads(path.read_text()) if path.exists() else {}
        if purpose not in ports:
            ports[purpose] = free_port()
            write_atomically(path, json.dumps(ports))
        return ports[purpose]


def cgroup_name(state: Path) -> str:
    """Return the name that the cgroups of the testbed in this state folder have, whether or not it still runs."""
    return f"muster-testbed-{hashlib.sha256(str(state).encode()).hexdigest()[:12]}"


def kubeconfig_text(server: str, ca_file: Path, token: str) -> str:
    """Return a kubeconfig (JSON is YAML) with one bearer token and nothing more."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "testbed", "cluster": {"server": server, "certificate-authority": str(ca_file)}}],
            "users": [{"name": "testbed", "user": {"token": token}}],
            "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": "testbed"}}],
            "current-context": "testbed",
        },
        indent=1,
    )
