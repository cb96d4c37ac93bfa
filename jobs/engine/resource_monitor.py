"""What is to be seen around a batch: what the job's processes use, and what waits to be read."""

from collections.abc import Iterable
from contextlib import suppress
from time import perf_counter

from deltalake.exceptions import DeltaError

from jobs.engine.process_usage import meter
from jobs.sources.inputs import InputStream
from jobs.tables.damage import DamagedError
from jobs.tables.progress import BatchResources

CHEAP = 0.002
"""Seconds that counting what waits may take of a batch."""

PATIENCE = 3
"""How often it may take longer, before nobody counts any more."""


class ResourceMonitor:
    """Looks around at the end of each batch."""

    def __init__(self, inlets: Iterable[InputStream]) -> None:
        self._inlets = list(inlets)
        self._measure = meter()
        self._cpu = self._measure().cpu
        self._first = True
        self._patience = PATIENCE

    def __call__(self, batch: int) -> BatchResources:
        used = self._measure()
        cpu, self._cpu = used.cpu - self._cpu, used.cpu
        return BatchResources(
            cpu=round(max(0.0, cpu), 3),
            memory=used.memory,
            backlog=self._backlog(batch),
            taken={inlet.stream.name: inlet.taken.position(batch) for inlet in self._inlets},
        )

    def _backlog(self, batch: int) -> int | None:
        """The files and versions that wait; the first look has all the past to go through."""
        if not self._patience:
            return None
        began = perf_counter()
        found: list[int | None] = []
        # Looking must not keep a batch from being done.
        with suppress(OSError, DeltaError, DamagedError):
            found = [inlet.source.waiting(inlet.taken, batch) for inlet in self._inlets]
        self._patience -= perf_counter() - began > CHEAP and not self._first
        self._first = False
        known = [count for count in found if count is not None]
        return sum(known) if known else None
