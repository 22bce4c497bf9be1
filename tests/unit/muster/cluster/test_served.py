"""The version of its PodGroup that a scheduler has in a cluster."""

import pytest

from muster.cluster.served import choose_versions
from muster.kube.errors import ApiError
from muster.schedulers import named
from tests.support.cases import cases
from tests.support.faults.apiserver import FaultyApiserver, failure, only, reply

GROUP = "/apis/scheduling.k8s.io"
POD_GROUPS = reply({"resources": [{"name": "priorityclasses"}, {"name": "podgroups"}, {"name": "podgroups/status"}]})
CLASSES = reply({"resources": [{"name": "priorityclasses"}]})
NONE = failure(404, "NotFound")


@cases(
    "stable, beta, chosen",
    ("both", POD_GROUPS, POD_GROUPS, "v1"),
    ("v1 alone, as Kubernetes 1.38 may have it", POD_GROUPS, NONE, "v1"),
    ("v1 has PriorityClasses only, as in Kubernetes 1.37", CLASSES, POD_GROUPS, "v1beta1"),
    ("none, as before 1.37", CLASSES, NONE, "v1beta1"),
    ("nobody may ask", failure(403, "Forbidden"), failure(403, "Forbidden"), "v1beta1"),
)
async def test_the_stable_version_goes_before_the_beta(stable: object, beta: object, chosen: str) -> None:
    async with FaultyApiserver.serving() as server, server.client() as client:
        server.on("GET", only(f"{GROUP}/v1", stable, only(f"{GROUP}/v1beta1", beta, NONE)))  # type: ignore[arg-type]
        schedulers = named("kubernetes", "volcano")
        await choose_versions(client, schedulers.values())
    native, volcano = schedulers.values()
    assert (native.resource.version, native.api_version) == (chosen, f"scheduling.k8s.io/{chosen}")
    assert volcano.resource.version == "v1beta1"
    assert {request.path for request in server.requests} <= {f"{GROUP}/v1", f"{GROUP}/v1beta1"}


async def test_an_apiserver_that_does_not_say_is_no_older_one() -> None:
    async with FaultyApiserver.serving() as server, server.client() as client:
        server.on("GET", failure(401, "Unauthorized"))
        with pytest.raises(ApiError, match="Unauthorized"):
            await choose_versions(client, named("kubernetes").values())
