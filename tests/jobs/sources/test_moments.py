"""Patterns of times as Spark writes them, by both readers, against Python's `strptime`."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from jobs.options import problems
from jobs.sources.common import Feed
from jobs.sources.reading import Reader
from jobs.tables.columns import REASON
from jobs.verify.text import records
from optimizer.query import Column, Stream


def at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


MOMENTS = [at(2024, 2, 29), at(2031, 12, 1, 12, 5, 9), at(1999, 1, 31, 23, 59, 59)]

SAME = {
    "dd.MM.yyyy HH:mm:ss": "%d.%m.%Y %H:%M:%S",
    "MM/dd/yyyy hh:mm:ss a": "%m/%d/%Y %I:%M:%S %p",
    "yyyyMMddHHmmss": "%Y%m%d%H%M%S",
    "uuuu-MM-dd'T'HH:mm:ss'Z'": "%Y-%m-%dT%H:%M:%SZ",
    "'TYPE' yyyy 'TEXT''s' MM ''dd'' HH:mm:ss": "TYPE %Y TEXT's %m '%d' %H:%M:%S",
    "ss.mm.HH dd|MM|yyyy (*)": "%S.%M.%H %d|%m|%Y (*)",
}  # fmt: skip


def both(tmp_path: Path, form: str, kind: str, pattern: str, texts: list[str]) -> list[Any]:
    """What the engine's reader makes of texts; that of `verify` makes the same of them."""
    option = "dateFormat" if kind == "DATE" else "timestampFormat"
    assert problems(form, {option: pattern}) == {}
    columns = (Column("v", kind), Column("ts", "TIMESTAMP"))
    feed = Feed(Stream("a", columns, "ts"), 0)
    path = tmp_path / f"x.{form}"
    lines = [f'{{"v": "{one}"}}' if form == "json" else f'"{one}",' for one in texts]
    path.write_text("\n".join(lines))
    rows = Reader(feed, form, {option: pattern}).rows(path).to_pylist()
    found = [None if row[REASON] else row["v"] for row in rows]
    judged = records(path, form, columns, {option.lower(): pattern}, exact=True)
    same = [one.values and one.values[0] for one in judged]
    assert [_micros(value) for value in found] == same
    return found


def _micros(value: Any) -> Any:
    if not isinstance(value, datetime):
        return value
    return round((value - at(1970, 1, 1)).total_seconds() * 1_000_000)


@pytest.mark.parametrize("form", ["csv", "json"])
@pytest.mark.parametrize("pattern", SAME)
def test_as_python_writes_them(tmp_path: Path, pattern: str, form: str):
    texts = [moment.strftime(SAME[pattern]) for moment in MOMENTS]
    found = both(tmp_path, form, "TIMESTAMP", pattern, texts)
    assert found == MOMENTS


BY_HAND: dict[tuple[str, str], datetime | None] = {
    ("M/d/yy h:mm a", "2/9/24 12:05 am"): at(2024, 2, 9, 0, 5),
    ("M/d/yy h:mm a", "2/9/24 12:05 PM"): at(2024, 2, 9, 12, 5),
    ("M/d/yy h:mm a", "2/9/24 13:05 PM"): None,
    ("yyyy-MM-dd HH:mm:ss.SSS", "2024-02-29 01:02:03.5"): at(2024, 2, 29, 1, 2, 3, 500_000),
    ("yyyy-MM-dd HH:mm:ss.SSS", "2024-02-29 01:02:03.1234"): None,
    ("yyyy-MM-dd'T'HH[:mm[:ss]][XXX]", "2024-02-29T01"): at(2024, 2, 29, 1),
    ("yyyy-MM-dd'T'HH[:mm[:ss]][XXX]", "2024-02-29T01:02+05:30"): at(2024, 2, 28, 19, 32),
    ("yyyy-MM-dd'T'HH[:mm[:ss]][XXX]", "2024-02-29T01:02+0530"): None,
    ("yyyy-MM-dd HHX", "2024-02-29 01-03"): at(2024, 2, 29, 4),
    ("yyyy-MM-dd HHZ", "2024-02-29 01-0330"): at(2024, 2, 29, 4, 30),
    ("yyyy-MM-dd HHZ", "2024-02-29 01Z"): None,
    ("dd.MM.yyyy", "29.02.2023"): None,
    ("dd.MM.yyyy", "9.02.2023"): None,
    ("d.M.yyyy", "9.2.2023"): at(2023, 2, 9),
    ("dd.MM.yyyy HH", "09.02.2023 24"): None,
    ("dd.MM.yyyy", "2023-02-09"): None,
    ("dd.MM.yyyy", "\u0660\u0661.02.2023"): None,
}


@pytest.mark.parametrize(("pattern", "text"), BY_HAND)
def test_by_hand(tmp_path: Path, pattern: str, text: str):
    assert both(tmp_path, "csv", "TIMESTAMP", pattern, [text]) == [BY_HAND[pattern, text]]


def test_days(tmp_path: Path):
    texts = ["29/2/2024", "30/2/2024", "1/12/0001", "2024-02-29"]
    found = both(tmp_path, "json", "DATE", "d/M/yyyy", texts)
    assert found == [date(2024, 2, 29), None, date(1, 12, 1), None]
