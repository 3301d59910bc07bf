# SPDX-License-Identifier: Apache-2.0
"""Continuous batching: which tokens of which requests the next native step computes.

A step carries at most `max_batch` tokens. First one token of every sequence that is being written (decode), so that
answers advance together; then prompts, in chunks. Prompts share what is left evenly, a short one's unused share going
to the longer ones: a question of ten tokens does not wait for a document of ten thousand.

Admission is first come, first served, and takes pages for the whole prompt at once, so that a running prompt never
lacks memory. When a decode lacks a page and no idle session has one, the request admitted last gives its pages back
and waits at the head of the queue (preemption). It is computed again later, to the same bits, so its text is the
same. A request alone always fits: longer ones than the pool holds are refused before they get here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from smepilot.runtime.kvcache import KvCache
from smepilot.runtime.request import Request
from smepilot.runtime.sequence import pages_for

# Prompt tokens in a step that also decodes: keeps the pause between two tokens of an answer short
# while someone else's prompt is read, at little cost to the prompt.
PREFILL_BESIDE_DECODE = 128

Share = tuple[Request, int]  # a request and how many of its pending tokens the step computes


class Scheduler:
    """Waiting and running requests over a KV cache. Belongs to the runtime thread."""

    def __init__(self, cache: KvCache, max_batch: int) -> None:
        self._cache = cache
        self._max_batch = max_batch
        self._waiting: deque[Request] = deque()
        self._running: list[Request] = []  # in order of admission

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return bool(self._waiting or self._running)

    def __iter__(self) -> Iterator[Request]:
        """All requests, the running ones first."""
        return iter([*self._running, *self._waiting])

    def add(self, request: Request) -> None:
        """Queues a request."""
        self._waiting.append(request)

    def remove(self, request: Request, *, keep: bool) -> None:
        """Takes a request out; `keep` leaves its pages to its sequence as long as nobody needs them."""
        if request in self._running:
            self._running.remove(request)
        else:
            self._waiting.remove(request)
        if keep:
            self._cache.keep(request.sequence)
        else:
            self._cache.release(request.sequence)

    def next_batch(self) -> list[Share]:
        """The shares of the next step, decodes first; empty if there is nothing to do."""
        self._grow()
        self._admit()
        decodes = [request for request in self._running if request.sequence.pending == 1]
        prompts = [request for request in self._running if request.sequence.pending > 1]
        budget = self._max_batch - len(decodes)
        if decodes:
            budget = min(budget, PREFILL_BESIDE_DECODE)
        return [(request, 1) for request in decodes] + _share(prompts, budget)

    def _grow(self) -> None:
        """Gives every running sequence the page its next token needs, preempting the youngest where there is none."""
        for request in list(self._running):
            sequence = request.sequence
            while request in self._running and not self._cache.reserve(sequence, len(sequence)):
                self._preempt()

    def _preempt(self) -> None:
        victim = self._running.pop()
        self._cache.release(victim.sequence)
        self._waiting.appendleft(victim)

    def _admit(self) -> None:
        """Starts waiting requests, in order, as long as their whole prompts fit.

        A request that is not running holds no pages but those of its idle session, which `available` counts.
        """
        while self._waiting and len(self._running) < self._max_batch:
            request = self._waiting[0]
            sequence = request.sequence
            tokens = len(sequence) if request.admitted else len(request.tokens)
            headroom = len(self._running)  # a page for each, or the newcomer would soon be preempted again
            if self._running and pages_for(tokens) + headroom > self._cache.available:
                return
            if not request.admitted:
                request.cached = self._cache.begin(sequence, request.tokens, request.roles)
                request.admitted = True
            self._cache.reserve(sequence, tokens)
            self._running.append(self._waiting.popleft())


def _share(prompts: list[Request], budget: int) -> list[Share]:
    """Divides `budget` tokens among prompts: even shares, what the short ones leave goes to the long ones."""
    wants = {request: min(request.sequence.pending, request.longest_chunk or budget) for request in prompts}
    shares = []
    for left, request in zip(range(len(prompts), 0, -1), sorted(prompts, key=wants.__getitem__), strict=True):
        count = min(wants[request], budget // left)
        budget -= count
        if count:
            shares.append((request, count))
    return shares
