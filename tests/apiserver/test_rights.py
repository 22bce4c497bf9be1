"""What muster's ServiceAccounts may do, with their real tokens: what the chart grants, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from muster.cli.doctor.rights import Right
from tests.support.cluster.access_reviews import Kind, allowed, discovered, questions
from tests.support.cluster.rbac import covers, granted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hack.testbed import Testbed
    from hack.testbed.api import Api
    from hack.testbed.muster import MusterInstall

JSON = dict[str, Any]

FORBIDDEN = 403
OTHER = "kube-system"

# What Kubernetes itself lets every ServiceAccount do: ask about itself, and read what there is to ask.
EVERYBODYS = {
    Right("create", "authentication.k8s.io", "selfsubjectreviews"),
    Right("create", "authorization.k8s.io", "selfsubjectaccessreviews"),
    Right("create", "authorization.k8s.io", "selfsubjectrulesreviews"),
}
PATHS = ("/*", "/api", "/apis", "/debug/pprof/heap", "/healthz", "/logs", "/metrics", "/openid/v1/jwks", "/readyz")
PATHS_OF_EVERYBODY = {"/api", "/apis", "/healthz", "/openid/v1/jwks", "/readyz"}

# Resources that are asked about by RBAC alone, or that other parts of a cluster bring.
BESIDE = {
    *(Kind("", name, False) for name in ("users", "groups", "*")),
    *(Kind("authentication.k8s.io", name, False) for name in ("uids", "userextras/scopes")),
    Kind("certificates.k8s.io", "signers", False),
    Kind("muster.dev", "gangs", True),
    Kind("muster.dev", "*", True),
    Kind("batch.volcano.sh", "jobs", True),
    Kind("bus.volcano.sh", "commands", True),
    Kind("topology.volcano.sh", "hypernodes", False),
    Kind("cert-manager.io", "certificates", True),
    Kind("example.com", "things", True),
    Kind("*", "*", True),
}


@dataclass(frozen=True, slots=True)
class Account:
    """A ServiceAccount of the installed chart, and calls with its token."""

    name: str
    token: str
    calls: Api
    rights: frozenset[Right]


@pytest.fixture(scope="module", params=["muster-webhook", "muster-controller"])
def account(bare: Testbed, webhook_of_session: MusterInstall, request: pytest.FixtureRequest) -> Iterator[Account]:
    """With the token that its process has."""
    program = webhook_of_session.programs[request.param.removeprefix("muster-")]
    (user,) = yaml.safe_load(program.kubeconfig.read_text())["users"]
    calls = bare.api(user["user"]["token"])
    manifest = bare.helm("get", "manifest", "muster", f"--namespace={webhook_of_session.namespace}").stdout
    rights = granted((item for item in yaml.load_all(manifest, yaml.CSafeLoader) if item), request.param)
    yield Account(request.param, user["user"]["token"], calls, frozenset(rights))
    calls.close()


async def test_exactly_that_is_allowed_and_nothing_else(
    bare: Testbed, calls: Api, account: Account, webhook_of_session: MusterInstall
) -> None:
    """Every verb on everything that the apiserver serves or knows by name, here and elsewhere, asked with the token."""
    served = discovered(calls)
    known = {kind[:2] for kind in served}
    named = {(right.group, right.resource) for right in account.rights}
    unserved = {Kind(*thing, True) for thing in named - known}
    asked = list(questions(served | BESIDE | unserved, webhook_of_session.namespace, OTHER, account.rights))
    asked += [Right(verb, "", path) for path in PATHS for verb in ("get", "post", "put", "delete")]
    expected = account.rights | EVERYBODYS | {Right("get", "", path) for path in PATHS_OF_EVERYBODY}
    by_verb: dict[tuple[str, ...], list[Right]] = {}
    for right in expected:
        by_verb.setdefault(right[:3], []).append(right)
    answers = await allowed(bare, account.token, asked)
    wrong = [
        (right, answer)
        for right, answer in zip(asked, answers, strict=True)
        if answer != any(covers(one, right) for one in by_verb.get(right[:3], ()))
    ]
    assert not wrong
    assert {right[:3] for right, answer in zip(asked, answers, strict=True) if answer} == set(by_verb)


def test_nobody_binds_them_to_more(calls: Api, account: Account, webhook_of_session: MusterInstall) -> None:
    """Beside the chart's own bindings only those of Kubernetes are about them, which are everybody's: see above."""
    everybody = {"system:serviceaccounts", f"system:serviceaccounts:{webhook_of_session.namespace}"}
    everybody |= {"system:authenticated", "system:unauthenticated"}
    bindings = [
        item
        for kind in ("clusterrolebindings", "rolebindings")
        for item in calls.done("GET", f"/apis/rbac.authorization.k8s.io/v1/{kind}")["items"]
    ]
    named = [
        binding["metadata"]["name"]
        for binding in bindings
        for subject in binding.get("subjects", ())
        if subject["name"] in {account.name, f"system:serviceaccount:{webhook_of_session.namespace}:{account.name}"}
    ]
    assert named == [account.name] * 2
    assert {
        binding["metadata"]["name"].split(":")[0]
        for binding in bindings
        for subject in binding.get("subjects", ())
        if subject["name"] in everybody
    } == {"system"}


_SYSTEM, _MUSTER = "/api/v1/namespaces/kube-system", "/api/v1/namespaces/muster-system"
_RBAC, _HOOKS = "/apis/rbac.authorization.k8s.io/v1", "/apis/admissionregistration.k8s.io/v1"
_AUTH = "/apis/{}.k8s.io/v1"
_CONTAINER = {"name": "main", "image": "evil"}
FORBIDDEN_REQUESTS: list[tuple[str, str, JSON | None]] = [
    ("GET", f"{_SYSTEM}/secrets/any", None),
    ("GET", "/api/v1/secrets", None),
    ("GET", f"{_MUSTER}/secrets", None),
    ("GET", f"{_MUSTER}/secrets/others", None),
    ("GET", f"{_SYSTEM}/configmaps", None),
    ("POST", f"{_SYSTEM}/pods", {"metadata": {"name": "evil"}, "spec": {"containers": [_CONTAINER]}}),
    ("POST", f"{_MUSTER}/pods", {"metadata": {"name": "evil"}, "spec": {"containers": [_CONTAINER]}}),
    ("POST", f"{_SYSTEM}/pods/any/exec?command=id", None),
    ("POST", f"{_SYSTEM}/pods/any/binding", {"target": {"kind": "Node", "name": "any"}}),
    ("POST", f"{_SYSTEM}/pods/any/eviction", {"metadata": {"name": "any"}}),
    ("PATCH", f"{_SYSTEM}/pods/any/ephemeralcontainers", {"spec": {"ephemeralContainers": [_CONTAINER]}}),
    ("PATCH", f"{_SYSTEM}/pods/any/status", {"status": {"phase": "Succeeded"}}),
    ("DELETE", f"{_SYSTEM}/pods", None),
    ("GET", f"{_SYSTEM}/pods/any/log", None),
    ("PATCH", "/api/v1/nodes/any", {"spec": {"unschedulable": True}}),
    ("GET", "/api/v1/nodes/any/proxy/pods", None),
    ("PATCH", "/api/v1/namespaces/kube-system", {"metadata": {"labels": {"muster.dev/managed": "true"}}}),
    ("POST", f"{_SYSTEM}/serviceaccounts/default/token", {"spec": {}}),
    ("POST", f"{_MUSTER}/serviceaccounts/muster-controller/token", {"spec": {}}),
    ("POST", f"{_MUSTER}/serviceaccounts", {"metadata": {"name": "evil"}}),
    ("PATCH", f"{_MUSTER}/services/muster-webhook", {"spec": {"externalName": "evil"}}),
    ("PATCH", "/apis/apps/v1/namespaces/muster-system/deployments/muster-webhook", {"spec": {"replicas": 0}}),
    ("PATCH", f"{_RBAC}/clusterroles/muster-controller", {"rules": []}),
    ("POST", f"{_RBAC}/clusterrolebindings", {"roleRef": {"kind": "ClusterRole", "name": "cluster-admin"}}),
    ("POST", f"{_HOOKS}/mutatingwebhookconfigurations", {"metadata": {"name": "evil"}}),
    ("PATCH", f"{_HOOKS}/mutatingwebhookconfigurations/others", {"webhooks": []}),
    ("DELETE", f"{_HOOKS}/validatingwebhookconfigurations/muster", None),
    ("DELETE", f"{_HOOKS}/validatingadmissionpolicybindings/muster-controller", None),
    ("PATCH", f"{_HOOKS}/validatingadmissionpolicies/muster-controller", {"spec": {"failurePolicy": "Ignore"}}),
    ("POST", f"{_AUTH.format('authentication')}/tokenreviews", {"spec": {"token": "guessed"}}),
    ("POST", f"{_AUTH.format('authorization')}/subjectaccessreviews", {"spec": {"user": "any"}}),
    ("POST", f"{_AUTH.format('certificates')}/certificatesigningrequests", {"spec": {"usages": []}}),
    ("PATCH", f"{_AUTH.format('certificates')}/certificatesigningrequests/any/approval", {"status": {}}),
    ("PATCH", "/apis/scheduling.volcano.sh/v1beta1/queues/default", {"spec": {"capability": {"cpu": "0"}}}),
    ("PATCH", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/any", {"spec": {}}),
]


@pytest.mark.parametrize(("method", "path", "body"), FORBIDDEN_REQUESTS, ids=lambda part: str(part)[-60:])
def test_the_apiserver_refuses_what_is_not_listed(account: Account, method: str, path: str, body: JSON | None) -> None:
    """Real requests, refused for want of the right, before anything is looked at."""
    answer = account.calls(method, path, body, patch="merge" if method == "PATCH" else "")
    assert (answer.status, "cannot" in answer.message) == (FORBIDDEN, True), answer.message
    assert f"system:serviceaccount:muster-system:{account.name}" in answer.message


def test_they_are_nobody_else(account: Account) -> None:
    """Neither a user nor a ServiceAccount, nor each other."""
    for user in ("kubernetes-admin", "system:serviceaccount:kube-system:default", "system:kube-controller-manager"):
        answer = account.calls("GET", "/api/v1/namespaces", user=user)
        assert (answer.status, "cannot impersonate" in answer.message) == (FORBIDDEN, True), answer.message
