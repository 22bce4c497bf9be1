"""Runs muster itself on a testbed, as the chart would: the chart is installed unmodified, the processes run here.

The pods of the chart's Deployments are kwok's and do nothing. For each of them a process runs on this machine, with the
container's own arguments and environment, the token of its ServiceAccount and nothing more, and the webhook listens
where the Service's ClusterIP points. So RBAC, Service and webhook configurations are those of a real installation. A
hook of the chart runs here, too, with a token of its ServiceAccount and nothing more.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hack.testbed.api import Api, NotFoundError, answers
from hack.testbed.cluster import Testbed
from hack.testbed.errors import TestbedError, log_tail
from hack.testbed.ports import free_port
from hack.testbed.process import Process
from hack.testbed.site import kubeconfig_text
from hack.testbed.waiting import PATIENCE, wait_for
from muster.model.names import GANG, GANG_SIZE

_CHECKOUT = Path(__file__).parents[2]
_AS_POD = Path(__file__).with_name("as_pod.py")
_NO_VALUES: Mapping[str, str] = {}
_UNPRIVILEGED_PORT = 9443
# By this condition of the chart a webhook is not called before it has been reached.
_CLOSED = "muster-has-been-reached"


@dataclass(frozen=True, slots=True)
class Program:
    """The program of one Deployment: its Python module, arguments, variables and account."""

    module: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    account: Path
    """The folder of its ServiceAccount, as the kubelet would mount it."""

    @property
    def token(self) -> str:
        """The token of its ServiceAccount."""
        return (self.account / "token").read_text()


@dataclass(slots=True)
class MusterInstall:
    """An installed release and its processes on this machine."""

    testbed: Testbed
    release: str
    namespace: str
    programs: Mapping[str, Program]
    server: str = ""
    """The apiserver's URL for its processes, if not the testbed's."""
    webhooks: list[Process] = field(default_factory=list)
    controllers: list[Process] = field(default_factory=list)
    _health: dict[int, int] = field(default_factory=dict)
    _started: int = 0

    def start_webhook(self, *arguments: str, env: Mapping[str, str] = _NO_VALUES) -> Process:
        """Start one more webhook process; `arguments` and `env` are added to the Deployment's."""
        process = self._start("webhook", env, arguments)
        self.webhooks.append(process)
        return process

    def start_controller(self, *arguments: str, env: Mapping[str, str] = _NO_VALUES) -> Process:
        """Start one more controller process; `arguments` and `env` are added to the Deployment's."""
        process = self._start("controller", env, arguments)
        self.controllers.append(process)
        return process

    def stop_webhooks(self) -> None:
        """End all webhook processes with SIGTERM."""
        while self.webhooks:
            self.webhooks.pop().stop(PATIENCE)

    def kill_controller(self) -> None:
        """End the controller that was started first with SIGKILL."""
        self.controllers.pop(0).kill()

    def free_lease(self) -> None:
        """Take away the lease of controllers that were killed: the next one leads at once, not when it has expired."""
        if any(process.alive() for process in self.controllers):
            raise TestbedError("a controller runs that may hold the lease: it is free when that has ended")
        lease = (f"{self.release}-controller", f"--namespace={self.namespace}", "--ignore-not-found")
        self.testbed.kubectl("delete", "lease", *lease)

    def wait_ready(self, timeout: float = PATIENCE) -> None:
        """Wait, `timeout` seconds, until every running process answers on /readyz. Raises TestbedError with its log."""
        for process in (*self.webhooks, *self.controllers):
            url = self.url(process, "/readyz")

            def ready(process: Process = process, url: str = url) -> bool:
                return not process.alive() or answers(url, self.testbed.ca_file)

            try:
                wait_for(f"{process.name} to be ready", ready, timeout)
            except TestbedError as error:
                raise TestbedError(f"{error}; {log_tail(process.log)}") from error
            if not process.alive():
                raise TestbedError(f"{process.name} ended before it was ready; {log_tail(process.log)}")
        if self.webhooks:
            wait_for("the apiserver to call the webhook", self._called, timeout)

    def _called(self) -> bool:
        """True if the webhook has opened its configurations, as far as they are there, for calls."""
        api = self.testbed.api()
        for kind in ("mutating", "validating"):
            path = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/{self.release}"
            with suppress(NotFoundError):
                for webhook in api.get(path).get("webhooks", []):
                    if _CLOSED in {condition["name"] for condition in webhook.get("matchConditions", [])}:
                        return False
        return True

    def url(self, process: Process, path: str) -> str:
        """Return the URL of a path on the port for probes and metrics of one of these processes."""
        return f"http://127.0.0.1:{self._health[process.pid]}{path}"

    def upgrade(self, values: Mapping[str, str], *options: str) -> None:
        """Change these values of the release, and end the webhooks; the next ones have its arguments."""
        chart = str(_CHECKOUT / "charts" / "muster")
        changed = (f"--set={name}={value}" for name, value in values.items())
        self.stop_webhooks()
        self.testbed.helm(
            "upgrade",
            self.release,
            chart,
            f"--namespace={self.namespace}",
            "--reset-then-reuse-values",
            *changed,
            *options,
        )
        self.read_programs()

    def read_programs(self) -> None:
        """Read the release's Deployments again, for the processes that are started next."""
        self.programs = _programs(self.testbed, self.release, self.namespace)

    def uninstall(self, *, hooks: bool = True) -> str:
        """Run the chart's hooks, stop the processes and uninstall the release; returns what the hooks printed."""
        printed = before_uninstall(self.testbed, self.release, self.namespace) if hooks else ""
        self.stop_webhooks()
        while self.controllers:
            self.controllers.pop().stop(PATIENCE)
        named = (self.release, "--namespace", self.namespace, "--no-hooks", "--ignore-not-found")
        self.testbed.helm("uninstall", *named)
        return printed

    def through(self, component: str, server: str, folder: Path) -> str:
        """Write a kubeconfig of this component for another URL of the apiserver, and return the argument for it."""
        path = folder / f"{component}.kubeconfig"
        path.write_text(kubeconfig_text(server, self.testbed.ca_file, self.programs[component].token))
        return f"--kubeconfig={path}"

    def _start(self, component: str, env: Mapping[str, str], arguments: tuple[str, ...] = ()) -> Process:
        program = self.programs[component]
        pod = f"{self.release}-{component}-host-{self._started}"
        self._started += 1
        port = free_port()
        argv = [
            *(sys.executable, "-P", str(_AS_POD), str(program.account), program.module, *program.arguments),
            f"--health-port={port}",
            "--health-bind-address=127.0.0.1",
            *arguments,
        ]
        # It speaks with the apiserver alone. Public authorities, which aiohttp reads, are a third of its start.
        public = {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.devnull}
        service = service_variables(self.server or self.testbed.server)
        # Not the caller's ~/.kube/config, which would count before the account of the pod.
        public["HOME"] = "/"
        environment = {"PYTHONPATH": str(_CHECKOUT), **public, **service, **program.environment, **env}
        environment = {name: value.replace(POD_NAME, pod) for name, value in environment.items()}
        process = self.testbed.spawn(pod, argv, env=environment)
        self._health[process.pid] = port
        return process


# Stands for the name of the pod, which every process has for its own.
POD_NAME = "<pod name>"


def install(
    testbed: Testbed,
    *,
    values: Mapping[str, str] = _NO_VALUES,
    webhooks: int = 1,
    controllers: int = 1,
    release: str = "muster",
    namespace: str = "muster-system",
) -> MusterInstall:
    """Install charts/muster with these values (`--set`) and start so many processes of each kind, not yet ready.

    Raises TestbedError when helm refuses, or when a Deployment or the Service has not the name that it must have.
    """
    testbed.helm(
        # An upgrade takes up what an installation that was cut short has left.
        *("upgrade", "--install", release, str(_CHECKOUT / "charts" / "muster")),
        *("--namespace", namespace, "--create-namespace"),
        *(f"--set={name}={value}" for name, value in {**_needed(testbed), **values}.items()),
    )
    installed = MusterInstall(testbed, release, namespace, _programs(testbed, release, namespace))
    for _ in range(webhooks):
        installed.start_webhook()
    for _ in range(controllers):
        installed.start_controller()
    return installed


def adopt(testbed: Testbed, *, values: Mapping[str, str] = _NO_VALUES) -> MusterInstall:
    """Return the release `muster` that a command has installed, upgraded with these values, without any process.

    Raises TestbedError as `install` does.
    """
    release, namespace = "muster", "muster-system"
    installed = MusterInstall(testbed, release, namespace, {})
    installed.upgrade({**_needed(testbed), **values})
    return installed


def service_variables(server: str) -> dict[str, str]:
    """Return the variables by which pods find the apiserver, and none by which they would find another."""
    host, _, port = server.removeprefix("https://").rpartition(":")
    return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "KUBECONFIG": ""}


def gates_of_a_new_pod(api: Api, *, gang: bool) -> list[str]:
    """Create a pod, without keeping it, that is of a gang or a plain one; return its gates. Raises TestbedError.

    The apiserver calls muster for it a moment after a first webhook has opened its configuration.
    """
    about = {"labels": {GANG: "probe"}, "annotations": {GANG_SIZE: "1"}} if gang else {}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "probe-", **about},
        "spec": {"containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}]},
    }
    made = api.create("/api/v1/namespaces/default/pods?dryRun=All", pod)
    return [gate["name"] for gate in made["spec"].get("schedulingGates", [])]


def _needed(testbed: Testbed) -> dict[str, str]:
    """The values without which it does not run here."""
    # The chart insists on an image; no kubelet here will ever pull it.
    needed = {"image.repository": "muster"}
    return needed if _may_bind_443(testbed) else {**needed, "webhook.service.port": str(_UNPRIVILEGED_PORT)}


def _programs(testbed: Testbed, release: str, namespace: str) -> dict[str, Program]:
    service = _get(testbed, namespace, "service", f"{release}-webhook")["spec"]
    listen = (f"--bind-address={service['clusterIP']}", f"--port={service['ports'][0]['port']}")
    return {
        "webhook": _program(testbed, release, namespace, "webhook", listen),
        "controller": _program(testbed, release, namespace, "controller", ()),
    }


def _program(testbed: Testbed, release: str, namespace: str, component: str, overrides: tuple[str, ...]) -> Program:
    deployment = _get(testbed, namespace, "deployment", f"{release}-{component}")
    pod = deployment["spec"]["template"]["spec"]
    container = pod["containers"][0]
    fields = {"metadata.name": POD_NAME, "metadata.namespace": namespace}
    environment = {item["name"]: _value(item, fields) for item in container.get("env", [])}
    return Program(
        module=component,
        arguments=(*container.get("args", []), *overrides),
        environment=environment,
        account=testbed.service_account_folder(namespace, pod["serviceAccountName"]),
    )


def _value(variable: dict[str, Any], fields: Mapping[str, str]) -> str:
    if "valueFrom" not in variable:
        return str(variable.get("value", ""))
    path = variable["valueFrom"].get("fieldRef", {}).get("fieldPath")
    if path not in fields:
        raise TestbedError(f"{variable['name']} comes from {variable['valueFrom']}: teach it to hack/testbed/muster.py")
    return fields[path]


def _get(testbed: Testbed, namespace: str, kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(testbed.kubectl("get", kind, name, f"--namespace={namespace}", "-ojson").stdout)
    return found


def _may_bind_443(testbed: Testbed) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((testbed.service_range.replace(".0/24", ".1"), 443))
        except PermissionError:
            return False
    return True


_HOOK = "helm.sh/hook"


def before_uninstall(testbed: Testbed, release: str, namespace: str) -> str:
    """Run the release's pre-delete hooks as helm would, and return what the Job's command prints.

    Raises TestbedError, with its output, when the command fails.
    """
    hooks = _hooks(testbed, release, namespace, "pre-delete")
    (job,) = (hook for hook in hooks if hook["kind"] == "Job")
    return _run(testbed, job, hooks)


def probe_of_helm_test(testbed: Testbed, release: str, namespace: str) -> str:
    """Run the probe of `helm test`, with the account that helm makes for it, and return what it prints.

    Raises TestbedError, with its output, when it fails.
    """
    hooks = _hooks(testbed, release, namespace, "test")
    (pod,) = (hook for hook in hooks if hook["metadata"]["name"] == f"{release}-probe" and hook["kind"] == "Pod")
    return _run(testbed, pod, hooks)


def _run(testbed: Testbed, runs: dict[str, Any], hooks: list[dict[str, Any]]) -> str:
    """Run the command of a Pod or a Job while those of the hooks are there that run nothing."""
    name, namespace = runs["metadata"]["name"], runs["metadata"]["namespace"]
    pod = runs["spec"]["template"]["spec"] if runs["kind"] == "Job" else runs["spec"]
    manifests = yaml.safe_dump_all([hook for hook in hooks if hook["kind"] not in {"Pod", "Job"}])
    testbed.kubectl("apply", "--filename=-", input=manifests)
    try:
        (container,) = pod["containers"]
        if container["command"] != ["muster"]:
            raise TestbedError(f"{name} runs {container['command']}: teach it to {__file__}")
        kubeconfig = testbed.service_account_kubeconfig(namespace, pod["serviceAccountName"])
        argv = [sys.executable, "-m", "muster.cli", *container["args"], f"--kubeconfig={kubeconfig}"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE, cwd=_CHECKOUT)
    finally:
        testbed.kubectl("delete", "--filename=-", "--ignore-not-found", input=manifests)
    if done.returncode:
        raise TestbedError(f"{name} failed ({done.returncode}): {done.stdout}{done.stderr}")
    return done.stdout


def _hooks(testbed: Testbed, release: str, namespace: str, event: str) -> list[dict[str, Any]]:
    text = testbed.helm("get", "hooks", release, f"--namespace={namespace}").stdout
    return [hook for hook in yaml.safe_load_all(text) if hook and _is_of(hook, event)]


def _is_of(hook: dict[str, Any], event: str) -> bool:
    return event in hook["metadata"].get("annotations", {}).get(_HOOK, "").split(",")
