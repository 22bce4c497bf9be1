"""Answers of an apiserver that has a handful of objects, for commands that read a cluster by several requests."""

from collections.abc import Mapping, Sequence

from aiohttp import web

from tests.support.faults.apiserver import Answer, failure, listing, reply
from tests.support.manifests.observed import JSON

FORBIDDEN = "forbidden"
"""Stands for objects that this user may not read."""


def answers(objects: Mapping[str, Sequence[JSON] | str]) -> Answer:
    """Answer lists and single objects by the path of a kind, such as `/apis/ray.io/v1/rayclusters`.

    Label selectors count, and of field selectors the one for the object of an event.
    """

    async def answer(request: web.Request) -> web.StreamResponse:
        parts = request.path.split("/")
        namespace = ""
        if "namespaces" in parts[:-2]:
            at = parts.index("namespaces")
            namespace = parts[at + 1]
            del parts[at : at + 2]
        path, name = "/".join(parts), ""
        if path not in objects:
            path, _, name = path.rpartition("/")
        found = objects.get(path)
        if found is None:
            return await failure(404, "NotFound")(request)
        if isinstance(found, str):
            return await failure(403, "Forbidden")(request)
        there = [one for one in found if not namespace or one["metadata"].get("namespace") == namespace]
        if name:
            one = next((one for one in there if one["metadata"]["name"] == name), None)
            return await (failure(404, "NotFound") if one is None else reply(one))(request)
        for part in filter(None, request.query.get("labelSelector", "").split(",")):
            label, _, value = part.lstrip("!").partition("=")
            labels = [one["metadata"].get("labels", {}) for one in there]
            there = [
                one
                for one, has in zip(there, labels, strict=True)
                if (label in has) is not part.startswith("!") and value in ("", has.get(label))
            ]
        field, _, uid = request.query.get("fieldSelector", "").partition("=")
        if field == "regarding.uid":
            there = [one for one in there if one["regarding"]["uid"] == uid]
        return await reply(listing(1, *there))(request)

    return answer
