"""One of several replicas leads: a `coordination.k8s.io/v1` Lease, as client-go holds it, that stops work in time.

The promise is that two leaders never act at once. A leader counts from the *start* of its last successful renewal and
stops before another replica may take over; a candidate waits a whole lease from when *it* saw the record change. No
clock of another machine is ever compared with ours. `LeaseRules` decides, with the time passed in; `LeaseElector` asks
and acts.
"""

import asyncio
import logging
import math
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from muster.kube.client import Client
from muster.kube.clock import boottime
from muster.kube.errors import ApiError
from muster.model.objects import InvalidObjectError, Lease, LeaseSpec, decode
from muster.model.resource import LEASES

logger = logging.getLogger(__name__)


class LeaseLost(Exception):  # noqa: N818 - how a term ends, and the word that callers use for it
    """The lease could not be renewed in time, or another process holds it; the message has the reason."""


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Seconds: how long a lease binds others, how long a leader trusts it, how often it is renewed.

    `lease` less `renew` is the margin in which a leader that lost touch must have stopped.
    """

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        """Raise ValueError when a leader could not stop, or renew, in time."""
        if not self.lease > self.renew > self.retry > 0:
            raise ValueError(f"need lease > renew > retry > 0, got {self.lease}, {self.renew}, {self.retry}")

    @property
    def margin(self) -> float:
        """Seconds between the end of a leader's trust and the first moment another may take over."""
        return self.lease - self.renew


class LeaseRules:
    """The rules for taking and holding the lease. `now` is seconds of one monotonic clock."""

    def __init__(self, identity: str, timing: LeaseTiming) -> None:
        self.identity = identity
        self.timing = timing
        self.record: Lease | None = None
        self._deleted: LeaseSpec | None = None
        self._seen_at = 0.0
        self._renewed_at: float | None = None

    def observe(self, lease: Lease, now: float) -> None:
        """Remember the lease as the apiserver shows it; only a changed record restarts the wait for its expiry."""
        if self.record is None or self.record.spec != lease.spec:
            self._seen_at = now
        self.record, self._deleted = lease, None

    def missing(self, now: float) -> None:
        """Note that there is no record; a deleted one binds others as before, for its holder may not know yet."""
        if self.record is not None:
            self._seen_at, self._deleted = now, self.record.spec
        self.record = None

    def may_take(self, now: float) -> bool:
        """True if the last observed record has no holder, is ours, or has not changed for its whole duration."""
        spec = self.record.spec if self.record is not None else self._deleted
        if spec is None or spec.holder_identity in {"", self.identity}:
            return True
        # The holder stops by its own promise, so its duration counts, not ours.
        return now >= self._seen_at + (spec.lease_duration_seconds or self.timing.lease)

    @property
    def holder(self) -> str:
        """The identity of the lease's holder, as last observed; "" for none."""
        return self.record.spec.holder_identity if self.record is not None else ""

    def won(self, lease: Lease, started: float, now: float) -> None:
        """Count a successful write, from when it was begun: the apiserver may have taken it at any moment since."""
        self.observe(lease, now)
        self._renewed_at = started

    def lost(self) -> None:
        """End our term at once."""
        self._renewed_at = None

    def valid_for(self, now: float) -> float:
        """Seconds for which we may still act as the leader; 0 when not at all."""
        return max(0.0, self._renewed_at + self.timing.renew - now) if self._renewed_at is not None else 0.0

    def claim(self, utc: datetime) -> dict[str, Any]:
        """Return the spec that makes the lease ours, or keeps it so."""
        spec = self.record.spec if self.record is not None else LeaseSpec()
        ours = spec.holder_identity == self.identity
        taken_over = self.record is not None and not ours
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(1, math.ceil(self.timing.lease)),
            "acquireTime": spec.acquire_time if ours and spec.acquire_time else _micro_time(utc),
            "renewTime": _micro_time(utc),
            "leaseTransitions": spec.lease_transitions + taken_over,
        }

    def release(self, utc: datetime) -> dict[str, Any]:
        """Return the spec that leaves the lease to the first candidate."""
        return {**self.claim(utc), "holderIdentity": "", "leaseDurationSeconds": 1, "acquireTime": _micro_time(utc)}


def _micro_time(utc: datetime) -> str:
    return utc.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class LeaseElector:
    """Runs work only while this process holds the lease `namespace`/`name`.

    `identity` must be unique to this process's life: pod name and a UUID. Check `is_valid` before each call that
    changes something, and give the call no more than `alone_for()` seconds.

    Its own calls go over a connection of their own. Where a webhook of others holds the writes of a gang, each has a
    connection for ten seconds, and a renewal that waits for one comes too late.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str,
        identity: str,
        timing: LeaseTiming | None = None,
    ) -> None:
        if not identity:
            raise ValueError("an elector needs an identity: the empty holder means none")
        self._client = self._shared = client
        self._namespace = namespace
        self._name = name
        self._lease = f"{namespace}/{name}"
        self._rules = LeaseRules(identity, timing or LeaseTiming())
        self._unsure = False
        # How long the apiserver may take for an answer, as the lease was won.
        self._patience = 0.0

    @property
    def holder(self) -> str:
        """The identity of the lease's holder, as last observed; "" for none."""
        return self._rules.holder

    def is_valid(self) -> bool:
        """True if we may act as the leader now: the fence before each call that changes something."""
        return self.remaining() > 0

    def remaining(self) -> float:
        """Seconds for which we may act as the leader without another renewal."""
        return self._rules.valid_for(boottime())

    def alone_for(self) -> float:
        """Seconds for which no other replica can lead, even if the lease is not renewed any more; 0 without it."""
        remaining = self.remaining()
        return remaining + self._rules.timing.margin if remaining > 0 else 0.0

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, run `lead` while it is held, and return when that returns.

        Raises LeaseLost when the lease is lost; `lead` has then been cancelled and awaited, but not beyond the moment
        at which another may lead (see the message if it still runs: end the process). What `lead` raises, and
        cancellation, are raised after the lease is released, so that another replica takes over at once.
        """
        async with self._shared.dedicated_connection() as self._client:
            await self._run(lead)

    async def _run(self, lead: Callable[[], Awaitable[None]]) -> None:
        try:
            await self._acquire()
        except asyncio.CancelledError:
            if self._unsure:
                await self._release()
            raise
        leading = asyncio.ensure_future(lead())
        renewing = asyncio.create_task(self._keep(), name=f"renew-{self._name}")
        try:
            await asyncio.wait({leading, renewing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # While the work winds down the lease is still renewed, if it can be: no other replica may begin before.
            stopped = await _stop(leading, self._rules.timing.margin)
            lost = renewing.done() and not renewing.cancelled()
            await _stop(renewing, self._rules.timing.margin)
            self._rules.lost()
            if stopped and not lost:
                await self._release()
        if not lost:
            leading.result()
            return
        reason = renewing.exception()
        suffix = "" if stopped else "; the work did not stop"
        raise LeaseLost(f"lease {self._lease}: {reason}{suffix}") from reason

    async def _acquire(self) -> None:
        retry = self._rules.timing.retry
        patience, reported = retry, None
        while True:
            try:
                took = await self._try(patience)
                if took:
                    self._patience = patience
                    logger.info(
                        "successfully acquired lease %s as %s",
                        self._lease,
                        self._rules.identity,
                        extra={"event": "lease.acquired"},
                    )
                    return
                patience = retry
            except ApiError as error:
                if error.timed_out:
                    # Else, where each answer takes longer than that, no replica would ever lead; with less time than is
                    # left for a renewal, so that the leader goes on.
                    patience = max(retry, min(2 * patience, (self._rules.timing.renew - retry) / 2))
                logger.warning("cannot acquire lease %s: %s", self._lease, error, extra={"event": "lease.refused"})
            if self._rules.holder != reported:
                reported = self._rules.holder
                logger.info(
                    "lease %s is held by %s", self._lease, reported or "no process", extra={"event": "lease.holder"}
                )
            await asyncio.sleep(retry * (1 + 0.2 * random.random()))  # noqa: S311 - not a secret

    async def _try(self, deadline: float) -> bool:
        """Look at the lease and take it if that is allowed. Raises ApiError."""
        try:
            body = await self._client.get(LEASES, self._name, self._namespace, deadline=deadline)
        except ApiError as error:
            if not error.not_found:
                raise
            self._rules.missing(boottime())
        else:
            self._rules.observe(_read(body), boottime())
        return self._rules.may_take(boottime()) and await self._write(deadline)

    async def _write(self, deadline: float) -> bool:
        """Claim or renew on top of the record last seen; False when it has changed since. Raises ApiError."""
        started = boottime()
        self._unsure = True  # until there is an answer it may be ours without our knowing
        body = self._body(self._rules.claim(datetime.now(UTC)))
        try:
            if self._rules.record is None:
                answer = await self._client.create(LEASES, body, self._namespace, deadline=deadline)
            else:
                answer = await self._client.replace(LEASES, self._name, body, self._namespace, deadline=deadline)
        except ApiError as error:
            self._unsure = not error.refused
            if error.conflict:
                return False
            raise
        self._unsure = False
        self._rules.won(_read(answer), started, boottime())
        return True

    async def _keep(self) -> None:
        """Renew until it is too late; then raise LeaseLost."""
        timing = self._rules.timing
        trouble: ApiError | None = None
        while True:
            await asyncio.sleep(min(timing.retry, self.remaining()))
            left = self.remaining()
            if left <= 0:
                raise LeaseLost(f"not renewed in {timing.renew:g} s: {trouble or 'the event loop stood still'}")
            # A slow apiserver is given time; one that does not answer at all is asked again.
            deadline = min(max(timing.retry, left / 2, self._patience), left)
            try:
                # Straight from the record we wrote; it is read again only after another client has changed it.
                if not await self._write(deadline) and not await self._try(deadline) and not self._ours():
                    raise LeaseLost(f"taken by {self.holder or 'no process'}")
                trouble = None
            except ApiError as error:
                trouble = error
                logger.warning("failed to renew lease %s: %s", self._lease, error, extra={"event": "lease.not_renewed"})
                if error.not_found:
                    self._rules.record = None

    def _ours(self) -> bool:
        return self._rules.holder == self._rules.identity

    async def _release(self) -> None:
        # Longer than for a renewal, which is tried again: after this one the next leader waits for the whole lease.
        deadline = self._rules.timing.margin
        try:
            # Read first: a renewal that was cut short may have changed the resource version.
            body = await self._client.get(LEASES, self._name, self._namespace, deadline=deadline)
            self._rules.observe(_read(body), boottime())
            if self._ours():
                spec = self._rules.release(datetime.now(UTC))
                await self._client.replace(LEASES, self._name, self._body(spec), self._namespace, deadline=deadline)
                logger.info("released lease %s", self._lease, extra={"event": "lease.released"})
        except ApiError as error:
            logger.warning(
                "failed to release lease %s; it expires by itself: %s",
                self._lease,
                error,
                extra={"event": "lease.not_released"},
            )

    def _body(self, spec: dict[str, Any]) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": self._name, "namespace": self._namespace}
        if self._rules.record is not None:
            meta = self._rules.record.metadata
            # A replacement without them would remove what the chart, an operator or a GitOps tool wrote.
            metadata |= {"labels": meta.labels, "annotations": meta.annotations}
            metadata |= {"ownerReferences": meta.owner_references, "finalizers": meta.finalizers}
            metadata["resourceVersion"] = meta.resource_version
        return {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": metadata, "spec": spec}


def _read(body: bytes) -> Lease:
    try:
        return decode(body, Lease)
    except InvalidObjectError as error:
        raise ApiError(0, "NotALease", str(error)) from error


async def _stop(task: asyncio.Future[None], seconds: float) -> bool:
    """Cancel and await for at most `seconds`. True if it ended."""
    task.cancel()
    await asyncio.wait({task}, timeout=seconds)
    if task.done() and not task.cancelled() and (error := task.exception()) is not None:
        logger.debug(
            "%s ended with %r", task, error, extra={"event": "lease.task"}
        )  # raised where it matters; asked for here, or asyncio complains
    return task.done()
