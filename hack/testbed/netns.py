"""Speaking from inside another network namespace, one thread at a time."""

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from hack.testbed.errors import TestbedError

_T = TypeVar("_T")
_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


def enter(namespace: Path) -> None:
    """Move the calling thread into a network namespace, such as /proc/PID/ns/net, for good. Raises TestbedError."""
    try:
        descriptor = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise TestbedError(f"there is no network namespace {namespace}: {error.strerror}") from error
    try:
        if _LIBC.setns(descriptor, _CLONE_NEWNET):
            raise TestbedError(f"cannot enter network namespace {namespace}: {os.strerror(ctypes.get_errno())}")
    finally:
        os.close(descriptor)


def run_inside(namespace: Path, function: Callable[[], _T]) -> _T:
    """Return what `function` returns, or raise what it raises, when its sockets are of that namespace.

    It runs on a thread of its own, whose end is the end of its stay.
    """

    def work() -> _T:
        enter(namespace)
        return function()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()
