"""What NetworkPolicies let through, in the eyes of cyclonus: the model that network plugins are compared with."""

import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from hack.testbed import PATIENCE
from hack.testbed.build import binaries
from hack.testbed.parts import PARTS

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Peer:
    """One end of a connection. Who has no namespace is no pod."""

    address: str
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[int, str] = field(default_factory=dict)
    """Names of the ports that its containers have."""

    @classmethod
    def pod(cls, pod: JSON, *, namespace: str = "", address: str = "") -> Self:
        """Of a pod, or with namespace and address, of a template."""
        named = {
            port["containerPort"]: port["name"]
            for container in pod["spec"]["containers"]
            for port in container.get("ports", ())
        }
        about = pod["metadata"]
        return cls(address or pod["status"]["podIP"], namespace or about["namespace"], about["labels"], named)

    def _shown(self) -> JSON:
        if not self.namespace:
            return {"IP": self.address}
        inside = {
            "Namespace": self.namespace,
            "NamespaceLabels": {"kubernetes.io/metadata.name": self.namespace},
            "PodLabels": dict(self.labels),
        }
        return {"IP": self.address, "Internal": inside}


@dataclass(frozen=True, slots=True)
class Call:
    """A connection: who begins it, with whom, at which port."""

    source: Peer
    destination: Peer
    port: int
    protocol: str = "TCP"

    def shown(self) -> JSON:
        """As cyclonus reads it."""
        return {
            "Source": self.source._shown(),
            "Destination": self.destination._shown(),
            "Protocol": self.protocol,
            "ResolvedPort": self.port,
            "ResolvedPortName": self.destination.ports.get(self.port, ""),
        }


def let_through(policies: Iterable[JSON], calls: Mapping[str, Call], folder: Path) -> set[str]:
    """Return the names of the calls that these policies allow at both ends. `folder` is for files."""
    listed = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicyList", "items": list(policies)}
    rules, traffic = folder / "policies.json", folder / "traffic.json"
    rules.write_text(json.dumps(listed))
    traffic.write_text(json.dumps([call.shown() for call in calls.values()]))
    program = str(binaries([PARTS["cyclonus"]], print)["cyclonus"])
    argv = [program, "analyze", "--mode=query-traffic", f"--policy-path={rules}", f"--traffic-path={traffic}"]
    said = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
    verdicts = re.findall(r"IS ALLOWED\? \| +(TRUE|FALSE) ", said)
    return {name for name, verdict in zip(calls, verdicts, strict=True) if verdict == "TRUE"}
