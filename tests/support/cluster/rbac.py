"""Rights of ServiceAccounts: as roles in manifests grant them, and as docs/security.md lists them."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

EVERYWHERE = "everywhere"


class Right(NamedTuple):
    """A verb on a resource or subresource (`pods/binding`), on one object or all; namespace "" means all namespaces."""

    verb: str
    group: str
    resource: str
    name: str = ""
    namespace: str = ""

    @property
    def attributes(self) -> dict[str, str]:
        """The `resourceAttributes` of an access review for this permission."""
        resource, _, part = self.resource.partition("/")
        return {
            "verb": self.verb,
            "group": self.group,
            "resource": resource,
            "subresource": part,
            "name": self.name,
            "namespace": self.namespace,
        }


def covers(held: Right, other: Right) -> bool:
    """Whether who holds the one may do what the other says, as RBAC has it."""
    return held[:3] == other[:3] and held.namespace in ("", other.namespace) and held.name in ("", other.name)


def granted(documents: Iterable[dict[str, Any]], account: str) -> set[Right]:
    """What the bindings among these manifests grant a ServiceAccount, by its name.

    Raises AssertionError for a right that this cannot say: paths that are no resources, or an aggregated role.
    """
    documents = list(documents)
    roles = {(item["kind"], item["metadata"]["name"]): item for item in documents if item["kind"].endswith("Role")}
    rights = set()
    for binding in (item for item in documents if item["kind"].endswith("RoleBinding")):
        if account in (subject["name"] for subject in binding["subjects"]):
            role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
            assert "aggregationRule" not in role
            rights |= set(of_rules(role["rules"], binding["metadata"].get("namespace", "")))
    return rights


def of_rules(rules: Iterable[dict[str, Any]], namespace: str = "") -> Iterator[Right]:
    """What these rules of a role grant, in one namespace or everywhere."""
    for rule in rules:
        assert "nonResourceURLs" not in rule
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    for name in rule.get("resourceNames") or ("",):
                        yield Right(verb, group, resource, name, namespace)


def listed(page: str, account: str, namespace: str) -> set[Right]:
    """What the table of rights on docs/security.md lists for an account; `namespace` is muster's own.

    A name in italics stands for the list that the page gives it above the table.
    """
    rights = set()
    lists = dict(re.findall(r"^\*(.+?)\*: (.+)\.$", page, re.MULTILINE))
    for name, full in reversed(lists.items()):
        page = page.replace(f"*{name}*", full)
    for processes, where, resources, name, verbs in re.findall(
        r"^\| ([\w, ]+) \| (everywhere|its namespace) \| (.+?) \| (.*?) ?\| (.+?) \| .+ \|$", page, re.MULTILINE
    ):
        if account.rpartition("-")[2] in processes.split(", "):
            at = "" if where == EVERYWHERE else namespace
            names = re.findall(r"`(.+?)`", name) or [""]
            for full in re.findall(r"`(.+?)`", resources):
                resource, _, group = full.partition(".")
                rights |= {Right(verb, group, resource, one, at) for verb in verbs.split(", ") for one in names}
    return rights
