"""How DuckDB, Spark and Delta take a path: none of them as it is.

DuckDB and Spark's streams read names as patterns, Spark and Delta give them back as addresses, and
both make columns of directories such as `k=v` unless told not to.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from deltalake import DeltaTable

from jobs.errors import MidstreamError, RefusedError
from jobs.tables.names import PROGRESS

LITERAL = {"__globPaths__": "false", "recursiveFileLookup": "true"}
"""Options with which Spark reads the files of these names, and no columns from directories."""

_DUCK_PATTERN = re.compile(r"[*?[]")
_SPARK_PATTERN = re.compile(r"[{}\[\]*?\\]")
_NO_TABLE = re.compile(r"[\x00-\x1f\x7f\\]|%[0-9A-Fa-f]{2}")


def duck_reads(path: str | Path) -> bool:
    """Whether DuckDB can be told to read a file: in patterns a backslash separates directories."""
    return not ("\\" in str(path) and _DUCK_PATTERN.search(str(path)))


def read_parquet(paths: Iterable[str | Path], options: str = "") -> str:
    """DuckDB's relation of the rows in files."""
    files = ", ".join(_literal(path) for path in paths)
    return f"read_parquet([{files}], hive_partitioning = false{options})"


def _literal(path: str | Path) -> str:
    if not duck_reads(path):
        raise MidstreamError(f"{path}: a path with \\ and one of * ? [ cannot be read; rename it")
    return "'" + _DUCK_PATTERN.sub(r"[\g<0>]", str(path)).replace("'", "''") + "'"


def stream_pattern(path: Path) -> str:
    """The pattern that only this directory matches, for Spark's stream of files."""
    return _SPARK_PATTERN.sub(r"\\\g<0>", str(path))


def of_uri(uri: str) -> Path:
    """The path that Spark has written down as an address."""
    return Path(unquote(urlsplit(uri).path))


def files_of(table: DeltaTable) -> list[str]:
    """The paths of a Delta table's files, which it has as addresses."""
    return [unquote(uri) for uri in table.file_uris()]


def check_table(path: Path, error: type[MidstreamError]) -> Path:
    """The directory of a Delta table, if Delta can have it there."""
    if found := _NO_TABLE.search(str(path)):
        raise error(
            f"{str(path)!r}: Delta keeps no table where a path holds {found[0]!r}; rename it"
        )
    return path


def local(path: str) -> Path:
    """A directory of a job's, which has to be on a local disk for now."""
    if "://" in path:
        raise RefusedError(
            f"{path} is not on a local disk; object storage is not supported yet: name a directory"
        )
    return check_ours(check_table(Path(path), RefusedError))


def check_ours(place: Path) -> Path:
    """A directory, if this user may look into it; else it would seem to be empty."""
    here = _there(place)
    wanted = os.R_OK | os.X_OK if here == place else os.X_OK
    if not here.is_dir() or os.access(here, wanted, effective_ids=True):
        return place
    raise RefusedError(f"{place} is not yours to look into; ask as its owner, or have it opened")


def _there(place: Path) -> Path:
    """What there is of a path: itself, or the nearest directory above it."""
    here = (one for one in (place, *place.parents) if os.access(one, os.F_OK, effective_ids=True))
    return next(here, place)


def has_run(storage: str) -> bool:
    """Whether a job has begun in a storage on this machine."""
    return "://" not in storage and (Path(storage) / PROGRESS).exists()
