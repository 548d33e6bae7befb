"""The event loop that async services of one program share, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError, Future
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Coroutine


class ServiceLoop:
    """Starts with its first coroutine. Shared, so that services can share what belongs to one loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def submit(self, coroutine: Coroutine[Any, Any, Any]) -> LoopTask:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="rowlock-service-loop", daemon=True
                )
                self._thread.start()
        return LoopTask(self._loop, coroutine)

    def close(self) -> None:
        if self._loop is None or self._thread is None:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        if not self._thread.is_alive():
            self._loop.close()


class LoopTask:
    """A task as another thread sees it. Cancelling it is a request: `result` waits until it has really ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._loop = loop
        self._task: asyncio.Task[Any] | None = None
        self._ended: Future[Any] = Future()
        loop.call_soon_threadsafe(self._start, coroutine)

    def cancel(self) -> None:
        self._loop.call_soon_threadsafe(self._cancel)

    def result(self) -> Any:
        return self._ended.result()

    # -- on the loop ---------------------------------------------------------------------------------------------

    def _start(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._task = self._loop.create_task(coroutine)
        self._task.add_done_callback(self._end)

    def _cancel(self) -> None:
        assert self._task is not None  # noqa: S101 - it was started before anybody could ask
        self._task.cancel()

    def _end(self, task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            self._ended.set_exception(CancelledError())
        elif (error := task.exception()) is not None:
            self._ended.set_exception(error)
        else:
            self._ended.set_result(task.result())
