"""SQL to queries: what is accepted and what it means, what is refused and where."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest
import sqlglot
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from optimizer.plan import as_written
from optimizer.query import Column, ColumnRef, Expression, Query, QueryError, Stream
from optimizer.sql import SqlError, parse, parse_duration, parse_schema
from optimizer.sql.functions import KINDS, NONDETERMINISTIC, SCALARS, TRUNCATIONS
from optimizer.sql.meaning import DUCKDB, written
from optimizer.window import MICROSECONDS

HERE = Path(__file__).parent / "sql"
DOCS = Path(__file__).parents[2] / "docs" / "sql.md"


def load(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((HERE / name).read_text())
    return loaded


STREAMS = {
    name: Stream(name, parse_schema(schema), "ts") for name, schema in load("streams.yaml").items()
}
ACCEPTED = load("accepted.yaml")
REFUSED = load("refused.yaml")
RUN = {name: case for name, case in ACCEPTED.items() if "oracle" in case}


def read(case: Mapping[str, Any]) -> Query:
    window = case.get("window")
    return parse(case["sql"], STREAMS, parse_duration(window) if isinstance(window, str) else None)


def cases(of: Mapping[str, Any]) -> Any:
    return pytest.mark.parametrize("case", [pytest.param(c, id=name) for name, c in of.items()])


# --- accepted ------------------------------------------------------------------------------------


@cases(ACCEPTED)
def test_inputs_and_predicates(case):
    query = read(case)
    assert list(query.aliases) == case["aliases"]
    joins = [str(p) for p in query.predicates if p.sides]
    theta = [str(p) for p in query.predicates if len(p.aliases) == 2 and not p.sides]
    selects = [str(p) for p in query.predicates if len(p.aliases) == 1]
    assert sorted(joins) == sorted(case.get("joins", []))
    assert sorted(theta) == sorted(case.get("theta", []))
    assert sorted(selects) == sorted(case.get("selects", []))
    if "shape" in case:
        assert str(as_written(query)) == case["shape"]


@cases({name: case for name, case in ACCEPTED.items() if "bounds" in case})
def test_bounds(case):
    query = read(case)
    names = query.aliases
    expected = {tuple(pair.split()): seconds for pair, seconds in case["bounds"].items()}
    found = {(i, j): query.bounds[i, j] / MICROSECONDS for i in names for j in names if i != j}
    assert found == expected


@cases({name: case for name, case in ACCEPTED.items() if "output" in case})
def test_output(case):
    query = read(case)
    assert {named.name: str(named.expression) for named in query.output} == case["output"]
    assert [named.name for named in query.output] == list(case["output"])


@cases({name: case for name, case in ACCEPTED.items() if "aggregates" in case})
def test_grouping(case):
    grouping = read(case).grouping
    assert grouping is not None
    assert [str(aggregate) for aggregate in grouping.aggregates] == case["aggregates"]
    if "keys" in case:
        assert {key.name: str(key.expression) for key in grouping.keys} == case["keys"]
    if isinstance(case.get("window"), list):
        time, size, slide = case["window"]
        assert str(grouping.time) == time
        assert [grouping.size, grouping.slide] == [size * MICROSECONDS, slide * MICROSECONDS]


# --- meaning: the parsed query, evaluated naively, against the same by hand -----------------------

START = datetime(2024, 1, 1, tzinfo=UTC)
HOUR = 3600 * MICROSECONDS


@cases(RUN)
@pytest.mark.parametrize("seed", range(3))
def test_meaning(case, seed):
    query = read(case)
    rows = {1: 300, 2: 40}.get(len(query.aliases), 36)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for stream in set(query.streams.values()):
            fill(connection, stream, rows, Random(f"{stream.name} {seed}"))
        actual = connection.execute(naive(query)).fetchall()
        expected = connection.execute(case["oracle"]).fetchall()
    assert ordered(actual) == ordered(expected)
    if seed == 0:
        assert expected, "the data should exercise the query"


def fill(connection: duckdb.DuckDBPyConnection, stream: Stream, rows: int, random: Random) -> None:
    """Few values in few half minutes, so that equal ones and limits met exactly are common."""
    values = [[value(column, stream, random) for column in stream.columns] for _ in range(rows)]
    create(connection, stream, values)


def create(connection: duckdb.DuckDBPyConnection, stream: Stream, rows: list[list[object]]) -> None:
    columns = ", ".join(f"{column.name} {_duckdb(column.type)}" for column in stream.columns)
    connection.execute(f"CREATE TABLE {stream.name} ({columns})")
    marks = ", ".join("?" * len(stream.columns))
    connection.executemany(f"INSERT INTO {stream.name} VALUES ({marks})", rows)


def _duckdb(declared: str) -> str:
    return sqlglot.exp.DataType.build(declared, dialect="spark").sql("duckdb")


def value(column: Column, stream: Stream, random: Random) -> object:
    if column.name != stream.event_time and random.random() < 0.1:
        return None
    match column.type:
        case "STRING":
            return random.choice(["A1", "A2", "B1", "ATL"])
        case "TIMESTAMP":
            return START + timedelta(seconds=30 * random.randrange(24))
        case "DATE":
            return START.date() + timedelta(days=random.randrange(3))
        case "BOOLEAN":
            return random.random() < 0.5
        case "TINYINT":
            return random.randrange(-128, 128)
        case "FLOAT":
            return random.randrange(40) / 10
        case "INT" | "BIGINT":
            return random.choice([0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 8, 9])
        case _:
            return random.randrange(40) / 4


WINDOW = ('"window.start"', '"window.end"')


def naive(query: Query) -> str:
    """Every combination, those that fit, and of these the groups: as the definitions say."""
    inputs = ", ".join(f"{stream.name} AS {alias}" for alias, stream in query.inputs)
    times = {alias: f"epoch_us({ref})" for alias, ref in query.event_times.items()}
    conditions = [rendered(predicate.expression) for predicate in query.predicates] + [
        f"{times[i]} - {times[j]} <= {query.bounds[i, j]}"
        for i in query.aliases
        for j in query.aliases
        if i != j
    ]
    where = " AND ".join(f"({condition})" for condition in conditions) or "TRUE"
    output = ", ".join(rendered(named.expression) for named in query.output)
    if query.grouping is None:
        return f"SELECT {output} FROM {inputs} WHERE {where}"
    grouping = query.grouping
    size, slide, time = grouping.size, grouping.slide, f"epoch_us({grouping.time})"
    keys = [f"{rendered(key.expression)} AS {key.name}" for key in grouping.keys]
    made = ", ".join([*keys, *map(aggregated, grouping.aggregates), *WINDOW])
    groups = ", ".join([*(rendered(key.expression) for key in grouping.keys), "ALL"][:-1])
    by = ", ".join(part for part in (groups, *WINDOW) if part)
    start, end = WINDOW
    windows = (
        f"(SELECT make_timestamptz(o) AS {start}, make_timestamptz(o + {size}) AS {end} "
        f"FROM range({_micros(START) - size}, {_micros(START) + HOUR}, {slide}) starts(o)) w"
    )
    here = f"{time} >= epoch_us({start}) AND {time} < epoch_us({end})"
    inner = f"SELECT {made} FROM {inputs}, {windows} WHERE {where} AND {here} GROUP BY {by}"
    return f"SELECT {output} FROM ({inner})"


def aggregated(aggregate: Any) -> str:
    argument = "*" if aggregate.argument is None else rendered(aggregate.argument)
    condition = aggregate.condition and f" FILTER (WHERE {rendered(aggregate.condition)})"
    return f"{aggregate.function}({argument}){condition or ''} AS {aggregate.name}"


def _named(column: ColumnRef) -> str:
    return f"{column.alias}.{column.name}" if column.alias else f"`{column.name}`"


def rendered(expression: Expression) -> str:
    return written(expression.sql(_named), DUCKDB)


def _micros(moment: datetime) -> int:
    return int(moment.timestamp()) * MICROSECONDS


def ordered(rows: list[tuple[object, ...]]) -> list[str]:
    """In order, numbers rounded: sums of floating numbers depend on their order."""
    return sorted(str(tuple(plain(cell) for cell in row)) for row in rows)


def plain(cell: object) -> object:
    number = isinstance(cell, int | float) or type(cell).__name__ == "Decimal"
    return round(float(cell), 6) if number else cell  # type: ignore[arg-type]


# --- refused -------------------------------------------------------------------------------------


@cases(REFUSED)
def test_refused(case):
    with pytest.raises(SqlError) as caught:
        read(case)
    error = caught.value
    assert error.message == case["message"]
    assert f"{error.line}:{error.column}" == case["at"]
    assert str(error) == f"{case['at']}: {case['message']}"


def test_enough_of_both():
    assert len(ACCEPTED) >= 60
    assert len(REFUSED) >= 60
    assert sum(len(case["aliases"]) > 1 for case in RUN.values()) >= 20


def test_pretty_shows_the_place():
    with pytest.raises(SqlError) as caught:
        parse("SELECT num\nFROM flights\nWHERE\tgat = 'A1'", STREAMS)
    assert caught.value.pretty().splitlines() == [
        "3:7: no stream here has a column gat",
        "  WHERE gat = 'A1'",
        "        ^",
    ]


@pytest.mark.parametrize("name", sorted(NONDETERMINISTIC))
def test_nondeterministic_functions(name):
    arguments = {"randstr": "3", "shuffle": "k", "uniform": "1, 2"}.get(name, "")
    with pytest.raises(SqlError) as caught:
        parse(f"SELECT\n{name}({arguments}) AS x FROM a", STREAMS)
    reason = "is not deterministic: a replayed batch would have another result"
    assert str(caught.value) == f"2:1: {name} {reason}"


def test_half_a_letter_is_refused():
    with pytest.raises(SqlError) as caught:
        parse("SELECT '\ud83d' AS x FROM a", STREAMS)
    assert str(caught.value) == "1:8: half of a surrogate pair is no text"


def test_deep_nesting_is_refused_or_read():
    def nested(depth: int) -> str:
        return f"SELECT {'(' * depth}x{')' * depth} AS x FROM a"

    assert parse(nested(15), STREAMS).output[0].expression == Expression.of(ColumnRef("a", "x"))
    check_any(nested(5000))
    check_any(f"SELECT x FROM a WHERE {' OR '.join(['x = 1'] * 2000)}")


# --- functions: the same in both engines ---------------------------------------------------------

CALLS = load("calls.yaml")


def test_calls_are_complete():
    assert {scalar.name for scalar in SCALARS.values()} <= set(CALLS)
    assert len(CALLS["date_trunc"]) == len(TRUNCATIONS)


def test_both_engines_agree(spark):
    stream, random = STREAMS["flights"], Random("functions")
    rows = [[value(column, stream, random) for column in stream.columns] for _ in range(30)]
    texts = [text for written in CALLS.values() for text in written]
    columns = [output(text, f"c{number}") for number, text in enumerate(texts)]
    schema = ", ".join(f"{column.name} {column.type}" for column in stream.columns)
    spark.createDataFrame(rows, schema).createOrReplaceTempView("flights")
    listed = ", ".join(column.sql() for column in columns)
    in_spark = zip(*spark.sql(f"SELECT {listed} FROM flights").collect(), strict=True)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        create(connection, stream, rows)
        listed = ", ".join(map(rendered, columns))
        found = connection.execute(f"SELECT {listed} FROM flights").fetchall()
    for text, one, other in zip(texts, in_spark, zip(*found, strict=True), strict=True):
        assert sorted(map(same, one)) == sorted(map(same, other)), text


def output(text: str, name: str) -> Expression:
    (column,) = parse(f"SELECT {text} AS {name} FROM flights", STREAMS).output
    return column.expression


def same(cell: object) -> str:
    """Spark's timestamps come without their zone, which is UTC."""
    return str(cell.replace(tzinfo=None) if isinstance(cell, datetime) else plain(cell))


TOKENS = [word for case in (*ACCEPTED.values(), *REFUSED.values()) for word in case["sql"].split()]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=25).map(" ".join) | st.text(max_size=40))
def test_any_text_is_read_or_refused_within_it(sql):
    check_any("SELECT x FROM a WHERE " + sql)
    check_any(sql)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(list(ACCEPTED.values())), st.randoms(use_true_random=False))
def test_a_damaged_query_is_read_or_refused_within_it(case, random):
    words = case["sql"].split()
    del words[random.randrange(len(words))]
    words.insert(random.randrange(len(words) + 1), random.choice(TOKENS))
    check_any(" ".join(words))


def check_any(sql: str) -> None:
    found: Query | SqlError
    try:
        found = parse(sql, STREAMS)
    except SqlError as error:
        found = error
    if isinstance(found, SqlError):
        lines = sql.split("\n")
        assert 1 <= found.line <= len(lines)
        assert 1 <= found.column <= len(lines[found.line - 1]) + 1


@cases(ACCEPTED)
def test_its_own_text_reads_the_same(case):
    """Canonical text is a fixed point: read again, a predicate is the same predicate."""
    query = read(case)
    inputs = ", ".join(f"{stream.name} AS {alias}" for alias, stream in query.inputs)
    where = " AND ".join(f"({predicate})" for predicate in query.predicates)
    if where:
        again = parse(f"SELECT 1 AS x FROM {inputs} WHERE {where}", STREAMS, MICROSECONDS)
        assert again.predicates == query.predicates


# --- the page for users --------------------------------------------------------------------------


def test_the_documented_queries_are_queries():
    examples = re.findall(r"```sql\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert len(examples) >= 3
    for example in examples:
        parse(example, STREAMS)


def test_every_function_is_documented():
    _, expressions = DOCS.read_text().split("## Expressions")
    listed = set(re.findall(r"`(\w+)`", expressions.split("### Values")[0]))
    assert {scalar.name for scalar in SCALARS.values()} <= listed


# --- schemas and durations -----------------------------------------------------------------------


def test_schema():
    assert parse_schema("num STRING, gate: integer, price dec(8,2), `n` numeric, ts timestamp") == (
        Column("num", "STRING"),
        Column("gate", "INT"),
        Column("price", "DECIMAL(8, 2)"),
        Column("n", "DECIMAL(10, 0)"),
        Column("ts", "TIMESTAMP"),
    )


@pytest.mark.parametrize("declared", sorted(KINDS))
def test_schema_types(declared):
    (column,) = parse_schema(f"c {declared.lower()}")
    assert column.type.split("(")[0] == declared


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("", "1:1: there is no SQL here"),
        ("num", "1:1: column num has no type"),
        ("num STRING,", "1:11: a column is missing behind this comma"),
        ("num STRING,, ts TIMESTAMP", "1:12: a column is missing before this comma"),
        ("num STRING, NUM INT", "1:13: two columns are called NUM"),
        ("num STRING NOT NULL", "1:12: unexpected NOT behind STRING"),
        ("a DECIMAL(39, 2)", "1:3: write DECIMAL(precision, scale) with at most 38 digits"),
        ("a DECIMAL(4, 5)", "1:3: write DECIMAL(precision, scale) with at most 38 digits"),
        ("a DECIMAL(x)", "1:3: write DECIMAL(precision, scale) with at most 38 digits"),
        ("`a b` INT", "1:1: not the name of a column: a b"),
        (
            "ts TIMESTAMP,\n  tags ARRAY<STRING>",
            "2:8: ARRAY is not a type of column: write one of BIGINT, BINARY, BOOLEAN, DATE, "
            "DECIMAL, DOUBLE, FLOAT, INT, SMALLINT, STRING, TIMESTAMP, TINYINT",
        ),
    ],
)
def test_schema_refused(schema, message):
    with pytest.raises(SqlError) as caught:
        parse_schema(schema)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("duration", "microseconds"),
    [
        ("5 minutes", 300_000_000),
        ("1 minute", 60_000_000),
        ("10 seconds", 10_000_000),
        ("1 hour", 3_600_000_000),
        ("500 milliseconds", 500_000),
        ("500ms", 500_000),
        ("1 HOUR 30 Minutes", 5_400_000_000),
        ("0.5 s", 500_000),
        ("7 microseconds", 7),
        ("2 weeks", 14 * 86_400_000_000),
        ("3 d", 3 * 86_400_000_000),
        ("0 seconds", 0),
        (" 1 min ", 60_000_000),
    ],
)
def test_duration(duration, microseconds):
    assert parse_duration(duration) == microseconds


@pytest.mark.parametrize(
    ("duration", "message"),
    [
        ("", "not a length of time: '': write a number and a unit: '5 minutes'"),
        ("5", "not a length of time: '5': write a number and a unit: '5 minutes'"),
        ("minutes", "not a length of time: 'minutes': write a number and a unit: '5 minutes'"),
        (
            "-5 minutes",
            "not a length of time: '-5 minutes': write a number and a unit: '5 minutes'",
        ),
        (
            "5 minutes!",
            "not a length of time: '5 minutes!': write a number and a unit: '5 minutes'",
        ),
        ("1 month", "a month has no fixed length: write days"),
        ("0.5 us", "0.5 us is not a whole number of microseconds"),
        ("99999999999 days", "99999999999 days is longer than 10000 years"),
        (
            "5 fortnights",
            "fortnights is not a unit of time: write weeks, days, hours, minutes, seconds, "
            "milliseconds, microseconds",
        ),
    ],
)
def test_duration_refused(duration, message):
    with pytest.raises(QueryError) as caught:
        parse_duration(duration)
    assert str(caught.value) == message
