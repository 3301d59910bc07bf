# SPDX-License-Identifier: Apache-2.0
"""The runtime thread of an engine: schedule, run one native step, hand out tokens, repeat.

Everything that touches KV pages, sequences and the runner happens on this one thread, so none of it needs locks.
Other threads talk to it through a SimpleQueue (safe even inside signal handlers and finalizers) and through flags on
a request.

Cancelling. `cancel` marks the request, sends its Finish, and aborts the native step if the request is part of it. An
aborted step has advanced no state: what it wrote to KV pages is written again by the next step, so the other requests
of the batch just run again.

Errors reach only their request. When a step of several requests fails, each of them is stepped alone, and those that
fail alone get the error.

The end. `close` never waits longer than CLOSE_SECONDS. The thread is a daemon, and engines close themselves at exit
before the interpreter dies. A forked child has no such thread: there every call raises ClosedError.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread, current_thread
from time import perf_counter, sleep
from typing import TYPE_CHECKING

import numpy as np

from smepilot.errors import CancelledError, ClosedError, NativeError, SmePilotError
from smepilot.runtime.batch import Chunk, Want
from smepilot.runtime.kvcache import KvCache
from smepilot.runtime.request import Finish, Request
from smepilot.runtime.scheduler import Scheduler, Share
from smepilot.runtime.sequence import PAGE_TOKENS, Sequence

if TYPE_CHECKING:
    from smepilot.runtime.runner import Runner

CLOSE_SECONDS = 5.0
TELL_SECONDS = 0.0005

log = logging.getLogger(__name__)


class Loop:
    """Runs requests on a runner, which it owns and closes. All methods may be called from any thread."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._cache = KvCache(runner.kv)
        self._scheduler = Scheduler(self._cache, runner.max_batch)
        self._inbox: SimpleQueue[Request | Sequence | None] = SimpleQueue()
        self._active: dict[Request, None] = {}
        self._closing = False
        self._last = Finish("cancelled")  # what requests get that are there when the thread ends
        self._pid = os.getpid()
        self._thread = Thread(target=self._run, name="smepilot-runtime", daemon=True)
        self._thread.start()

    @property
    def capacity(self) -> int:
        """Positions that one sequence can have: the context, or less where the KV pool is smaller."""
        return min(self._runner.ctx, self._cache.total * PAGE_TOKENS)

    def check_process(self) -> None:
        """Raises ClosedError in a forked child, where the thread that serves requests does not exist."""
        if os.getpid() != self._pid:
            raise ClosedError("the engine was opened before fork(); open another one in the child process")

    def check(self) -> None:
        """Raises ClosedError if requests can no longer be served."""
        self.check_process()
        if self._closing or not self._thread.is_alive():
            raise ClosedError("the engine is closed; open it again")

    def submit(self, request: Request) -> None:
        """Queues a request; its events go to its sink from the runtime thread."""
        self.check()
        self._active[request] = None
        self._inbox.put(request)
        if self._closing and self._active.pop(request, self) is None:  # the thread may have ended in between
            self.check()

    def cancel(self, request: Request) -> None:
        """Ends a request at once, also in the middle of a step; does nothing to one that has ended.

        Waits until a step that it is part of has ended, a few milliseconds at most.
        """
        if request not in self._active or request.cancelled or os.getpid() != self._pid:
            return
        request.cancelled = True
        self._inbox.put(None)
        self._send(request, Finish("cancelled"))
        # A step that is only about to begin does not hear of it, so it is told until it ends: within a tile or two.
        while request.stepping and current_thread() is not self._thread:
            self._runner.cancel()
            sleep(TELL_SECONDS)

    def abandon(self, request: Request) -> None:
        """Ends a request after the step that runs now; sends no event."""
        request.cancelled = True
        self._inbox.put(None)

    def cancel_all(self) -> None:
        """Cancels every request there is at this moment."""
        for request in list(self._active):
            self.cancel(request)

    def release(self, sequence: Sequence) -> None:
        """Gives back the pages of an idle sequence that will not be used again."""
        self._inbox.put(sequence)

    def close(self, *, quietly: bool = False) -> None:
        """Ends all requests, stops the thread and closes the runner.

        Whoever waits for a request gets ClosedError, or, `quietly`, an answer that was cancelled: when the
        interpreter leaves, a thread that still streams has done nothing wrong.
        """
        if self._closing or os.getpid() != self._pid:
            return
        self._last = Finish("cancelled", None if quietly else ClosedError("the engine was closed"))
        self._closing = True
        self._inbox.put(None)
        deadline = perf_counter() + CLOSE_SECONDS
        while self._thread.is_alive() and current_thread() is not self._thread and perf_counter() < deadline:
            self._runner.cancel()
            self._thread.join(TELL_SECONDS)

    # ---- the runtime thread

    def _run(self) -> None:
        try:
            while not self._closing:
                self._drain()
                batch = self._scheduler.next_batch()
                if batch:
                    self._step(batch)
        except BaseException as error:  # a defect of the loop itself: no request may wait for ever
            log.exception("the runtime thread failed")
            self._last = Finish("cancelled", NativeError(f"the runtime thread failed: {error!r}"))
            self._closing = True
        finally:
            self._end_all()
            self._runner.close()

    def _drain(self) -> None:
        """Takes what other threads sent; waits for it when there is nothing else to do."""
        with suppress(Empty):
            while True:
                item = self._inbox.get(block=not self._scheduler)
                if self._closing:
                    return
                if isinstance(item, Request):
                    self._scheduler.add(item)
                elif item is not None:
                    self._cache.release(item)
                self._drop_cancelled()

    def _drop_cancelled(self) -> None:
        for request in self._scheduler:
            if request.cancelled:
                self._remove(request, keep=request.keep)

    def _step(self, batch: list[Share]) -> None:
        """Runs one native step and gives each request its logits; a step that was aborted changes nothing."""
        for request, _ in batch:
            request.stepping = True
        try:
            if any(request.cancelled for request, _ in batch):
                return  # seen here or, from now on, aborted by `cancel`
            now = perf_counter()
            rows = self._runner.step([chunk for request, count in batch for chunk in _chunks(request, count)])
        except CancelledError:
            return
        except Exception as error:
            self._isolate(batch, error)
            return
        finally:
            for request, _ in batch:
                request.stepping = False
        first = 0
        for request, count in batch:
            request.started = request.started or now
            request.sequence.computed += count
            used = count if request.logits == "all" else int(request.sequence.pending == 0)
            if used:
                self._advance(request, rows[first : first + used])
                first += used

    def _isolate(self, batch: list[Share], error: Exception) -> None:
        """Finds whom a failed step concerns."""
        if len(batch) > 1:
            for share in batch:
                self._step([share])
        else:
            self._fail(batch[0][0], error)

    def _advance(self, request: Request, rows: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> None:
        if request.cancelled:
            return
        try:
            finish = request.take(rows)
        except Exception as error:
            self._fail(request, error)
            return
        if finish is not None:
            self._remove(request, keep=request.keep)
            self._send(request, finish)

    def _fail(self, request: Request, error: Exception) -> None:
        """Ends a request with an error. Its pages may hold NaN, so nobody keeps them."""
        if not isinstance(error, SmePilotError):
            log.error("a request failed", exc_info=error)
            error = NativeError(f"internal error: {error!r}")
        self._remove(request, keep=False)
        self._send(request, Finish("cancelled", error))

    def _remove(self, request: Request, *, keep: bool) -> None:
        self._active.pop(request, None)
        self._scheduler.remove(request, keep=keep)

    def _send(self, request: Request, finish: Finish) -> None:
        try:
            request.sink(finish)
        except Exception:  # the consumer's event loop is gone, and with it whoever would have cared
            log.debug("nobody took the end of a request", exc_info=True)

    def _end_all(self) -> None:
        while self._active:
            request, _ = self._active.popitem()
            if not request.cancelled:
                self._send(request, self._last)


def _chunks(request: Request, count: int) -> list[Chunk]:
    """The next `count` tokens, cut where their role changes: a prompt, or an answer that lost its pages."""
    sequence = request.sequence
    ends = sequence.computed + count == len(sequence)
    last: Want = "all" if request.logits == "all" else "last" if ends else "none"
    cuts = list(sequence.stretches(count))
    return [
        Chunk(
            pages=sequence.table,
            start=start,
            tokens=np.array(sequence.tokens[start:stop], dtype=np.int32),
            logits=last if request.logits == "all" or stop == cuts[-1][1] else "none",
            role=role,
        )
        for start, stop, role in cuts
    ]
