"""What each command of the pages for operators is to do: run in this order, on a real node.

tests/docs/test_operations.py holds it against the pages: no block is left out.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hack.testbed import PATIENCE, Testbed, wait_for
from hack.testbed.api import NotFoundError
from hack.testbed.nodes import REAL
from hack.testbed.ports import free_port
from muster import __version__
from muster.model.names import GANG, GANG_SIZE
from tests.support.cluster.admission_stream import admitted
from tests.support.cluster.helm_release import Release
from tests.support.pages.blocks import block, blocks, inline, whole
from webhook.certificates.bundles import CLOSED

CHECKOUT = Path(__file__).parents[3]
PAGES = tuple(
    str(path.relative_to(CHECKOUT))
    for path in (
        whole("docs/operations.md"),
        whole("docs/runbook.md"),
        whole("docs/certificates.md"),
        whole("docs/security.md"),
    )
)
_TEAM = "team-a"
_CONFIGURATIONS = "mutatingwebhookconfiguration,validatingwebhookconfiguration"
_SECRET = "/api/v1/namespaces/muster-system/secrets/muster-webhook-tls"  # noqa: S105 - a path


class Cluster:
    """The cluster of the reader: muster is installed, and he has kubectl, helm and muster at hand."""

    def __init__(self, testbed: Testbed) -> None:
        self.testbed = testbed
        self.api = testbed.api()
        self.remembered: Any = None
        port = str(free_port())
        # What the reader puts in: names of his own, and a port that is free on this machine.
        self._words = {
            "-n NAMESPACE GANG": f"-n {_TEAM} first",
            '"USER"': '"somebody"',
            '"GROUP"': '"oncall"',
            '"NAMESPACE"': f'"{_TEAM}"',
            "REGISTRY/muster:0.1.0": f"{Release.image}:{__version__}",
            # To the real node, and to no other.
            '"muster-by-hand"}}': f'"muster-by-hand","tolerations":[{{"key":"{REAL}","operator":"Exists"}}]}}}}',
            "webhook 8080": f"webhook {port}:8080",
            "localhost:8080": f"localhost:{port}",
        }

    def run(self, text: str) -> str:
        """Run a block as it stands on the page, in the checkout, and return what it printed; any failure fails."""
        for word, own in self._words.items():
            text = text.replace(word, own)
        told = self.testbed.environment()
        told["PATH"] = f"{Path(sys.executable).parent}:{told['PATH']}"
        environment = os.environ | told | {"PYTHONPATH": str(CHECKOUT)}
        argv = ["bash", "-e", "-o", "pipefail", "-c", text]
        done = subprocess.run(
            argv, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False, timeout=2 * PATIENCE
        )
        assert not done.returncode, f"{text}\n{done.stdout}{done.stderr}"
        return done.stdout

    def kubectl(self, *arguments: str) -> str:
        """What kubectl prints."""
        return self.testbed.kubectl(*arguments).stdout

    def secret(self) -> dict[str, Any]:
        """The Secret with the webhook's certificates."""
        return self.api.get(_SECRET)

    def whole(self) -> None:
        """Bring back what a step before has taken away, as the page says, until pods of gangs are held again."""
        if not self.kubectl("get", _CONFIGURATIONS, "--ignore-not-found", "--output=name", "muster"):
            self.run(block("docs/operations.md", "helm upgrade muster"))
        wait_for("gangs' pods to be held", lambda: not admitted(self.api, gang=True))

    def team(self) -> None:
        """A namespace of a team's."""
        if _TEAM not in self.kubectl("get", "namespaces", "--output=name"):
            self.kubectl("create", "namespace", _TEAM)

    def waiting(self, *gangs: str) -> None:
        """Gangs of two that lack a pod, so their other one waits."""
        self.whole()
        self.team()
        account = f"/api/v1/namespaces/{_TEAM}/serviceaccounts/default"
        wait_for("its ServiceAccount", lambda: self._found(account))
        for gang in gangs:
            about = {"name": f"{gang}-0", "labels": {GANG: gang}, "annotations": {GANG_SIZE: "2"}}
            container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": {"containers": [container]}}
            self.api.create(f"/api/v1/namespaces/{_TEAM}/pods", pod)
        assert set(gangs) <= self.held()

    def held(self) -> set[str]:
        """The gangs whose pods have their gates."""
        pods = self.api.get(f"/api/v1/namespaces/{_TEAM}/pods")["items"]
        return {pod["metadata"]["labels"][GANG] for pod in pods if pod["spec"].get("schedulingGates")}

    def may_release(self, group: str, namespace: str) -> bool:
        """Whether a member of that group may release gangs there; "" is everywhere."""
        asked = {"group": "muster.dev", "resource": "gangs", "verb": "release", "namespace": namespace}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": "somebody", "groups": [group], "resourceAttributes": asked},
        }
        answer = self.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
        return bool(answer["status"]["allowed"])

    def _found(self, path: str) -> bool:
        try:
            self.api.get(path)
        except NotFoundError:
            return False
        return True


def _nothing(_cluster: Cluster) -> None:
    pass


@dataclass(frozen=True)
class Step:
    """A command of a page: what must be so before, and what is so afterwards, of the cluster and of what it says."""

    begins: str
    """A command in a sentence, whole; or how one block begins."""
    holds: Callable[[Cluster, str], None]
    before: Callable[[Cluster], None] = _nothing

    @property
    def text(self) -> str:
        """What is run."""
        if any(self.begins in inline(page) for page in PAGES):
            return self.begins
        (page,) = (page for page in PAGES if any(text.startswith(self.begins) for text in blocks(page)))
        return block(page, self.begins)


def _prints(word: str) -> Callable[[Cluster, str], None]:
    def holds(_cluster: Cluster, said: str) -> None:
        assert word in said

    return holds


def _is_upgraded(cluster: Cluster, said: str) -> None:
    """And the values that were set are kept."""
    assert "STATUS: deployed" in said
    assert "repository: muster.test/muster" in cluster.run("helm get values muster --namespace muster-system")


def _is_rolled_back(_cluster: Cluster, said: str) -> None:
    assert "successfully rolled out" in said
    assert "Upgrade complete" in said
    assert "Rollback was a success" in said


def _says_the_level(_cluster: Cluster, said: str) -> None:
    assert said.rstrip().endswith("debug")


def _remember_the_secret(cluster: Cluster) -> None:
    wait_for("the Secret to be filled", lambda: cluster.secret().get("data"))
    cluster.remembered = cluster.secret()["data"]


def _has_renewed(what: str) -> Callable[[Cluster, str], None]:
    def holds(cluster: Cluster, _said: str) -> None:
        before = cluster.remembered[what]
        wait_for(f"another {what}", lambda: cluster.secret()["data"][what] != before)
        wait_for("the wish to be gone", lambda: "muster.dev/rotate" not in _annotations(cluster.secret()))
        assert not admitted(cluster.api, gang=True)

    return holds


def _annotations(item: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = item["metadata"].get("annotations", {})
    return found


def _may_release(cluster: Cluster, _said: str) -> None:
    wait_for("the role everywhere to count", lambda: cluster.may_release("oncall", ""))
    wait_for("the role of the team to count", lambda: cluster.may_release("team-a-leads", _TEAM))
    assert not cluster.may_release("team-a-leads", "default")


def _let_go(*held: str) -> Callable[[Cluster, str], None]:
    def holds(cluster: Cluster, _said: str) -> None:
        assert cluster.held() == set(held)

    return holds


def _is_out_of_the_way(cluster: Cluster, _said: str) -> None:
    assert not cluster.kubectl("get", _CONFIGURATIONS, "--ignore-not-found", "--output=name", "muster")
    wait_for("a pod to pass without muster", lambda: admitted(cluster.api, gang=True) == "gates []")


def _is_called(_cluster: Cluster, said: str) -> None:
    assert "ray.pods.muster.dev" in said
    assert CLOSED not in said


def _has_withdrawn(cluster: Cluster, said: str) -> None:
    _let_go()(cluster, said)
    _is_out_of_the_way(cluster, said)
    assert not cluster.kubectl("get", "clusterrolebinding", "muster-controller", "--ignore-not-found", "--output=name")


def _no_policy_binds(cluster: Cluster, _said: str) -> None:
    left = cluster.kubectl("get", "validatingadmissionpolicybindings", "--output=json")
    assert not [item for item in json.loads(left)["items"] if item["metadata"]["name"].startswith("muster-")]


def _is_gone(cluster: Cluster, _said: str) -> None:
    """When the last pod has ended, too."""
    kinds = "all,configmaps,secrets,leases,clusterroles,clusterrolebindings,roles,rolebindings"
    ask = ("get", kinds, "--selector=app.kubernetes.io/instance=muster", "--all-namespaces", "--output=name")
    wait_for("nothing to be left", lambda: not cluster.kubectl(*ask))
    assert "muster" not in cluster.kubectl("get", "leases", "--namespace=muster-system", "--output=name")
    wait_for("a pod to pass without muster", lambda: admitted(cluster.api, gang=True) == "gates []")


STEPS = (
    Step("kubectl -n muster-system get pods", _prints("muster-webhook-")),
    Step("kubectl -n muster-system get pods\n", _prints("muster-webhook-")),
    Step("kubectl -n muster-system get lease muster", _prints("muster-controller-")),
    Step("muster queues", _prints("default")),
    Step("muster doctor", _prints("\n0 problems, ")),
    Step("helm upgrade muster", _is_upgraded),
    Step("kubectl -n muster-system rollout status", _is_rolled_back),
    Step("helm test muster", _prints("Succeeded")),
    Step("kubectl -n muster-system port-forward", _says_the_level),
    Step(
        "kubectl -n muster-system annotate secret muster-webhook-tls muster.dev/rotate=serving",
        _has_renewed("tls.crt"),
        _remember_the_secret,
    ),
    Step(
        "kubectl -n muster-system annotate secret muster-webhook-tls muster.dev/rotate=authority",
        _has_renewed("ca.crt"),
        _remember_the_secret,
    ),
    Step("kubectl -n muster-system events --for secret/muster-webhook-tls", _prints("CertificateRotated")),
    Step("kubectl create clusterrolebinding", _may_release, Cluster.team),
    Step("kubectl create -f - -o jsonpath", _prints("true")),
    Step("muster release -n NAMESPACE GANG", _let_go("second"), lambda cluster: cluster.waiting("first", "second")),
    Step("muster release --all", _let_go()),
    Step(
        "kubectl -n muster-system create serviceaccount muster-by-hand",
        _let_go(),
        lambda cluster: cluster.waiting("by-hand"),
    ),
    Step("kubectl get pods -A -l muster.dev/gang", _let_go(), lambda cluster: cluster.waiting("third")),
    Step("kubectl -n muster-system describe pod", _is_called, Cluster.whole),
    Step(f"kubectl delete {_CONFIGURATIONS}", _is_out_of_the_way, Cluster.whole),
    Step("kubectl delete validatingadmissionpolicybinding", _no_policy_binds),
    Step("muster withdraw --name", _has_withdrawn, lambda cluster: cluster.waiting("fourth")),
    Step("kubectl -n muster-system logs -l", _prints("")),
    Step("helm uninstall", _is_gone),
)
"""Blocks, and commands in sentences, in an order that makes sense: what takes muster away comes last."""
