"""What the generator made, made again from its seed: whole-number arithmetic on arrays.

A second has as many tuples as its rate says, fractions adding up; the n-th tuple of a second has in
every column a number that depends on the second, on n and on the column's name alone.
"""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from jobs.specs import Generator, GeneratorStream
from optimizer.query import Column

Numbers = npt.NDArray[np.int64]

PRIME = 2**31 - 1
DIFFERENT = 1000
"""How many values a column has of which the job file says nothing."""


def ticks(spec: GeneratorStream, first: int, last: int) -> tuple[Numbers, Numbers, Numbers]:
    """For each tuple of some seconds: its second, its number in it, and how many there are."""
    seconds = np.arange(first, last, dtype=np.int64)
    many = np.array([_many(spec.generator, int(second)) for second in seconds], dtype=np.int64)
    tick = np.repeat(seconds, many)
    starts = np.repeat(np.cumsum(many) - many, many)
    return tick, np.arange(len(tick), dtype=np.int64) - starts, np.repeat(many, many)


def _many(made: Generator, second: int) -> int:
    milli: int = round(_in_force(made, second, "rate", made.rate) * 1000)
    return (second + 1) * milli // 1000 - second * milli // 1000


def _in_force(made: Generator, second: int, what: str, first: Any) -> Any:
    """What holds in a second: the newest change that has come, or what held first."""
    shifts = [
        (shift.after // timedelta(seconds=1), getattr(shift, what))
        for shift in made.drift
        if getattr(shift, what)
    ]
    begun = [shift for shift in shifts if shift[0] <= second]
    return max(begun, key=lambda one: one[0])[1] if begun else first


def numbers(spec: GeneratorStream, stream: str, column: str, at: tuple[Numbers, ...]) -> Numbers:
    """The number behind a column's value, tuple by tuple."""
    tick, n, _ = at
    salt = crc32(f"{spec.generator.seed}/{stream}/{column}".encode()) % PRIME
    x = (tick * 1_000_003 + n * 48_271 + salt) % PRIME
    square = x * x % PRIME
    fifth: Numbers = square * square % PRIME * x % PRIME
    return fifth % _keys(spec.generator, column, tick)


def _keys(made: Generator, column: str, tick: Numbers) -> Numbers:
    """How many values a column has, tuple by tuple."""
    known = np.full(len(tick), made.keys.get(column, DIFFERENT), dtype=np.int64)
    shifts = [s for s in made.drift if column in s.keys]
    for shift in sorted(shifts, key=lambda s: s.after):
        known[tick >= shift.after // timedelta(seconds=1)] = shift.keys[column]
    return known


def times(started: int, at: tuple[Numbers, ...]) -> Numbers:
    """The event times, spread evenly over each second."""
    tick, n, many = at
    return started + tick * 1_000_000 + n * 1_000_000 // many


def typed(column: Column, found: Numbers) -> pa.Array:
    """Numbers as values of a column's type."""
    match column.type:
        case "BOOLEAN":
            return pa.array(found % 2 == 0)
        case "DATE":
            return pa.array([date(2020, 1, 1) + timedelta(days=int(n)) for n in found], pa.date32())
        case "TIMESTAMP":
            return pa.array(found * 1_000_000).cast(pa.timestamp("us", "UTC"))
        case "STRING":
            return pa.array(found).cast(pa.string())
        case "BINARY":
            return pa.array([str(n).encode() for n in found], pa.binary())
        case "FLOAT" | "DOUBLE":
            return pa.array(found.astype(np.float32 if column.type == "FLOAT" else np.float64))
        case whole if whole in WHOLE:
            low, high = np.iinfo(WHOLE[whole]).min, np.iinfo(WHOLE[whole]).max
            outside = (found < low) | (found > high)
            return pa.array(found, mask=outside).cast(pa.from_numpy_dtype(WHOLE[whole]))
        case decimal:
            precision, scale = map(int, decimal.removeprefix("DECIMAL").strip("()").split(","))
            most = 10 ** (precision - scale)
            kept = [Decimal(int(n)) if n < most else None for n in found]
            return pa.array(kept, pa.decimal128(precision, scale))


WHOLE: dict[str, Any] = {
    "TINYINT": np.int8, "SMALLINT": np.int16, "INT": np.int32, "BIGINT": np.int64,
}  # fmt: skip
