"""Runs a module as a container of a pod would: `python -P as_pod.py FOLDER MODULE ARGUMENT...`.

FOLDER stands for the one in which the kubelet mounts the ServiceAccount: without a mount of its own a process of this
machine cannot have it there. A script and no module, so that nothing is imported but what the container imports.
"""

import runpy
import sys
from pathlib import Path

from muster.kube import config

config.SERVICE_ACCOUNT = Path(sys.argv[1])
del sys.argv[:2]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
