"""Parts of a job's storage that cannot be read: which, why, and what to do."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from json import loads
from pathlib import Path
from typing import Any

from jobs.errors import MidstreamError


class DamagedError(MidstreamError):
    """A file or a table of a storage is empty, torn, or not what it was."""


@contextmanager
def whole(path: Path) -> Iterator[None]:
    """Read a part of a storage; whatever goes wrong with that is the part's own damage."""
    try:
        yield
    except MidstreamError:
        raise
    except Exception as error:  # noqa: BLE001  # tables have errors of many kinds
        why = getattr(error, "strerror", None) or str(error).strip().partition("\n")[0].rstrip(".")
        raise DamagedError(
            f"{path} cannot be read ({why or type(error).__name__}): restore the job's storage "
            "from a copy, or give the job another one"
        ) from None


def note(path: Path) -> Mapping[str, Any]:
    """What a small file of a storage says."""
    with whole(path):
        content = loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise TypeError("it is empty or torn")
        return content
