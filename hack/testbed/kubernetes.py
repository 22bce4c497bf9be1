"""The versions of Kubernetes that a testbed can have, and which of them knows PodGroups (scheduling.k8s.io/v1beta1).

Those before the default are for `make test-versions`. The three broken ones are half-configured on purpose: each looks
well in another place, and places no gang.
"""

from dataclasses import dataclass

STRIPPED = "-s -w"
"""The linker's flags for a program without symbols and debug information."""
_GATE = "--feature-gates=GenericWorkload=true"
_SERVED = "--runtime-config=scheduling.k8s.io/v1beta1=true"
# The controllers that talk to a cloud or to real disks. A controller manager refuses names that it does not know.
_OFF = ("node-ipam-controller", "persistentvolume-attach-detach-controller")
_OFF_1_36 = (*_OFF, "node-route-controller", "cloud-node-lifecycle-controller", "service-lb-controller")


def ldflags_of(version: str) -> str:
    """Have a program say which Kubernetes it is: clients that compare versions reject a server that does not."""
    major, minor, _ = version.split(".")
    facts = (("gitVersion", f"v{version}"), ("gitMajor", major), ("gitMinor", minor))
    return STRIPPED + "".join(f" -X k8s.io/component-base/version.{name}={value}" for name, value in facts)


@dataclass(frozen=True, slots=True)
class Kubernetes:
    """A version, the folder below `modules/` that names its programs, and what they are started with."""

    version: str
    family: str
    controllers_off: tuple[str, ...]
    apiserver: tuple[str, ...] = ()
    controller_manager: tuple[str, ...] = ()
    scheduler: tuple[str, ...] = ()

    @property
    def ldflags(self) -> str:
        """The flags of the linker."""
        return ldflags_of(self.version)


def _1_37(*apiserver: str, controller_manager: str = "", scheduler: str = "") -> Kubernetes:
    return Kubernetes(
        "1.37.2",
        "kubernetes-1.37",
        _OFF,
        apiserver,
        (controller_manager,) if controller_manager else (),
        (scheduler,) if scheduler else (),
    )


DEFAULT_KUBERNETES = "1.36"
FORMER = {
    minor: Kubernetes(version, f"kubernetes-{minor}", _OFF_1_36)
    for minor, version in (
        ("1.30", "1.30.14"),
        ("1.31", "1.31.14"),
        ("1.32", "1.32.13"),
        ("1.33", "1.33.13"),
        ("1.34", "1.34.4"),
        ("1.35", "1.35.4"),
        # The newest of 1.36; as the default it would have all of every cache built again.
        ("1.36.5", "1.36.5"),
    )
}
"""Versions that muster promises to run on and that only `make test-versions` runs, by the same word."""
KUBERNETES = {
    **FORMER,
    DEFAULT_KUBERNETES: Kubernetes("1.36.3", "kubernetes", _OFF_1_36),
    "1.37": _1_37(_GATE, _SERVED, controller_manager=_GATE, scheduler=_GATE),
    # As 1.37 comes: pods lose spec.schedulingGroup without a word.
    "1.37-gate-off": _1_37(),
    # Pods keep the field, no PodGroups are served, and the scheduler places no pod at all.
    "1.37-not-served": _1_37(_GATE, scheduler=_GATE),
    # Everything is served and kept, and the scheduler binds the pods of a gang one by one.
    "1.37-scheduler-gate-off": _1_37(_GATE, _SERVED, controller_manager=_GATE),
}
"""Versions by the word after `--kubernetes`."""
AS_RELEASED = {"1.37": "1.37-gate-off"}
"""For `make test-versions`, the versions whose default configuration has another word here."""
