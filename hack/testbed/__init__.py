"""A local Kubernetes without containers, made of the real programs.

muster's promises are about real systems: what the apiserver stores, when Volcano admits, how the operators retry. So
its tests and its demo run against those programs themselves, built from their released Go modules, with kwok standing
in for kubelets. `python -m hack.testbed up` starts one; `Testbed` is the same for Python.
"""

from hack.testbed.cluster import Testbed
from hack.testbed.errors import CommandError, TestbedError
from hack.testbed.nodes import Nodes
from hack.testbed.process import Process
from hack.testbed.waiting import PATIENCE, wait_for

__all__ = ["PATIENCE", "CommandError", "Nodes", "Process", "Testbed", "TestbedError", "wait_for"]
