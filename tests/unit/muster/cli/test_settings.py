"""Where commands find the settings of the installation: in the cluster, unless the user gives a values file."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from muster.admitters import Admitter
from muster.cli.connecting import find_settings, opened, start_error
from muster.cli.settings import Settings, any_scheduler, read_settings
from muster.gangs.start_errors import PlannedStart, StartError, StartErrors
from muster.kube.errors import ApiError
from muster.model.modes import GateMode
from muster.schedulers import SCHEDULERS
from tests.support.cases import cases
from tests.support.cli.command import cluster_options
from tests.support.cli.connections import kubeconfig
from tests.support.faults.apiserver import Answer, FaultyApiserver, failure, only, reply

MAP = "/api/v1/namespaces/kube-public/configmaps/muster"
VALUES = {
    "schedulers": ["coscheduling=batch", "kubernetes"],
    "queues": {"source": "muster"},
    "defaultQueue": "shared",
    "gate": "assemble",
    "admitters": ["kueue", "ledger"],
    "bound": "nodes",
    "elasticQuotas": True,
    "excludedNamespaces": ["kube-system", "muster-system"],
    "namespaceSelector": {"matchLabels": {"team": "ml"}},
}


def published(text: str) -> Answer:
    return reply({"metadata": {"name": "muster"}, "data": {"values.yaml": text}})


async def found(answer: Answer, assumed: Settings | None = None) -> Settings:
    async with FaultyApiserver.serving() as server, server.client() as client:
        server.on("GET", only(MAP, answer, failure(404, "NotFound")))
        return await find_settings(client, assumed)


async def test_the_published_settings_count() -> None:
    settings = await found(published(json.dumps(VALUES)))
    defaults = settings.defaults
    assert {name: one.product for name, one in defaults.schedulers.items()} == {
        "batch": "coscheduling",
        "default-scheduler": "kubernetes",
    }
    assert (defaults.queue_source.kind, defaults.queue, defaults.gate) == ("GangQueue", "shared", GateMode.ASSEMBLE)
    assert (defaults.admitters, defaults.elastic_quotas) == ((Admitter.KUEUE, Admitter.LEDGER), True)
    assert (settings.by_nodes, settings.note) == (True, "")
    name, team = "kubernetes.io/metadata.name", {"team": "ml"}
    chosen = [({name: "a", **team}, True), ({name: "a"}, False), ({name: "muster-system", **team}, False)]
    assert [defaults.namespaces.matches(labels) for labels, _ in chosen] == [selected for _, selected in chosen]


@cases("own, asked", ("published", False, MAP), ("of a file", True, "/version"))
async def test_one_request_finds_the_settings_and_a_file_of_the_user_goes_first(
    tmp_path: Path,
    own: bool,
    asked: str,
) -> None:
    given = read_settings("own.yaml", "defaultQueue: mine") if own else None
    async with FaultyApiserver.serving() as server:
        server.on("GET", published(json.dumps(VALUES)))
        path = tmp_path / "config"
        path.write_text(kubeconfig(0).replace("https://127.0.0.1:0", server.url))
        options = cluster_options(path)
        options.values = given
        async with opened(options) as (_, settings):
            assert settings.defaults.queue == ("mine" if own else "shared")
        assert server.requests[0].path == asked
        # And of a scheduler whose PodGroups have two versions, which of them is served.
        versions = {f"/apis/scheduling.k8s.io/{version}" for version in ("v1", "v1beta1")}
        assert {one.path for one in server.requests[1:]} <= versions


@cases(
    "answer, why",
    ("an older chart", failure(404, "NotFound"), "ConfigMap kube-public/muster does not exist"),
    ("no right", failure(403, "Forbidden"), "ConfigMap kube-public/muster may not be read"),
    ("spoiled", published("{"), "ConfigMap kube-public/muster, line"),
    ("of a newer chart", published("schedulers: [newer]"), '"newer" is no gang scheduler'),
)
async def test_without_them_the_defaults_of_the_chart_are_assumed_and_a_note_says_so(answer: Answer, why: str) -> None:
    settings = await found(answer)
    assert (settings.defaults, settings.by_nodes) == (Settings().defaults, False)
    assert why in settings.note
    assert settings.note.startswith("the settings of muster are unknown (")
    assert settings.note.endswith("): assuming the defaults of its chart; --values FILE names others")


async def test_a_command_may_assume_others() -> None:
    settings = await found(failure(404, "NotFound"), assumed=any_scheduler())
    assert settings.defaults.schedulers == SCHEDULERS


async def test_an_apiserver_that_fails_is_no_older_chart() -> None:
    with pytest.raises(ApiError):
        await found(failure(400, "BadRequest"))


async def test_the_error_of_planned_starts_is_read_where_the_settings_say() -> None:
    errors = StartErrors()
    for _ in range(10):
        errors.record(PlannedStart(3600.0, "said", 3600.0, 0.0), 7200.0)
    where = "/api/v1/namespaces/gangs/configmaps/gangs-history-starts"
    settings = replace(Settings(), starts="gangs/gangs-history-starts")
    async with FaultyApiserver.serving() as server, server.client() as client:
        kept = reply({"metadata": {"name": "gangs-history-starts"}, "data": {"starts": errors.text()}})
        server.on("GET", only(where, kept, failure(404, "NotFound")))
        assert await start_error(client, settings, 7200.0) == StartError(10, 2.0)
        for answer in (failure(403, "Forbidden"), reply({"data": {"starts": "{"}}), reply({"metadata": {}})):
            server.on("GET", only(where, answer, failure(404, "NotFound")))
            assert await start_error(client, settings, 7200.0) is None
        assert await start_error(client, Settings(), 7200.0) is None
