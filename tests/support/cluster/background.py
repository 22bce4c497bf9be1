"""What goes on in threads of its own as long as a block lasts."""

import threading
from abc import ABC, abstractmethod
from typing import Self


class Meanwhile(ABC):
    """A context manager: entering starts its threads, each with `_work`; leaving tells them to end and waits for it."""

    def __init__(self, threads: int = 1) -> None:
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._work, daemon=True) for _ in range(threads)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        for thread in self._threads:
            thread.join()

    @abstractmethod
    def _work(self) -> None:
        """Go on until `_ended` is set, or `_end` says otherwise."""

    def _end(self) -> None:
        self._ended.set()
