"""DuckDB writes one relation while it computes the next; and what its joins build."""

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from sqlglot import exp, parse_one

from jobs.backends.duckdb.backend import DuckBackend, duck_text
from jobs.tables.memory_store import MemoryStore


def select(columns: str) -> exp.Query:
    return parse_one(f"SELECT {columns} FROM rows", read="spark").assert_is(exp.Query)


def test_writing_goes_on_beside_computing():
    backend, store = DuckBackend(writers=2), MemoryStore()
    backend.put("rows", pa.table({"a": list(range(20_000))}))
    writes = []
    for number in range(60):
        backend.run(f"r{number}", select("a, a % 7 AS b"))
        writes.append(backend.write(f"r{number}", store, "t", number))
    assert sum(file.rows for write in writes for file in write()) == 60 * 20_000
    backend.release()
    backend.close()


def test_a_busy_connection_is_waited_for():
    backend = DuckBackend(writers=2)
    backend.put("rows", pa.table({"a": list(range(20_000))}))
    backend.run("r", select("a"))
    with ThreadPoolExecutor(4) as pool:
        names = [pool.submit(lambda: backend.schema("r").names) for _ in range(400)]
        counts = [pool.submit(backend.count, "r") for _ in range(400)]
    assert [name.result() for name in names] == [["a"]] * 400
    assert [count.result() for count in counts] == [20_000] * 400
    backend.close()


def test_what_comes_first_is_on_the_right_of_every_join():
    """A batch's tuples, and what has come of them: that side DuckDB builds."""
    text = duck_text(
        parse_one(
            "SELECT n.a FROM new AS n JOIN s ON n.a = s.a JOIN (SELECT a FROM t) AS t ON t.a = s.a"
        ).assert_is(exp.Query)
    )
    assert text == (
        "SELECT n.a FROM ((SELECT a FROM t) AS t JOIN (s JOIN new AS n ON n.a = s.a) ON t.a = s.a)"
    )


def test_joins_of_another_kind_stay_as_they_are():
    text = "SELECT n.a FROM new AS n LEFT JOIN s ON n.a = s.a"
    assert duck_text(parse_one(text).assert_is(exp.Query)) == text
