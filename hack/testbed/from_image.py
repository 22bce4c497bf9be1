"""muster's two processes from the image, beside a testbed: as a kubelet would run them, where none does."""

from collections.abc import Mapping, Sequence

from hack.image.container import Container
from hack.testbed.muster import POD_NAME, MusterInstall, service_variables
from hack.testbed.ports import free_port
from hack.testbed.process import Process


class Pod:
    """What a kubelet would give the container of a Deployment of the chart: arguments, variables, a token."""

    def __init__(self, container: Container, installed: MusterInstall, component: str) -> None:
        self._container, self._testbed = container, installed.testbed
        self._component, self._program = component, installed.programs[component]

    def start(self, *, before: Sequence[str] = ()) -> tuple[Process, str]:
        """Start the process on loopback, its command after `before`; return it with the URL of its readiness."""
        health = free_port()
        arguments = [*self._program.arguments, f"--health-port={health}", "--health-bind-address=127.0.0.1"]
        if self._component == "webhook":
            arguments += ["--bind-address=127.0.0.1", f"--port={free_port()}"]
        command = self._container.command(f"muster-{self._component}", *arguments, secrets=self._program.account)
        name = f"image-{self._component}"
        process = self._testbed.spawn(name, [*before, *command], env=self._environment(name))
        return process, f"http://127.0.0.1:{health}/readyz"

    def _environment(self, name: str) -> Mapping[str, str]:
        own = {key: value.replace(POD_NAME, name) for key, value in self._program.environment.items()}
        return {**self._container.outside(), **own, **service_variables(self._testbed.server)}
