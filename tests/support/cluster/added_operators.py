"""Operators that come to a testbed which was started without them, so that their tests need no testbed of their own."""

from hack.testbed import Testbed

_CRD = "mpijobs.kubeflow.org"
# The two operators of MPIJobs, whose CRDs have one name.
_OF_MPI_JOBS = {"mpi", "training-mpi"}


def add_operators(testbed: Testbed, *parts: str) -> None:
    """Start these parts, each with what it needs, where the testbed has them not yet.

    The garbage collector looks for new kinds every half minute only, and what their objects own outlives them until
    then: it starts again.
    """
    if _OF_MPI_JOBS.intersection(parts):
        testbed.kubectl("delete", "crd", _CRD, "--ignore-not-found")
    for part in parts:
        testbed.start_part(part)
    testbed.restart_part("kube-controller-manager")
