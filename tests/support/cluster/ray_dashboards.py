"""Answers for Ray's dashboards: KubeRay asks them how jobs and services fare, and here no Ray runs in the pods."""

import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from hack.testbed import Testbed
from hack.testbed.operators import ray_dashboards
from tests.support.cluster.background import Meanwhile
from tests.support.cluster.recorder import Manifest

_JOBS = "/api/jobs/"
_APPLICATIONS = "/api/serve/applications/"
_HEALTH = "/-/healthz"


class RayDashboards(Meanwhile):
    """The dashboards of all RayClusters of a testbed; a context manager that listens where KubeRay looks for them.

    A submitted job runs until the test ends it; deployed applications start until the test lets them serve.
    """

    def __init__(self, testbed: Testbed) -> None:
        super().__init__()
        self._jobs: dict[str, str] = {}
        self._deployed: dict[str, list[str]] = {}
        self._serving: set[str] = set()
        self._server = ThreadingHTTPServer(ray_dashboards(testbed.service_range), _handler(self))

    def _work(self) -> None:
        self._server.serve_forever(0.1)

    def _end(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def end_job(self, cluster: str, status: str = "SUCCEEDED") -> None:
        """Let the job of this RayCluster have ended, whoever submitted it; `status` is Ray's word."""
        self._jobs[cluster] = status

    def runs_job(self, cluster: str) -> bool:
        """Tell whether KubeRay has submitted a job to this RayCluster that has not ended."""
        return self._jobs.get(cluster) == "RUNNING"

    def let_serve(self, cluster: str) -> None:
        """Let the applications of this RayCluster run."""
        self._serving.add(cluster)

    def starts_applications(self, cluster: str) -> bool:
        """Tell whether applications were deployed to this RayCluster that do not serve yet."""
        return cluster in self._deployed and cluster not in self._serving

    def answer(self, method: str, cluster: str, path: str, sent: Manifest) -> Manifest | None:
        """Answer one request to the dashboard of a RayCluster; None where Ray would say that there is no such thing."""
        if (method, path) == ("GET", _HEALTH):
            return {}
        if (method, path) == ("PUT", _APPLICATIONS):
            self._deployed[cluster] = [application["name"] for application in sent["applications"]]
            return {}
        if (method, path) == ("GET", _APPLICATIONS):
            status = "RUNNING" if cluster in self._serving else "DEPLOYING"
            names = self._deployed.get(cluster, [])
            return {"applications": {name: {"status": status, "deployments": {}} for name in names}}
        if (method, path) == ("POST", _JOBS):
            self._jobs[cluster] = "RUNNING"
            return {"job_id": sent["submission_id"]}
        if method == "POST" and path.startswith(_JOBS) and path.endswith("/stop"):
            return {"stopped": True}
        if method == "GET" and path.startswith(_JOBS) and cluster in self._jobs:
            return {"submission_id": path.removeprefix(_JOBS), "status": self._jobs[cluster]}
        return None


def _handler(dashboards: RayDashboards) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """One request of KubeRay's. It takes us for its proxy, and so names the whole URL."""

        def answer(self) -> None:
            asked = urlsplit(self.path)
            cluster = (asked.hostname or "").partition(".")[0].removesuffix("-head-svc")
            sent = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            said = dashboards.answer(self.command, cluster, asked.path, json.loads(sent or "{}"))
            self.send_response(HTTPStatus.NOT_FOUND if said is None else HTTPStatus.OK)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        do_GET = do_POST = do_PUT = answer  # noqa: N815 (as http.server finds them)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (as http.server names it)
            """Say nothing; KubeRay's own log has it all."""

    return Handler
