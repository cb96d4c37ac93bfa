"""Real Spark with real Delta, and what happens where one of them is not there."""

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from jobs import spark as programs
from jobs.spark import SparkUnavailableError, check_java, jars, session

SCHEMA = "id INT, gate STRING, bags INT"
ROWS = [(1, "gate A", 10), (2, "gate B", 20), (3, "gate C", 30)]


def write(spark: SparkSession, path: Path, rows: list[tuple[int, str, int]], mode: str) -> None:
    frame = spark.createDataFrame(rows, SCHEMA)
    frame.write.format("delta").mode(mode).save(str(path))


def read(spark: SparkSession, path: Path, version: int | None = None) -> list[tuple[object, ...]]:
    reader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return sorted(tuple(row) for row in reader.load(str(path)).collect())


def fake_java(directory: Path, told: str) -> None:
    java = directory / "java"
    java.write_text(f"#!/bin/sh\necho '{told}' >&2\n")
    java.chmod(0o755)


def test_a_table_travels_in_time(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path / "t", ROWS, "overwrite")
    write(spark, tmp_path / "t", ROWS[:1], "overwrite")

    assert read(spark, tmp_path / "t") == ROWS[:1]
    assert read(spark, tmp_path / "t", version=0) == ROWS


def test_a_merge_updates_and_inserts(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path / "t", ROWS, "overwrite")
    news = [(2, "gate Z", 21), (4, "gate D", 40)]
    spark.createDataFrame(news, SCHEMA).createOrReplaceTempView("news")

    spark.sql(
        f"MERGE INTO delta.`{tmp_path / 't'}` t USING news n ON t.id = n.id"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )

    assert read(spark, tmp_path / "t") == [ROWS[0], news[0], ROWS[2], news[1]]


def test_deltalake_and_duckdb_read_what_spark_wrote(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path / "t", ROWS[:2], "overwrite")
    write(spark, tmp_path / "t", ROWS[2:], "append")

    table = DeltaTable(tmp_path / "t")
    rows = table.to_pyarrow_table()
    by_duckdb = duckdb.connect().execute("SELECT id, gate, bags FROM rows ORDER BY id").fetchall()

    assert table.version() == 1
    assert by_duckdb == ROWS
    assert sorted(tuple(row.values()) for row in rows.to_pylist()) == read(spark, tmp_path / "t")


def test_tables_keep_to_what_every_reader_can_read(spark: SparkSession, tmp_path: Path) -> None:
    write(spark, tmp_path / "t", ROWS, "overwrite")
    protocol = DeltaTable(tmp_path / "t").protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)


def test_a_session_names_files_and_resolves_nothing(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.jars.packages") is None
    assert conf.get("spark.jars", "").split(",") == [str(jar) for jar in jars()]
    assert all(jar.is_file() for jar in jars())


def test_a_process_has_one_session(spark: SparkSession) -> None:
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    again = session("tests", **{"spark.sql.shuffle.partitions": 3})
    assert again.sparkContext is spark.sparkContext
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"

    session("tests", **{"spark.sql.shuffle.partitions": str(partitions)})
    assert session("tests").conf.get("spark.sql.shuffle.partitions") == partitions


def test_a_session_is_local_and_tells_time_in_utc(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.master") == "local[*]"
    assert conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    shown = spark.sql("SELECT CAST(TIMESTAMP_SECONDS(0) AS STRING) AS t").collect()
    assert shown[0].t == "1970-01-01 00:00:00"


def test_missing_jars_are_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(programs, "JARS", tmp_path)
    with pytest.raises(SparkUnavailableError, match=r"run `make setup`$"):
        jars()


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        ('openjdk version "11.0.22" 2024-01-16', "is Java 11.0.22, 17 or newer is needed"),
        ('java version "1.8.0_392"', "is Java 1.8.0_392, 17 or newer is needed"),
        ("nonsense", "is Java of an unknown version"),
    ],
)
def test_an_old_java_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: str, complaint: str
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    fake_java(tmp_path, told)
    with pytest.raises(SparkUnavailableError, match=complaint):
        check_java()


def test_no_java_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SparkUnavailableError, match="install Java 17, or set JAVA_HOME"):
        check_java()


def test_new_java_is_accepted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    fake_java(tmp_path, 'openjdk version "21.0.2" 2024-01-16')
    assert check_java() == "21.0.2"


def test_fetching_what_is_there_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert programs.fetch_jars() == jars()


def test_without_a_network_fetching_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    nowhere = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9"
    without_cache = f"-Duser.home={tmp_path}"
    monkeypatch.setenv(
        "SPARK_SUBMIT_OPTS", f"{without_cache} {nowhere} {nowhere.replace('https', 'http')}"
    )
    monkeypatch.setattr(programs, "JARS", tmp_path / "share" / "jars")
    with pytest.raises(SparkUnavailableError, match="check the network") as refused:
        programs.fetch_jars()

    log = tmp_path / "share" / "jars.log"
    assert str(refused.value).endswith(f"see {log}")
    assert "delta-spark" in log.read_text()
    assert [left.name for left in log.parent.iterdir()] == ["jars.log"]


def test_files_with_names_of_other_scripts_are_seen_in_any_locale(tmp_path: Path) -> None:
    """Of a directory, Java leaves out what it cannot name in the locale of its process."""
    (tmp_path / "é漢").write_text("found")
    program = (
        "import sys; from jobs.spark import session; "
        "print([row.value for row in session('x').read.text(sys.argv[1]).collect()])"
    )
    told = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env=os.environ | {"LC_ALL": "C", "LANG": "C"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert told.stdout.strip() == "['found']"
