"""Logs that commands keep under a job's storage: Delta tables of rows that stay for good."""

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from json import dumps
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from jobs.tables.lease import private

MAX_FILES = 64
"""More are merged: a row is a file of its own, and looking at them would take ever longer."""


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Let nobody else decide meanwhile: two who look at the same windows come to one result."""
    private(root)
    with (root / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def append(path: Path, schema: pa.Schema, content: Mapping[str, Any]) -> None:
    """A row more: some columns by which rows are found, and all of it as JSON in `content`."""
    row = {**content, "content": dumps(content)}
    rows = pa.Table.from_pylist([{name: row[name] for name in schema.names}], schema)
    write_deltalake(path, rows, mode="append", schema_mode="merge")
    table = DeltaTable(path)
    if len(table.file_uris()) > MAX_FILES:
        table.optimize.compact()
        table.vacuum(dry_run=False)
