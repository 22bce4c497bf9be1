"""What muster's ServiceAccounts may do, with their real tokens: what the chart grants, and nothing else."""

import asyncio
import ssl
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import aiohttp
import msgspec
import pytest
import yaml

from hack.testbed import Testbed
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from tests.support.cluster.rbac import Right, covers, granted, of_rules

_REST = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
VERBS = (
    *_REST,
    # Those that Kubernetes asks about beside what its REST paths do; all of them at once; and muster's own.
    *("impersonate", "bind", "escalate", "approve", "sign", "attest", "use", "proxy", "*", "release"),
)

_CONNECTIONS = 16
_ANY_NAME = "whatever"


class Kind(NamedTuple):
    """A resource or subresource (`pods/exec`) of a group."""

    group: str
    resource: str
    namespaced: bool


def discovered(calls: Api) -> set[Kind]:
    """What the apiserver serves, in every version of every group."""
    groups = calls.done("GET", "/apis")["groups"]
    versions = ["v1", *(version["groupVersion"] for group in groups for version in group["versions"])]
    found = set()
    for version in versions:
        listed = calls.done("GET", f"/{'apis' if '/' in version else 'api'}/{version}")["resources"]
        group = version.rpartition("/")[0]
        found |= {Kind(group, item["name"], item["namespaced"]) for item in listed}
    return found


def questions(kinds: Iterable[Kind], own: str, other: str, rights: Collection[Right]) -> Iterator[Right]:
    """Every verb on every kind, so that no right can stay unseen; the namespaces are the processes' own and another.

    Who may do something to all objects may do it to any one, and who may in all namespaces may in each: so where there
    is to be no right, any one object in a namespace is asked about. Where there is one, the wider questions are asked
    as well, and those about the objects that rights name.
    """
    ways = {right[:3] for right in rights}
    for kind in kinds:
        named = {right.name for right in rights if (right.group, right.resource) == kind[:2]}
        for verb in VERBS:
            more = ("",) if (verb, *kind[:2]) in ways else ()
            places = (*more, own, *((other,) if verb in _REST else ())) if kind.namespaced else ("",)
            for place, name in product(places, {_ANY_NAME, *more, *named}):
                yield Right(verb, kind.group, kind.resource, name, place)


async def allowed(testbed: Testbed, token: str, asked: Sequence[Right]) -> list[bool]:
    """What the holder of the token may do, in the order of the questions; a path stands as the resource of no group.

    Raises AssertionError for an answer that is no review.
    """
    context = ssl.create_default_context(cafile=str(testbed.ca_file))
    url = f"{testbed.server}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    answers = [False] * len(asked)
    waiting = iter(enumerate(asked))

    async def ask(session: aiohttp.ClientSession) -> None:
        for index, right in waiting:
            async with session.post(url, data=msgspec.json.encode(_review(right)), headers=headers) as response:
                status = msgspec.json.decode(await response.read())["status"]
            assert not status.get("evaluationError"), status
            answers[index] = status["allowed"]

    connector = aiohttp.TCPConnector(limit=_CONNECTIONS, ssl=context)
    async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as tasks:
        for _ in range(_CONNECTIONS):
            tasks.create_task(ask(session))
    return answers


def _review(right: Right) -> dict[str, object]:
    if right.resource.startswith("/"):
        return {"spec": {"nonResourceAttributes": {"path": right.resource, "verb": right.verb}}}
    return {"spec": {"resourceAttributes": right.attributes}}


JSON = dict[str, Any]

FORBIDDEN = 403
OTHER = "kube-system"

# What Kubernetes itself lets every ServiceAccount do: ask about itself, and read what there is to ask.
# What the chart lets every user do: read the settings, the controller's Lease, and how right planned starts were.
EVERYBODYS = {
    Right("get", "", "configmaps", "muster", "kube-public"),
    Right("get", "", "configmaps", "muster-history-starts", "muster-system"),
    Right("get", "coordination.k8s.io", "leases", "muster-controller", "muster-system"),
    Right("create", "authentication.k8s.io", "selfsubjectreviews"),
    Right("create", "authorization.k8s.io", "selfsubjectaccessreviews"),
    Right("create", "authorization.k8s.io", "selfsubjectrulesreviews"),
}
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
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


@pytest.fixture(scope="module", params=["muster-webhook", "muster-controller", "muster-page"])
def account(bare: Testbed, webhook_of_session: MusterInstall, request: pytest.FixtureRequest) -> Iterator[Account]:
    """With the token that its process has."""
    program = webhook_of_session.programs.get(request.param.removeprefix("muster-"))
    own = bare.service_account_token(webhook_of_session.namespace, request.param) if program is None else program.token
    calls = bare.api(own)
    manifest = bare.helm("get", "manifest", "muster", f"--namespace={webhook_of_session.namespace}").stdout
    rights = granted((item for item in yaml.load_all(manifest, yaml.CSafeLoader) if item), request.param)
    yield Account(request.param, own, calls, frozenset(rights))
    calls.close()


def test_the_apiserver_lists_exactly_that_and_nothing_else(account: Account, webhook_of_session: MusterInstall) -> None:
    """What its authorizer says to the token of all that it allows, in muster's namespace and in another."""
    for namespace in (webhook_of_session.namespace, OTHER):
        status = account.calls.create(REVIEW, {"spec": {"namespace": namespace}})["status"]
        assert not status["incomplete"]
        listed = {right[:4] for right in of_rules(status["resourceRules"])}
        assert listed == {right[:4] for right in account.rights | EVERYBODYS if right.namespace in ("", namespace)}
        paths = {
            (verb, path)
            for rule in status["nonResourceRules"]
            for verb in rule["verbs"]
            for path in rule["nonResourceURLs"]
        }
        assert {path for verb, path in paths if path in PATHS} == PATHS_OF_EVERYBODY
        assert {verb for verb, _ in paths} == {"get"}


@pytest.mark.long
async def test_exactly_that_is_allowed_and_nothing_else(
    bare: Testbed, calls: Api, account: Account, webhook_of_session: MusterInstall
) -> None:
    """Every verb on everything that the apiserver serves or knows by name, here and elsewhere, asked with the token."""
    served = discovered(calls)
    known = {kind[:2] for kind in served}
    named = {(right.group, right.resource) for right in account.rights}
    unserved = {Kind(*thing, True) for thing in named - known}
    rights = account.rights | EVERYBODYS
    asked = list(questions(served | BESIDE | unserved, webhook_of_session.namespace, OTHER, rights))
    asked += [Right(verb, "", path) for path in PATHS for verb in ("get", "post", "put", "delete")]
    expected = rights | {Right("get", "", path) for path in PATHS_OF_EVERYBODY}
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
    """All others that are about them are about every user: those of Kubernetes, and two of the chart, see above."""
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
    # One in all namespaces, and one in muster's own.
    assert named == [account.name] * 2
    assert {
        binding["metadata"]["name"].split(":")[0]
        for binding in bindings
        for subject in binding.get("subjects", ())
        if subject["name"] in everybody
    } == {"system", "muster-settings", "muster-status"}


_SYSTEM = "/api/v1/namespaces/kube-system"
_CONTAINER = {"name": "main", "image": "evil"}
# One of every way to write a request: a list, one object, a verb of its own, a subresource, a proxy, a collection.
_REQUESTS: list[tuple[str, str, JSON | None]] = [
    ("GET", "/api/v1/secrets", None),
    ("GET", "/api/v1/namespaces/muster-system/secrets/others", None),
    ("POST", f"{_SYSTEM}/pods", {"metadata": {"name": "evil"}, "spec": {"containers": [_CONTAINER]}}),
    ("POST", f"{_SYSTEM}/pods/any/exec?command=id", None),
    ("GET", "/api/v1/nodes/any/proxy/pods", None),
    ("DELETE", f"{_SYSTEM}/pods", None),
    ("POST", f"{_SYSTEM}/serviceaccounts/default/token", {"spec": {}}),
    ("PATCH", "/apis/rbac.authorization.k8s.io/v1/clusterroles/muster-controller", {"rules": []}),
]


def test_a_request_meets_what_the_reviews_say(account: Account) -> None:
    """Real requests, refused for want of the right, before anything is looked at."""
    for method, path, body in _REQUESTS:
        answer = account.calls(method, path, body, patch="merge" if method == "PATCH" else "")
        assert (answer.status, "cannot" in answer.message) == (FORBIDDEN, True), answer.message
        assert f"system:serviceaccount:muster-system:{account.name}" in answer.message


def test_they_are_nobody_else(account: Account) -> None:
    """Neither a user nor a ServiceAccount, nor each other."""
    for user in ("kubernetes-admin", "system:serviceaccount:kube-system:default", "system:kube-controller-manager"):
        answer = account.calls("GET", "/api/v1/namespaces", user=user)
        assert (answer.status, "cannot impersonate" in answer.message) == (FORBIDDEN, True), answer.message
