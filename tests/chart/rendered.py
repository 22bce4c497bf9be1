"""What a chart renders, found by kind and name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JSON", "Render", "Rendered"]

JSON = dict[str, Any]


@dataclass
class Rendered:
    """The manifests of one release."""

    documents: list[JSON]

    def one(self, kind: str, name: str = "") -> JSON:
        """The only one of that kind (and name)."""
        found = [item for item in self.documents if item["kind"] == kind and name in ("", item["metadata"]["name"])]
        assert len(found) == 1, [item["metadata"]["name"] for item in found]
        return found[0]

    def names(self) -> list[str]:
        """`Kind/name` of everything."""
        return sorted(f"{item['kind']}/{item['metadata']['name']}" for item in self.documents)

    def webhooks(self) -> dict[str, JSON]:
        """Every webhook of both configurations by its name."""
        kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
        return {webhook["name"]: webhook for kind in kinds for webhook in self.one(kind)["webhooks"] or ()}

    def arguments(self, component: str) -> list[str]:
        """The arguments of a Deployment's only container."""
        deployment = next(
            item
            for item in self.documents
            if item["kind"] == "Deployment" and item["metadata"]["name"].endswith(f"-{component}")
        )
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        arguments: list[str] = container["args"]
        return arguments


if TYPE_CHECKING:
    Render = Callable[..., Rendered]
