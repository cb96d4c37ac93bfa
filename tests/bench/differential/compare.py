"""What is missing and what is too much, by position and by type; sums of doubles may be near."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tests.bench.differential.case import Broken, Case
from tests.bench.differential.functions import kind_of
from tests.bench.differential.reference import Accounts, Near, count, same
from tests.bench.differential.run import Found
from tests.bench.differential.writers import arrow_type

RELATIVE = 1e-12
"""How far apart the engines' conversions to DOUBLE may be."""

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Wanted:
    """What must come out."""

    accounts: Accounts
    results: Rows


def differences(case: Case, wanted: Wanted, got: Found) -> list[str]:
    """What is wrong, in words; nothing if all is right."""
    expected, said = wanted.results, []
    if got.results is None:
        said += [f"{len(expected)} results are not there"] if expected else []
    else:
        said += _types(case, got.results)
        said += _rows("result", expected, plain(got.results, len(case.query.output)))
    for stream in case.streams:
        account, width = wanted.accounts.streams[stream.name], len(stream.columns)
        late = plain(got.late.get(stream.name), width)
        said += _rows(f"late row of {stream.name}", account.late, late)
        rejected = plain(got.rejected.get(stream.name), width)
        whole = [row for row in account.rejected if not isinstance(row, Broken)]
        if len(rejected) != len(account.rejected):
            said.append(
                f"{len(rejected)} rows of {stream.name} rejected, not {len(account.rejected)}"
            )
        missing, _ = _apart(whole, rejected)
        said += [f"missing rejected row of {stream.name}: {row}" for row in missing]
    return said


def plain(rows: pa.Table | None, width: int) -> Rows:
    """The first columns of a table, dates as days and times as microseconds."""
    if rows is None:
        return []
    columns = []
    for at in range(width):
        column = rows.column(at)
        if pa.types.is_timestamp(column.type):
            column = column.cast(pa.int64())
        if pa.types.is_date(column.type):
            column = column.cast(pa.int32())
        columns.append(column.to_pylist())
    return list(zip(*columns, strict=True)) if columns else [()] * rows.num_rows


def _types(case: Case, found: pa.Table) -> list[str]:
    """Columns of another type than declared; how many digits a DECIMAL has is not looked at."""
    said = []
    for (name, term), column in zip(case.query.output, found.schema, strict=False):
        wanted = arrow_type(term.type)
        decimals = kind_of(term.type) == "DECIMAL" and pa.types.is_decimal(column.type)
        if not decimals and wanted != column.type:
            said.append(f"column {name} is {column.type}, not {wanted}")
    return said


def _rows(what: str, expected: Sequence[tuple[Any, ...]], got: Rows) -> list[str]:
    missing, extra = _apart(expected, got)
    said = [f"missing {what}: {row}" for row in missing]
    return said + [f"unexpected {what}: {row}" for row in extra]


def _apart(expected: Sequence[tuple[Any, ...]], got: Rows) -> tuple[Rows, Rows]:
    one, other = count(expected), count(got)
    missing, extra = list((one - other).elements()), list((other - one).elements())
    for row in list(missing):
        for found in extra:
            if all(map(_near, row, found)):
                missing.remove(row)
                extra.remove(found)
                break
    return missing, extra


def _near(wanted: Any, got: Any) -> bool:
    """Whether a value is as good as what was wanted."""
    if isinstance(wanted, Near):
        if not isinstance(same(got), float):
            return (math.isinf(wanted.slack) and got is not None) or same(wanted.value) == got
        slack = wanted.slack + RELATIVE * abs(wanted.value)
        return wanted.value == got or math.isinf(wanted.slack) or abs(wanted.value - got) <= slack
    if isinstance(wanted, float) and isinstance(got, float):
        return wanted == got or abs(wanted - got) <= RELATIVE * abs(wanted)
    return bool(wanted == got) and isinstance(wanted, bool) == isinstance(got, bool)
