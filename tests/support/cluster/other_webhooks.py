"""Other people's mutating webhooks, served by the test itself: sidecar injectors and the like."""

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from hack.testbed import wait_for
from hack.testbed.api import Api
from hack.testbed.pki import Authority, write_pair
from muster.model.resource import MUTATING_WEBHOOKS, PODS
from tests.support.cluster.desk import PATIENCE, Manifest
from tests.support.manifests import applied


@dataclass
class Injector:
    """Answers every review with what `change` makes of the pod, and keeps the pods as it was shown them.

    The first are refused with the HTTP status and the headers of `refusals` instead.
    """

    change: Callable[[Manifest], list[dict[str, Any]]]
    seen: list[Manifest] = field(default_factory=list)
    refusals: list[tuple[int, dict[str, str]]] = field(default_factory=list)

    def answer(self, review: Manifest) -> Manifest:
        """The response to an AdmissionReview."""
        request = review["request"]
        self.seen.append(request["object"])
        patch = base64.b64encode(json.dumps(self.change(request["object"])).encode()).decode()
        response = {"uid": request["uid"], "allowed": True, "patchType": "JSONPatch", "patch": patch}
        return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}


def with_sidecar(name: str = "istio-proxy") -> Callable[[Manifest], list[dict[str, Any]]]:
    """As Istio's injector does it: a container, an init container and an annotation, unless they are there."""

    def change(pod: Manifest) -> list[dict[str, Any]]:
        spec = pod["spec"]
        if any(one["name"] == name for one in spec["containers"]):
            return []
        image = {"image": "none", "resources": {"requests": {"cpu": "100m"}}}
        annotations = {**pod["metadata"].get("annotations", {}), "sidecar.istio.io/status": "injected"}
        init = [*spec.get("initContainers", []), {"name": f"{name}-init", **image}]
        return [
            {"op": "add", "path": "/metadata/annotations", "value": annotations},
            {"op": "add", "path": "/spec/containers/-", "value": {"name": name, **image}},
            {"op": "add", "path": "/spec/initContainers", "value": init},
        ]

    return change


@contextmanager
def injecting(
    injector: Injector, name: str, namespace: str, *, calls: Api, folder: Path, again: str = "IfNeeded"
) -> Iterator[None]:
    """Have the apiserver ask it about the namespace's new pods, from the first pod on.

    The configuration's `name` decides who is asked first, muster's being `muster`; `again` is the reinvocationPolicy.
    """
    authority = Authority.create("injector")
    write_pair(folder, "injector", authority.issue(["127.0.0.1"]))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "injector.crt", folder / "injector.key")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(injector))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, name=name, daemon=True)
    thread.start()
    webhook = {
        "name": f"{name}.example.com",
        "clientConfig": {
            "url": f"https://127.0.0.1:{server.server_port}/",
            "caBundle": base64.b64encode(authority.pem()[0]).decode(),
        },
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "reinvocationPolicy": again,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    calls.done(
        "POST",
        MUTATING_WEBHOOKS.path(),
        {
            "apiVersion": MUTATING_WEBHOOKS.api_version,
            "kind": MUTATING_WEBHOOKS.kind,
            "metadata": {"name": name},
            "webhooks": [webhook],
        },
    )
    try:
        probe = f"{PODS.path(namespace)}?dryRun=All"
        wait_for(
            f"{name} to be asked", lambda: calls.done("POST", probe, applied.pod("probe")) and injector.seen, PATIENCE
        )
        injector.seen.clear()
        yield
    finally:
        calls.done("DELETE", MUTATING_WEBHOOKS.path(name=name))
        server.shutdown()
        server.server_close()
        thread.join(60)


def _handler(injector: Injector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status, headers = injector.refusals.pop(0) if injector.refusals else (200, {})
            answer = json.dumps(injector.answer(json.loads(body))).encode() if status == HTTPStatus.OK else b"busy"
            self.send_response(status)
            for header, text in headers.items():
                self.send_header(header, text)
            self.send_header("Content-Type", "application/json" if status == HTTPStatus.OK else "text/plain")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            """Say nothing: the test speaks."""

    return Handler
