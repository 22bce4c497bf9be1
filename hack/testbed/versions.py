"""Other versions of what the testbed runs: with MUSTER_VERSIONS=kubernetes=1.31,kuberay=1.4 every testbed has these.

`make test-versions` runs tests so, one other version at a time; everything else stays as `modules/` has it.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from hack.testbed.errors import TestbedError

VARIABLE = "MUSTER_VERSIONS"


@dataclass(frozen=True, slots=True)
class Other:
    """The folder below `modules/` that names a version's programs, and the package of one of them."""

    family: str
    package: str


OTHERS: Mapping[str, Mapping[str, Other]] = {
    "kubernetes": {
        minor: Other(f"kubernetes-{minor}", "k8s.io/kubernetes/cmd/kube-apiserver")
        for minor in ("1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36.5", "1.37")
    },
    "kuberay": {
        minor: Other(f"kuberay-{minor}", "github.com/ray-project/kuberay/ray-operator")
        for minor in ("1.3", "1.4", "1.5")
    },
    "helm": {"3": Other("helm-3", "helm.sh/helm/v3/cmd/helm")},
}
"""Versions by the family that they replace, and by the word after its `=`."""


def chosen(family: str) -> str:
    """Return the version that the environment asks for, empty where none. Raises TestbedError for an unknown one."""
    wishes = dict(word.partition("=")[::2] for word in os.environ.get(VARIABLE, "").split(",") if word)
    for name, version in wishes.items():
        if version not in OTHERS.get(name, {}):
            known = ", ".join(f"{one}={word}" for one, words in OTHERS.items() for word in words)
            raise TestbedError(f"{VARIABLE} asks for {name}={version}: choose from {known}")
    return wishes.get(family, "")


def family_of(family: str) -> str:
    """Return the family in whose place the environment wants it: its own where it asks for nothing."""
    version = chosen(family)
    return OTHERS[family][version].family if version else family
