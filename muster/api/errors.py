"""The errors of the Python API; each message names the field, the object or the server, and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # values raise these errors
    from muster.api.values import Finding, Gang


class MusterError(Exception):
    """The base of all errors of the Python API."""


class ManifestError(MusterError, ValueError):
    """Manifests that cannot be read.

    :ivar errors: one message for each part that cannot be read, with its source and field.
    """

    errors: tuple[str, ...]

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__("\n".join(errors))
        self.errors = tuple(errors)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.errors,)


class RefusedError(MusterError):
    """Workloads that the webhook would refuse.

    :ivar findings: the reasons, each with its field.
    """

    findings: tuple[Finding, ...]

    def __init__(self, message: str, findings: Sequence[Finding]) -> None:
        super().__init__(message)
        self.findings = tuple(findings)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.findings)


class ClusterError(MusterError):
    """No usable kubeconfig, no answer of the apiserver, or an answer that ends the call."""


class NotFoundError(ClusterError, LookupError):
    """No such workload, or none that this user may read."""


class _GangError(MusterError):
    """An error that has the gang as it was seen last."""

    def __init__(self, message: str, gang: Gang) -> None:
        super().__init__(message)
        self.gang = gang

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.gang)


class WaitTimeoutError(_GangError, TimeoutError):
    """The gang has not come so far within the time.

    :ivar gang: the gang as it was seen last.
    """

    gang: Gang


class WaitFailedError(_GangError):
    """The gang cannot come so far: muster does not manage it, or it has ended before.

    :ivar gang: the gang as it was seen last.
    """

    gang: Gang
