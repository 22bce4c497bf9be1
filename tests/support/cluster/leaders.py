"""The controller that leads, and its end."""

from hack.testbed import PATIENCE, Process, wait_for
from hack.testbed.muster import MusterInstall
from muster.model.resource import LEASES


def leader(muster: MusterInstall) -> Process:
    """The controller that leads, by the lease."""
    path = LEASES.path(muster.namespace, f"{muster.release}-controller")

    def found() -> list[Process]:
        holder = str(muster.testbed.api().get(path)["spec"].get("holderIdentity") or "")
        return [process for process in muster.controllers if process.alive() and holder.startswith(f"{process.name}_")]

    return wait_for("a leader", found, PATIENCE)[0]


def replace_leader(muster: MusterInstall) -> None:
    """Kill the leader, wait until another one leads, and start one more."""
    first = leader(muster)
    first.kill()
    muster.controllers.remove(first)
    leader(muster)
    muster.start_controller()
