"""The admitter of a gang, and Kueue's answer for it, by the stores."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from muster.admitters import Admitter, chosen_admitter
from muster.admitters.kueue import KueueAnswer, KueueTimeouts, answer_of, reverted
from muster.cluster.cluster import Cluster
from muster.cluster.stores import job_of_pod
from muster.gangs.intent import Defaults
from muster.model.names import KUEUE_QUEUE
from muster.model.objects import InvalidObjectError
from muster.model.pods import Pod
from muster.planning.snapshot import GangSnapshot
from muster.workloads import PLAIN_POD, Decoded, Kind


def admitter_of(snapshot: GangSnapshot, cluster: Cluster, defaults: Defaults) -> Admitter:
    """The admitter of the gang: the one that has admitted it, and before that the one that its namespace names."""
    if snapshot.uid and snapshot.marked_for == snapshot.uid:
        return next((one for one in Admitter if one == snapshot.record.admitter), Admitter.LEDGER)
    return chosen_admitter(cluster.namespace(snapshot.key.namespace).annotations, defaults.admitters)


def with_kueue(
    snapshot: GangSnapshot, kind: Kind, decoded: Decoded, cluster: Cluster, defaults: Defaults
) -> GangSnapshot:
    """The snapshot with Kueue's answer, where Kueue admits the gang."""
    if snapshot.admitter is not Admitter.KUEUE:
        return snapshot
    if kind is PLAIN_POD:
        answer = _of_pods([member.pod for member in snapshot.members], cluster, defaults.kueue)
    else:
        answer = _of_workload(kind, decoded, cluster, defaults.kueue)
    return replace(snapshot, kueue=_with_preemptor(answer, cluster))


def _with_preemptor(answer: KueueAnswer, cluster: Cluster) -> KueueAnswer:
    """The answer with the name of the workload for which Kueue has preempted this one, if it is of the same namespace.

    Kueue names it by its UID alone.
    """
    own = answer.workload
    found = cluster.kueue.newest_of(own.preemptor) if own is not None and own.preemptor else None
    if own is None or found is None or found.metadata.namespace != own.metadata.namespace:
        return answer
    controller = found.metadata.controller
    # Owner references are users' words, of any length.
    named = (
        f'{controller.kind[:63]} "{controller.name[:253]}"'
        if controller is not None
        else f'Workload "{found.metadata.name}"'
    )
    named += f' of LocalQueue "{found.spec.queue_name}"'
    return replace(answer, message=f"{answer.message}; the preemptor is {named}")


def _of_workload(kind: Kind, decoded: Decoded, cluster: Cluster, timeouts: KueueTimeouts) -> KueueAnswer:
    chain = [(kind, decoded), *_makers(decoded, cluster)]
    # Kueue takes an empty label for none.
    labelled = any(one.metadata.labels.get(KUEUE_QUEUE) for _, one in chain)
    for above, one in reversed(chain[1:]):
        with suppress(InvalidObjectError):
            if above.read(above.whole(one, cluster.origin)).suspended and not one.metadata.deletion_timestamp:
                kept = answer_of(cluster.kueue.newest_of(one.metadata.uid), labelled=labelled)
                words = _suspended(above, one, kept)
                return replace(kept, admitted=False, message=words) if kept.admitted else kept
    found = (cluster.kueue.newest_of(one.metadata.uid) for _, one in reversed(chain))
    of_topmost = next((one for one in found if one is not None), None)
    answer = answer_of(of_topmost, labelled=labelled, timeouts=timeouts)
    if answer.admitted or of_topmost is None:
        return answer
    never = cluster.kueue.never_fits(of_topmost)
    return replace(answer, never=True, message=f"Kueue can never admit it: {never}") if never else answer


def _of_pods(pods: Iterable[Pod], cluster: Cluster, timeouts: KueueTimeouts) -> KueueAnswer:
    """Kueue's answer for plain pods, one by one: they are one gang by their own label, and may be of many Jobs."""
    answers = [(_named(pod), _of_pod(pod, cluster, timeouts)) for pod in pods]
    workloads = {one.workload.metadata.uid: one.workload for _, one in answers if one.workload is not None}
    doubtful = next(((name, one) for name, one in answers if not one.admitted), None)
    if doubtful is None:
        answer = next((one for _, one in answers if one.workload is not None), KueueAnswer(admitted=True))
    else:
        name, answer = doubtful
        if len({of for of, _ in answers}) > 1:
            answer = replace(answer, message=f"{name}: {answer.message}")
    own = answer.workload.metadata.uid if answer.workload is not None else ""
    return replace(
        answer,
        others=tuple(one for uid, one in workloads.items() if uid != own),
        # The first that Kueue takes back ends it for all of them.
        awaited=min((one.awaited for _, one in answers if one.awaited is not None), default=None),
    )


def _named(pod: Pod) -> str:
    """Of whom Kueue's answer for this pod speaks: of its Job, or of the pod itself."""
    job = pod.metadata.controller if job_of_pod(pod) else None
    return f'Job "{job.name}"' if job is not None else f'pod "{pod.metadata.name}"'


def _of_pod(pod: Pod, cluster: Cluster, timeouts: KueueTimeouts) -> KueueAnswer:
    """Kueue admits it with its Job, or holds it by a gate of its own."""
    of_job = next((cluster.kueue.newest_of(uid) for uid in job_of_pod(pod)), None)
    if of_job is not None:
        return answer_of(of_job, labelled=True, timeouts=timeouts)
    return KueueAnswer(admitted=True) if pod.metadata.labels.get(KUEUE_QUEUE) else answer_of(None, labelled=False)


def _makers(decoded: Decoded, cluster: Cluster) -> Iterator[tuple[Kind, Decoded]]:
    """The owners with which Kueue admits the workload, by the operator's own word.

    An owner reference alone, which any user may write, shares no admission.
    """
    made = decoded.metadata.name
    for above, maker in cluster.owners(decoded.metadata):
        if made not in above.carried_on_by(maker):
            return
        yield above, maker
        made = maker.metadata.name


def _suspended(kind: Kind, decoded: Decoded, kept: KueueAnswer) -> str:
    name = kept.workload.metadata.name if kept.workload else ""
    return f'{kind.kind} "{decoded.metadata.name}" is suspended; {reverted(name)}'
