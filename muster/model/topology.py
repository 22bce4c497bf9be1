"""Network topology of a gang: the distance within which its pods must run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from muster.model.names import TOPOLOGY_MODE_LABEL, TOPOLOGY_TIER_LABEL
from muster.model.objects import InvalidObjectError

MODES = ("hard", "soft")
_LONGEST_TIER = 9  # digits; the field is an int32


@dataclass(frozen=True, slots=True)
class Topology:
    """Volcano's networkTopology: mode hard or soft, and the highest tier of the network that the gang may span."""

    mode: str
    highest_tier_allowed: int | None


def read_topology(labels: Mapping[str, str], path_of: Callable[[str], str]) -> Topology | None:
    """Return the topology that these labels request, or None.

    `path_of` returns the path of a label. Raises InvalidObjectError naming a label of the wrong form.
    """
    mode, tier = labels.get(TOPOLOGY_MODE_LABEL, ""), labels.get(TOPOLOGY_TIER_LABEL, "")
    if not mode and not tier:
        return None
    if mode and mode not in MODES:
        raise InvalidObjectError(path_of(TOPOLOGY_MODE_LABEL), f'"{mode}" is not a mode; use hard or soft')
    if tier and not (tier.isascii() and tier.isdigit() and len(tier) <= _LONGEST_TIER):
        raise InvalidObjectError(path_of(TOPOLOGY_TIER_LABEL), f'"{tier}" is not a tier; use 0 or more')
    # Volcano takes hard if only a tier is set.
    return Topology(mode or "hard", int(tier) if tier else None)
