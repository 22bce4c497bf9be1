"""Who really speaks with whom: the connections that the kernel sees around a real node, noted with nftables."""

import json
import subprocess
from collections.abc import Mapping

from hack.testbed import PATIENCE, Testbed
from hack.testbed.debian import Debian
from hack.testbed.enclosure import enter_argv
from hack.testbed.site import Site
from tests.support.chart.network_policies import Call, Peer

_TABLE = "inet muster_watch"
# All three hooks are past kube-proxy's translation of ClusterIPs and before any of source addresses, where network
# plugins look as well.
_NOTE = "ct state new meta l4proto { tcp, udp } add @seen { ip saddr . ip daddr . meta l4proto . th dport };"
_RULES = f"""
table {_TABLE} {{
  set seen {{ type ipv4_addr . ipv4_addr . inet_proto . inet_service; size 65535; flags dynamic; }}
  chain routed {{ type filter hook forward priority filter; {_NOTE} }}
  chain arriving {{ type filter hook input priority filter; {_NOTE} }}
  chain leaving {{ type filter hook output priority filter; {_NOTE} }}
}}
"""


class Connections:
    """Every connection in a real node's network that begins after this one was made."""

    def __init__(self, testbed: Testbed) -> None:
        self._site = Site.load(testbed.state)
        self._nft("--file", "-", rules=_RULES)

    def calls(self, pods: Mapping[str, Peer]) -> list[Call]:
        """Return those that one of these pods (by address) began or was meant by, each pair of ends once for a port."""
        told = json.loads(self._nft("--json", "list", "set", *_TABLE.split(), "seen"))
        (found,) = (part["set"] for part in told["nftables"] if "set" in part)
        return [
            Call(pods.get(source, Peer(source)), pods.get(destination, Peer(destination)), port, protocol.upper())
            for source, destination, protocol, port in (element["concat"] for element in found.get("elem", ()))
            if not pods.keys().isdisjoint({source, destination})
        ]

    def _nft(self, *arguments: str, rules: str = "") -> str:
        debian = Debian()
        argv = [*enter_argv(self._site, wholly=False), str(debian.program("nft")), *arguments]
        return subprocess.run(
            argv, input=rules, capture_output=True, text=True, check=True, timeout=PATIENCE, env=debian.environment
        ).stdout
