"""A batch is carried out while Spark notes that it is done and plans the next one.

Spark needs as long for itself as the engine for a short batch, so neither waits for the other.
There is one batch at a time: the next one begins when this one is through with all it has to do.
What Spark has noted too early, if the process dies meanwhile, `checkpoint.put_back` sets right.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor


class SerialWorker:
    """A thread that does one thing after another."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "batch")
        self._last: Future[None] | None = None

    def begin(self, work: Callable[[], None]) -> None:
        """Begin something as soon as what was begun before has been done, unless that failed."""
        self.wait()
        self._last = self._thread.submit(work)

    def wait(self) -> None:
        """Until it is done; what went wrong is raised, from now on each time."""
        if self._last is not None:
            self._last.result()

    def check(self) -> None:
        """Raise what has gone wrong so far, and wait for nothing."""
        last = self._last
        if last is not None and last.done():
            last.result()

    def close(self) -> None:
        """Wait, and give back the thread."""
        self._thread.shutdown()
        self.wait()
