"""The state of the page: a board that follows the cluster, and the reasons why it may be out of date.

A board of 5,000 gangs takes two seconds of a core, so that many changes make one, and never more than a part of the
time is spent on them.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from muster.cli.connecting import silence
from muster.cli.page.board import Board
from muster.cli.page.charts import Chart, weeks
from muster.cli.page.samples import SLOT, Samples
from muster.cli.report.command import read_accounts
from muster.cli.report.figures import Report, first_day
from muster.cli.settings import Settings
from muster.cli.snapshot import ClusterSnapshot, Followed, LedgerSnapshot, followed, in_background, load_nodes
from muster.cli.ui import CommandError
from muster.cli.when import ExpectedStarts
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.process.lifecycle import tune_gc

logger = logging.getLogger(__name__)

# Seconds between two boards: at least this, and so often what the last one took of the processor.
_PAUSE, _PART = 2.0, 10.0
# Seconds between two questions whether the apiserver answers, and for the answer.
_ASK, _PATIENCE = 5.0, 4.0
# Seconds between two forecasts of the starts of gangs, and of CPU for one.
_FORECASTS, _LONGEST_FORECAST = 30.0, 5.0
# Seconds between two reads of the nodes, where they limit admission: no watch follows them here.
_NODES = 60.0
# Seconds between two reads of the leader's records, which count by day.
_RECORDS = 600.0


class PageState:
    """The board as of the last change, and its troubles. `revision` counts up with everything that readers may see.

    `silent` is a sentence while no controller is alive. `starts` are the expected starts as of their own time; they are
    worked out while a reader looks (`want_starts`). `weeks` are drawings of the last days of queues, as far as their
    records can be read. `viewer` names the account that reads, unless it is the reader's own; then it is "".
    """

    def __init__(self, client: Client, following: Followed, viewer: str = "") -> None:
        self.client = client
        self._following = following
        self.viewer = viewer
        self.starts: ExpectedStarts | None = None
        self.weeks: dict[str, Chart] = {}
        self._starts_wanted = asyncio.Event()
        self._next = asyncio.Event()
        self._unanswered = ""
        self._internal = ""
        self.silent = ""
        self._making = False
        self.revision = 0
        self.samples = Samples(time.time())
        self.snapshot: LedgerSnapshot
        self.board: Board

    @property
    def cluster_name(self) -> str:
        """The name by which people know the cluster: the kubeconfig's context, else the address of the apiserver."""
        return self.client.context or self.client.server

    @property
    def visible(self) -> ClusterSnapshot:
        """The snapshot of the cluster."""
        return self._following.visible

    @property
    def as_of(self) -> float:
        """The moment for which the board holds, in seconds of the wall clock: now, unless it is behind."""
        behind = self._making or self._following.changed.is_set()
        return self.board.now if self.troubles or behind else time.time()

    @property
    def troubles(self) -> list[str]:
        """The reasons why the board may be out of date, a sentence each."""
        troubles = [self._unanswered] if self._unanswered else self._following.faults
        return [*troubles, *([self._internal] if self._internal else [])]

    @property
    def warnings(self) -> list[str]:
        """What readers should know: the troubles, and that no controller is alive."""
        return [*self.troubles, *([self.silent] if self.silent else [])]

    async def next_revision(self, seen: int) -> int:
        """The revision as soon as it is another one than `seen`."""
        while self.revision == seen:
            await self._next.wait()
        return self.revision

    async def refresh(self) -> float:
        """Make a new board; gives the CPU seconds that it took."""
        began = time.process_time()
        # Requests that come now get the last board.
        self._making = True
        try:
            self.snapshot = await self.visible.ledger_snapshot_in_slices(time.time())
        finally:
            self._making = False
        self.board = Board(self.snapshot, whole=self.visible.whole)
        self.samples.note(time.time(), self.board.levels())
        self._moved()
        return time.process_time() - began

    def kept_up(self) -> AbstractAsyncContextManager[None]:
        """A block in which the board, and what is known of its troubles, are kept up to date."""
        return in_background(
            self.follow(), self.ask(), self.load_nodes(), self.load_records(), self.sample(), self.forecast()
        )

    async def follow(self) -> None:
        """Keep the board up to date until cancelled."""
        took = 0.0
        while True:
            await asyncio.sleep(max(_PAUSE, took * _PART))
            await self._following.changed.wait()
            self._following.changed.clear()
            try:
                took = await self.refresh()
                self._internal = ""
            except Exception:
                logger.exception("the page cannot be brought up to date", extra={"event": "page.behind"})
                self._internal = "internal error; what is shown may be old"
                self._moved()

    async def ask(self) -> None:
        """Notice whether the apiserver answers, until cancelled: a watch may be silent for a minute either way."""
        while True:
            await asyncio.sleep(_ASK)
            before = self.troubles, self.silent
            try:
                await self.client.probe(deadline=_PATIENCE)
                self._unanswered = ""
                self.silent = await silence(self.client, self.visible.settings)
            except ApiError as error:
                self._unanswered = f"{self.client.server} does not answer: {error}"
            if (self.troubles, self.silent) != before:
                self._moved()

    async def load_nodes(self) -> None:
        """Read again what the nodes can give, where they bound admission, until cancelled."""
        while True:
            await asyncio.sleep(_NODES)
            if self.visible.nodes is None:
                continue
            try:
                self.visible.nodes = await load_nodes(self.client, self.visible)
                self._following.changed.set()
            except ApiError as error:
                logger.warning("the nodes cannot be read: %s", error, extra={"event": "page.nodes"})

    async def load_records(self) -> None:
        """Read again what queues have used, until cancelled."""
        while True:
            await self.read_records()
            await asyncio.sleep(_RECORDS)

    async def read_records(self) -> None:
        """Read what queues have used; without records, or the right to them, nothing of it is shown."""
        before = self.weeks
        try:
            accounts = await read_accounts(self.client, self.visible.settings)
            self.weeks = weeks(Report.of(accounts, "queue", first_day("7d", time.time())))
        except CommandError:
            self.weeks = {}
        except ApiError:
            # `ask` reports an apiserver that does not answer.
            return
        if self.weeks != before:
            self._moved()

    def want_starts(self) -> None:
        """Request the expected starts, worked out soon in another thread, for a reader who looks."""
        self._starts_wanted.set()

    async def forecast(self) -> None:
        """Work out the expected starts when they are wanted, until cancelled."""
        while True:
            await self._starts_wanted.wait()
            self._starts_wanted.clear()
            try:
                await self._forecast()
            except Exception:
                logger.exception("the starts of gangs cannot be forecast", extra={"event": "page.forecast"})
            await asyncio.sleep(_FORECASTS)

    async def _forecast(self) -> None:
        # The thread has a copy to itself: here the ledger goes on answering.
        ledger, now = self.snapshot.ledger.copy(), self.snapshot.now
        starts = ExpectedStarts(ledger, now, seconds=_LONGEST_FORECAST, whole=self.visible.whole)
        try:
            await asyncio.to_thread(starts.run)
        finally:
            starts.stop()
        self.starts = starts
        self._moved()

    async def sample(self) -> None:
        """Keep the levels of the queues, at the beginning of each slot of the last hour, until cancelled."""
        while True:
            await asyncio.sleep(SLOT - time.time() % SLOT)
            self.sampled(time.time())

    def sampled(self, now: float) -> None:
        """Keep the levels of the queues at that moment; they are unknown while the board may be out of date."""
        if self.troubles:
            self.samples.pass_to(now)
        else:
            self.samples.note(now, self.board.levels())
        self._moved()

    def _moved(self) -> None:
        self.revision += 1
        self._next.set()
        self._next = asyncio.Event()


@asynccontextmanager
async def page_state(client: Client, settings: Settings, namespace: str, viewer: str = "") -> AsyncIterator[PageState]:
    """The state of the page, read once and following the cluster in the block; nothing refreshes its board yet.

    Raises ApiError when the cluster does not answer.
    """
    async with followed(client, ClusterSnapshot.empty(settings), namespace) as following:
        state = PageState(client, following, viewer)
        state.silent = await silence(client, settings)
        await state.refresh()
        tune_gc()
        yield state
