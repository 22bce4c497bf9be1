"""Which versions the tests run: the table of docs/operations.md, read from the testbed's own go.mod files."""

from hack.testbed.build import DEBIAN
from hack.testbed.kubernetes import DEFAULT_KUBERNETES, FORMER, KUBERNETES
from hack.testbed.modules import required
from hack.testbed.parts import OF_THE_CHOSEN_VERSION, PARTS

BEGIN = "<!-- versions: written by MUSTER_REWRITE=1 pytest tests/docs/test_operations.py -->\n"
END = "<!-- end of versions -->\n"

# What stands for each part's own name, where that says too little.
_NAMES = {
    "etcd": "etcd",
    "kwok": "kwok (nodes that run nothing)",
    "volcano": "Volcano: scheduler, controllers, webhooks",
    "coscheduling": "scheduler-plugins: scheduler, controller",
    "kueue": "Kueue",
    "kuberay": "KubeRay operator",
    "training": "Training operator",
    "mpi": "MPI operator",
    "jobset": "JobSet",
    "trainer": "Kubeflow Trainer",
    "helm": "helm",
}


def table() -> str:
    """A row for each project whose programs the testbed runs with muster; build tools are left out."""
    rows: dict[str, str] = {}
    for part in PARTS.values():
        if part.family == DEBIAN or (part.launch is None and part.name != "helm"):
            continue
        module, version = required(part.family, part.package)
        if module == "k8s.io/kubernetes":
            name = "Kubernetes: apiserver, controllers, scheduler, kubelet, kube-proxy"
        else:
            name = _NAMES[part.name if part.name in _NAMES else part.family]
        rows.setdefault(name, f"| {name} | {version} |")
        if part.name in OF_THE_CHOSEN_VERSION:
            rows |= _other_versions(part.package)
    return "\n".join(["| what | version |", "|---|---|", *rows.values()]) + "\n"


def _other_versions(package: str) -> dict[str, str]:
    """The rows of each further Kubernetes that a testbed can have."""
    families = dict.fromkeys(
        one.family for name, one in KUBERNETES.items() if name not in {DEFAULT_KUBERNETES, *FORMER}
    )
    versions = [required(family, package)[1] for family in families]
    name = "Kubernetes with its own PodGroups: apiserver, controllers, scheduler"
    return {f"{name} {version}": f"| {name} | {version} |" for version in versions}
