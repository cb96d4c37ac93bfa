"""The doctor on this machine, and on machines that lack something."""

import json
import subprocess
import sys
from collections import namedtuple
from importlib.metadata import version
from pathlib import Path

import pytest

from jobs import cli, doctor, spark
from jobs.doctor import Check, checks
from tests.jobs import small


def named(name: str) -> Check:
    return next(check for check in checks() if check.name == name)


def test_a_machine_after_set_up_is_healthy() -> None:
    assert [check for check in checks() if not check.ok] == []


def test_it_looks_at_everything() -> None:
    names = [check.name for check in checks()]
    assert names[:4] == ["Python", "Java", "disk", "memory"]
    known = [*doctor.PACKAGES, "Delta's jars for Spark", "Graphviz"]
    assert names[4:][: len(known)] == known


def test_it_tells_the_versions_that_are_installed() -> None:
    for name in doctor.PACKAGES:
        assert named(name).found == version(name)


def test_what_fails_comes_with_advice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(spark, "JARS", tmp_path)
    monkeypatch.setattr(doctor, "MEMORY", 10**15)
    failed = {check.name: check.advice for check in checks() if not check.ok}
    assert failed.keys() == {"Java", "memory", "Delta's jars for Spark"}
    assert "install Java 17" in failed["Java"]
    assert "make setup" in failed["Delta's jars for Spark"]


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(10**9, 10**9, 5 * 10**8))
    assert not named("disk").ok
    assert "make room" in named("disk").advice


def test_another_version_than_the_lock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lock = tmp_path / "requirements.txt"
    lock.write_text("duckdb==1.0.0 ; python_version < '4' \\\n    --hash=sha256:0\n")
    monkeypatch.setattr(doctor, "LOCK", lock)
    assert named("duckdb").advice == "1.0.0 is the tested version: run `make setup`"
    assert named("mlflow").ok


def test_a_package_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "PACKAGES", ("no-such-package",))
    assert named("no-such-package") == Check(
        "no-such-package", ok=False, found="not installed", advice="run `make setup`"
    )


def test_without_graphviz_all_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert named("Graphviz").ok
    assert named("Graphviz").advice.startswith("optional")


def test_a_storage_that_others_may_look_into(tmp_path: Path) -> None:
    for name, mode in {"own": 0o700, "shared": 0o750, "open": 0o755}.items():
        (tmp_path / ".midstream" / name).mkdir(parents=True)
        (tmp_path / ".midstream" / name).chmod(mode)
    found = [one for one in checks(tmp_path) if one.name == "storage"]
    advised = {Path(one.found.partition(",")[0]).name: one.advice for one in found}
    assert all(one.ok for one in found)
    assert advised.keys() == {"own", "shared", "open"}
    assert not advised["own"]
    assert advised["open"].endswith(f"chmod 700 {tmp_path}/.midstream/open")
    assert advised["shared"]


def test_the_storage_of_a_job(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told() -> dict[str, str]:
        cli.run(["doctor", str(file), "--json"])
        found = json.loads(capsys.readouterr().out)["checks"]
        (one,) = [check for check in found if check["name"] == "storage"]
        return dict(one)

    file = small.job(tmp_path)
    assert told()["found"] == f"{tmp_path}/storage: No such file or directory"
    (tmp_path / "storage").mkdir(mode=0o755)
    assert "may look into it" in told()["advice"]
    (tmp_path / "storage").chmod(0o700)
    assert told()["advice"] == ""


def test_it_imports_no_heavy_library() -> None:
    code = (
        "import sys; from jobs.doctor import checks; checks();"
        "print(*{'pyspark', 'mlflow', 'airflow', 'duckdb', 'pandas'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
