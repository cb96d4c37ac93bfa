"""What is left of a batch once it is done goes on while Spark notes that and plans the next one.

A batch is done when its progress is committed.  After that its rows become part of what the next
one reads, what nobody needs is dropped, a migration rebuilds some more, files are merged.  No
result depends on when: killed before or amid any of it, a job finds it not done and does it later.
So Spark, which needs the time of a short batch for itself, is not kept waiting.

All of it uses the executor and the states, and so does the next batch.  Two rules keep them apart:
there is one thread, which does one thing after another, and whoever else touches either waits for
that thread first.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class Afterwards:
    """Work between two batches, on a thread of its own or, without threads, at once."""

    def __init__(self, *, threaded: bool) -> None:
        self._thread = ThreadPoolExecutor(1, "afterwards") if threaded else None
        self._last: Future[None] | None = None

    def do(self, work: Callable[[], None]) -> None:
        """Have it done after all that was asked for before, unless something of that fails."""
        if self._thread is None:
            work()
            return
        before = self._last

        def after_that() -> None:
            if before is not None:
                before.result()
            work()

        self._last = self._thread.submit(after_that)

    def wait(self) -> None:
        """Until all of it is done; what went wrong is raised, from now on each time."""
        if self._last is not None:
            self._last.result()

    def check(self) -> None:
        """Raise what has gone wrong so far, and wait for nothing."""
        last = self._last
        if last is not None and last.done():
            last.result()

    def close(self) -> None:
        """Wait, and give back the thread."""
        if self._thread is not None:
            self._thread.shutdown()
        self.wait()
