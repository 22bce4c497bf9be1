"""True if a PodGroup still has a living owner, read from the apiserver before it is deleted, or its name is refused.

Each kind has a watch of its own, and one may be behind another: a new leader may see the PodGroup of a workload, and of
that name the workload before it. A PodGroup that is deleted from under a running gang takes its admission along.
"""

from collections.abc import Sequence

from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.listing import list_objects
from muster.model.names import GANG, GANG_SIZE, label_value
from muster.model.objects import LocalObject, Object, ObjectMeta, decode
from muster.model.pods import Pod
from muster.model.resource import PODS
from muster.workloads import kind_of_owner


class _Pods(LocalObject, frozen=True):
    items: tuple[Pod, ...] = ()


async def has_living_owner(client: Client, group: ObjectMeta, *, deadline: float = 10.0, first: int = 0) -> bool:
    """True if the workload for which the PodGroup was made exists, or, without an owner, a living plain pod.

    The read of a workload may take `deadline` seconds. Of plain pods only the `first` so many are looked at, 0 for all.
    Raises ApiError, and InvalidObjectError for what is no object.
    """
    owner = group.controller
    if owner is None:
        selector = f"{GANG}={label_value(group.name)}"
        pods: Sequence[Pod]
        if first:
            asked = {"namespace": group.namespace, "label_selector": selector}
            pods = decode(await client.list_page(PODS, limit=first, deadline=deadline, **asked), _Pods).items
        else:
            pods = await list_objects(client, PODS, Pod, namespace=group.namespace, label_selector=selector)
        return any(pod.living and GANG_SIZE in pod.metadata.annotations for pod in pods)
    kind = kind_of_owner(owner)
    if kind is None:
        return False
    try:
        body = await client.get(kind.resource, owner.name, group.namespace, deadline=deadline)
    except ApiError as error:
        if error.not_found:
            return False
        raise
    found = decode(body, Object).metadata
    return found.uid == owner.uid and not found.deletion_timestamp
