"""What Spark's and the disk's errors mean for a job: one line that says what to do."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from jobs.engine.microbatch import EngineError
from jobs.errors import MidstreamError, RefusedError
from jobs.spark import SparkUnavailableError, has_ended

MOMENT = 1.0
"""Seconds from the end of a process's connections to the end of the process, at most."""


@contextmanager
def explained(storage: Path) -> Iterator[None]:
    """Errors as one line that says what to do."""
    try:
        yield
    except MidstreamError:
        raise
    except EngineError as error:
        raise RefusedError(str(error)) from None
    except SparkUnavailableError as error:
        raise MidstreamError(str(error)) from None
    except Exception as error:
        if how := has_ended(MOMENT):
            raise _lost(how) from None
        raise explain(error, storage) from error


def _lost(how: str) -> MidstreamError:
    return MidstreamError(
        f"Spark's Java process is gone ({how}), perhaps for want of memory: start the job again; "
        "the batch under way is done again then, nothing is lost"
    )


def _full(storage: Path) -> MidstreamError:
    return MidstreamError(
        f"no space is left on the disk of {storage}: free some and start again; "
        "the batch under way is done again then, nothing is lost"
    )


def explain(error: Exception, storage: Path) -> Exception:
    """What Spark and Delta say in words only; of Spark's the line that says why."""
    text = str(error)
    if any(os.strerror(reason) in text for reason in (errno.ENOSPC, errno.EDQUOT)):
        return _full(storage)
    if not type(error).__module__.startswith(("pyspark.", "py4j.")):
        return error
    if found := _UNLIKE.search(text):
        return MidstreamError(
            f"directories below {unquote(found[1])}, or one of its files, name other columns than "
            "those beside: let all name the same, or say recursiveFileLookup: true, and start again"
        )
    return MidstreamError(
        f"Spark cannot go on: {cause(text)}; started again, the job does the batch under way again"
    )


_UNLIKE = re.compile(r"CONFLICTING_PARTITION_COLUMN_NAMES.*?\n\s+file:(/[^\n]*)", re.DOTALL)
"""What Spark says where directories such as `k=v` lie beside others, and the first of them."""


def cause(text: str) -> str:
    """The innermost cause that Spark tells, without the query, stacks and numbers of tasks."""
    for before in _BEFORE_THE_CAUSE:
        text = before.split(text, maxsplit=1)[-1]
    first = text.strip().partition("\n")[0]
    return first.partition(" SQLSTATE:")[0].partition(". Consider ")[0].rstrip(".")


_BEFORE_THE_CAUSE = tuple(
    re.compile(pattern)
    for pattern in (
        r"terminated with exception: ",
        r"An error occurred while calling \S+\s*: [\w.$]+: ",
        r"most recent failure: [^\n]*?\([^)]*executor [^)]*\): [\w.$]+: ",
        r"Traceback \(most recent call last\):(?:\n\s[^\n]*)*\n",
    )
)
"""What Spark says before it says why: of a query, of a call, of a task, of Python in a task."""
