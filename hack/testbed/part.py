"""A part of the testbed: a program, the objects that must exist before it starts, and the sign that it is ready."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hack.testbed.kubernetes import STRIPPED
from hack.testbed.site import Site


@dataclass(frozen=True, slots=True)
class Launch:
    """The start of a part: arguments after the program, additions to the environment, the URL that answers 200."""

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
    """True if KUBEBUILDER_ASSETS may supply it."""
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
    """True if it shares mounts and processes with the containers of a real node, not its network alone."""
    restarts: bool = False
    """True if it ends by itself where it cannot go on, and is started again then, as a kubelet would."""
    user: str = ""
    """The name under which the apiserver knows it."""
    crds: tuple[str, ...] = ()
    """Glob patterns of CRD files within the Go module of its package, one CRD per file."""
    after_crds: bool = False
    """True if it starts only when the CRDs of the others are served."""
    prepare: Callable[[Site], None] | None = None
    """Creates what else must exist before it starts."""
    launch: Callable[[Site], Launch] | None = None
    """None for tools, which are built but not started."""
    ready: Callable[[Site], None] | None = None
    """Creates what those need that start after it."""
    settled: Callable[[Site], bool] | None = None
    """A condition, beyond its health, for the testbed to be ready."""

    @property
    def namespace(self) -> str:
        """The namespace of its ServiceAccount; empty if it is no ServiceAccount."""
        return self.user.split(":")[2] if self.user.startswith("system:serviceaccount:") else ""
