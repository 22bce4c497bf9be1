"""The table of parts. A further operator is one more row here, with its launch function in a module of its own."""

from collections.abc import Iterable
from dataclasses import replace

from hack.testbed import batch_operators, control_plane, coscheduling, kueue, node, operators, volcano
from hack.testbed.build import DEBIAN
from hack.testbed.errors import TestbedError
from hack.testbed.kubernetes import DEFAULT_KUBERNETES, KUBERNETES
from hack.testbed.part import Part
from hack.testbed.versions import OTHERS
from hack.testbed.versions import chosen as chosen_version

_KUBERNETES = KUBERNETES[DEFAULT_KUBERNETES].ldflags
OF_THE_CHOSEN_VERSION = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""The parts whose version a testbed can choose; all others of Kubernetes are those of the default version."""

TOOLS = "tools"

_TABLE = (
    Part(
        name="etcd",
        family="kubernetes",
        package="go.etcd.io/etcd/server/v3",
        asset=True,
        needs=(),
        launch=control_plane.etcd,
    ),
    Part(
        name="kube-apiserver",
        family="kubernetes",
        package="k8s.io/kubernetes/cmd/kube-apiserver",
        ldflags=_KUBERNETES,
        asset=True,
        needs=("etcd",),
        launch=control_plane.kube_apiserver,
        ready=control_plane.grant,
    ),
    Part(
        name="kube-controller-manager",
        family="kubernetes",
        package="k8s.io/kubernetes/cmd/kube-controller-manager",
        ldflags=_KUBERNETES,
        user="system:kube-controller-manager",
        # Its garbage collector looks for new kinds every 30 s only: without this, what their objects own outlives them.
        after_crds=True,
        launch=control_plane.kube_controller_manager,
        settled=control_plane.default_service_account,
    ),
    Part(
        name="kube-scheduler",
        family="kubernetes",
        package="k8s.io/kubernetes/cmd/kube-scheduler",
        ldflags=_KUBERNETES,
        replaced_by=coscheduling.AS_DEFAULT,
        user="system:kube-scheduler",
        launch=control_plane.kube_scheduler,
    ),
    Part(
        name="kwok",
        family="kubernetes",
        package="sigs.k8s.io/kwok/cmd/kwok",
        user="system:serviceaccount:kube-system:kwok-controller",
        prepare=control_plane.create_nodes,
        launch=control_plane.kwok,
        settled=control_plane.nodes_schedulable,
    ),
    Part(
        name="volcano-scheduler",
        addon="volcano",
        family="volcano",
        package="volcano.sh/volcano/cmd/scheduler",
        user="system:serviceaccount:volcano-system:volcano-scheduler",
        # Without jobflow's the controllers never start, and no queue ever opens.
        crds=("config/crd/volcano/bases/*.yaml", "config/crd/jobflow/bases/*.yaml"),
        launch=volcano.scheduler,
    ),
    Part(
        name="volcano-controllers",
        addon="volcano",
        family="volcano",
        package="volcano.sh/volcano/cmd/controller-manager",
        user="system:serviceaccount:volcano-system:volcano-controllers",
        launch=volcano.controllers,
        settled=volcano.default_queue_open,
    ),
    Part(
        name="volcano-webhooks",
        addon="volcano-webhooks",
        family="volcano",
        package="volcano.sh/volcano/cmd/webhook-manager",
        needs=("volcano-controllers",),
        user="system:serviceaccount:volcano-system:volcano-admission",
        prepare=volcano.prepare_webhooks,
        launch=volcano.webhooks,
    ),
    Part(
        name="scheduler-plugins-scheduler",
        addon=coscheduling.AS_SECOND,
        also=(coscheduling.AS_DEFAULT,),
        family="coscheduling",
        package="sigs.k8s.io/scheduler-plugins/cmd/scheduler",
        ldflags=coscheduling.LDFLAGS,
        user="system:serviceaccount:scheduler-plugins:scheduler-plugins-scheduler",
        crds=("config/crd/bases/*.yaml",),
        prepare=coscheduling.prepare_scheduler,
        launch=coscheduling.scheduler,
    ),
    Part(
        name="scheduler-plugins-controller",
        addon=coscheduling.AS_SECOND,
        also=(coscheduling.AS_DEFAULT,),
        family="coscheduling",
        package="sigs.k8s.io/scheduler-plugins/cmd/controller",
        ldflags=coscheduling.LDFLAGS,
        user="system:serviceaccount:scheduler-plugins:scheduler-plugins-controller",
        launch=coscheduling.controller,
    ),
    Part(
        name="kuberay",
        addon="kuberay",
        family="kuberay",
        package="github.com/ray-project/kuberay/ray-operator",
        user="system:serviceaccount:ray-system:kuberay-operator",
        crds=("config/crd/bases/*.yaml",),
        launch=operators.kuberay,
    ),
    Part(
        name="training",
        addon="training",
        family="training",
        package="github.com/kubeflow/training-operator/cmd/training-operator.v1",
        user="system:serviceaccount:kubeflow:training-operator",
        # All but mpijobs, see `operators.training`.
        crds=("manifests/base/crds/kubeflow.org_[!m]*.yaml",),
        prepare=operators.prepare_training,
        launch=operators.training,
        settled=operators.training_serves,
    ),
    Part(
        name="training-mpi",
        addon="training-mpi",
        family="training",
        package="github.com/kubeflow/training-operator/cmd/training-operator.v1",
        program="training",
        excludes=("training", "mpi"),
        user="system:serviceaccount:kubeflow:training-operator",
        crds=("manifests/base/crds/kubeflow.org_*.yaml",),
        prepare=operators.prepare_training,
        launch=operators.training_mpi,
        settled=operators.training_serves,
    ),
    Part(
        name="mpi",
        addon="mpi",
        family="mpi",
        package="github.com/kubeflow/mpi-operator/cmd/mpi-operator",
        excludes=("training-mpi",),
        user="system:serviceaccount:mpi-operator:mpi-operator",
        crds=("manifests/base/kubeflow.org_mpijobs.yaml",),
        prepare=batch_operators.prepare_mpi,
        launch=batch_operators.mpi,
        # It ends when it could not renew its lease for 5 s, which cannot be chosen.
        restarts=True,
    ),
    Part(
        name="jobset",
        addon="jobset",
        family="jobset",
        package="sigs.k8s.io/jobset",
        user="system:serviceaccount:jobset-system:jobset-controller-manager",
        crds=("config/components/crd/bases/*.yaml",),
        prepare=batch_operators.prepare_jobset,
        launch=batch_operators.jobset,
        settled=batch_operators.jobset_serves,
    ),
    Part(
        name="trainer",
        addon="trainer",
        family="trainer",
        package="github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager",
        needs=("jobset",),
        user="system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager",
        crds=("manifests/base/crds/trainer*.yaml",),
        prepare=batch_operators.prepare_trainer,
        launch=batch_operators.trainer,
        settled=batch_operators.trainer_serves,
    ),
    Part(
        name="kueue",
        addon=kueue.KUEUE,
        family="kueue",
        package="sigs.k8s.io/kueue/cmd/kueue",
        ldflags=kueue.LDFLAGS,
        user="system:serviceaccount:kueue-system:kueue-controller-manager",
        crds=("config/components/crd/bases/*.yaml",),
        prepare=kueue.prepare,
        launch=kueue.kueue,
        settled=kueue.kueue_serves,
    ),
    Part(
        name="containerd",
        addon="node",
        family=DEBIAN,
        package="containerd",
        needs=(),
        enclosed=True,
        launch=node.containerd,
    ),
    Part(
        name="kubelet",
        addon="node",
        family="kubernetes",
        package="k8s.io/kubernetes/cmd/kubelet",
        ldflags=_KUBERNETES,
        needs=("kube-apiserver", "containerd"),
        user=f"system:node:{node.NODE}",
        enclosed=True,
        prepare=node.import_pause,
        launch=node.kubelet,
        settled=node.real_node_ready,
    ),
    Part(
        name="kube-proxy",
        addon="node",
        family="kubernetes",
        package="k8s.io/kubernetes/cmd/kube-proxy",
        ldflags=_KUBERNETES,
        user="system:kube-proxy",
        launch=node.kube_proxy,
    ),
    node.PAUSE_PROGRAM,
    Part(
        name="kubectl",
        family="kubernetes",
        package="k8s.io/kubernetes/cmd/kubectl",
        ldflags=_KUBERNETES,
        asset=True,
    ),
    Part(name="helm", family="helm", package="helm.sh/helm/v4/cmd/helm"),
    # No cluster needs these: `tests/chart` runs the first two, and the last one pushes images.
    Part(name="kubeconform", addon=TOOLS, family="kubeconform", package="github.com/yannh/kubeconform/cmd/kubeconform"),
    Part(name="cyclonus", addon=TOOLS, family="cyclonus", package="github.com/mattfenwick/cyclonus/cmd/cyclonus"),
    Part(name="crane", addon=TOOLS, family="registry", package="github.com/google/go-containerregistry/cmd/crane"),
    # Of releases: what signs them, and a registry to publish them to.
    Part(name="cosign", addon="release", family="cosign", package="github.com/sigstore/cosign/v3/cmd/cosign"),
    Part(
        name="registry",
        addon="release",
        family="distribution",
        package="github.com/distribution/distribution/v3/cmd/registry",
    ),
)

PARTS = {part.name: part for part in _TABLE}
ADDONS = tuple(dict.fromkeys(word for part in _TABLE for word in (part.addon, *part.also) if word))
DEFAULT_ADDONS = ("volcano", "kuberay", "training")


def select(addons: Iterable[str], kubernetes: str = DEFAULT_KUBERNETES) -> list[Part]:
    """Return the control plane, the tools, and the parts of these add-ons and of those they need, in table order.

    `kubernetes` is a key of `KUBERNETES`. Raises TestbedError for an add-on that is not in the table, for two that
    cannot be together, and for a Kubernetes that is not there.
    """
    wanted = set(addons)
    unknown = wanted.difference(ADDONS)
    if unknown:
        raise TestbedError(f"no part is called {', '.join(sorted(unknown))}: choose from {', '.join(ADDONS)}")
    for part in reversed(_TABLE):
        if part.addon in wanted:
            wanted |= {PARTS[need].addon for need in part.needs} - {""}
    chosen = [
        part
        for part in _TABLE
        if (not part.addon or not wanted.isdisjoint((part.addon, *part.also))) and part.replaced_by not in wanted
    ]
    for part in chosen:
        for other in sorted(wanted.intersection(part.excludes)):
            raise TestbedError(f"{part.name} and {other} have CRDs of the same name: start a testbed for each")
    return [_as_wished(_of_version(part, kubernetes)) for part in chosen]


def _of_version(part: Part, kubernetes: str) -> Part:
    version = KUBERNETES.get(kubernetes)
    if version is None:
        raise TestbedError(f"there is no Kubernetes {kubernetes} here: choose from {', '.join(KUBERNETES)}")
    if part.name not in OF_THE_CHOSEN_VERSION or kubernetes == DEFAULT_KUBERNETES:
        return part
    # KUBEBUILDER_ASSETS has programs of one version, whichever that is.
    return replace(part, family=version.family, ldflags=version.ldflags, asset=False)


def _as_wished(part: Part) -> Part:
    """The part in the version that the environment asks for; that of Kubernetes is the testbed's own to choose."""
    version = chosen_version(part.family) if part.family != "kubernetes" else ""
    if not version:
        return part
    other = OTHERS[part.family][version]
    return replace(part, family=other.family, package=other.package)
