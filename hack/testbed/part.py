"""What a part of the testbed is: a program, what must exist before it starts, and how one sees that it is ready."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hack.testbed.site import Site

STRIPPED = "-s -w"


@dataclass(frozen=True, slots=True)
class Launch:
    """How a part is started: arguments after the program, additions to the environment, the URL that answers 200."""

    arguments: tuple[str, ...]
    health: str
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One program of the testbed; see `parts.PARTS` for all of them."""

    name: str
    family: str
    """The folder below `modules/` whose go.mod names the program."""
    package: str
    program: str = ""
    """The part whose program this one is, too, with the same family, package and ldflags; empty: it has its own."""
    ldflags: str = STRIPPED
    asset: bool = False
    """Whether KUBEBUILDER_ASSETS may supply it."""
    addon: str = ""
    """The word after `--with` that brings it; empty for the control plane, which is always there."""
    also: tuple[str, ...] = ()
    """Further words that bring it."""
    replaced_by: str = ""
    """The word that brings another program to do its work; the two never run together."""
    needs: tuple[str, ...] = ("kube-apiserver",)
    """Parts that are ready before this one starts; the table has them above it, and they come with it."""
    excludes: tuple[str, ...] = ()
    """Add-ons that cannot be on the same control plane."""
    enclosed: bool = False
    """Whether it shares mounts and processes with the containers of a real node, not its network alone."""
    restarts: bool = False
    """Whether it ends by itself where it cannot go on, and is started again then, as a kubelet would."""
    user: str = ""
    """The name under which the apiserver knows it."""
    namespace: str = ""
    crds: tuple[str, ...] = ()
    """Glob patterns of CRD files within the Go module of its package, one CRD per file."""
    after_crds: bool = False
    """Whether it starts only when the CRDs of the others are served."""
    prepare: Callable[[Site], None] | None = None
    """Creates what else must exist before it starts."""
    launch: Callable[[Site], Launch] | None = None
    """None for tools, which are built but not started."""
    ready: Callable[[Site], None] | None = None
    """Creates what those need that start after it."""
    settled: Callable[[Site], bool] | None = None
    """What must be true, beyond its health, before the testbed is ready."""
