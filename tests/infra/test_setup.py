"""Set-up refuses a machine that lacks something: one line that says what to do, exit 1."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[2] / "infra" / "setup.sh"
TOOLS = ["awk", "bash", "df", "dirname", "sed"]

Fake = Callable[[str, str], None]
Check = Callable[..., tuple[int, str]]


@pytest.fixture
def bin_directory(tmp_path: Path) -> Path:
    """A PATH with what set-up calls, and no more."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for tool in TOOLS:
        found = subprocess.run(["which", tool], capture_output=True, text=True, check=True).stdout
        (directory / tool).symlink_to(found.strip())
    return directory


@pytest.fixture
def fake(bin_directory: Path) -> Fake:
    def write(name: str, script: str) -> None:
        program = bin_directory / name
        program.unlink(missing_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    write("java", """echo 'openjdk version "17.0.15" 2025-04-15' >&2""")
    write("df", "echo header; echo '/dev/sda 99999999 1 50000000 1% /'")
    return write


@pytest.fixture
def check(bin_directory: Path, tmp_path: Path, fake: Fake) -> Check:
    """Run the checks in a checkout of their own, on a machine of fakes."""
    checkout = tmp_path / "checkout"
    (checkout / "infra").mkdir(parents=True)
    (checkout / "infra" / "setup.sh").write_text(SETUP.read_text())

    def run(**env: str) -> tuple[int, str]:
        done = subprocess.run(
            ["bash", str(checkout / "infra" / "setup.sh"), "check"],
            env={"PATH": str(bin_directory), "PYTHON": sys.executable, **env},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return run


def test_a_good_machine_passes_in_silence(check: Check) -> None:
    assert check() == (0, "")


def test_no_python(check: Check) -> None:
    code, said = check(PYTHON="python3.99")
    assert code == 1
    assert said == (
        "setup: 'python3.99' was not found: install Python 3.11 or newer,"
        " or name one: make setup PYTHON=python3.12\n"
    )


@pytest.mark.parametrize("version", ["2.7", "3.10", "3.15"])
def test_a_python_too_old_or_too_new(check: Check, fake: Fake, version: str) -> None:
    # Answers the version when asked for it, and fails the comparison.
    fake("python3", f'case "$2" in *print*) echo {version} ;; *) exit 1 ;; esac')
    code, said = check(PYTHON="python3")
    assert code == 1
    assert said == (
        f"setup: 'python3' is Python {version}, 3.11 to 3.14 is needed:"
        " install one and name it: make setup PYTHON=python3.12\n"
    )


def test_no_java(check: Check, bin_directory: Path) -> None:
    (bin_directory / "java").unlink()
    code, said = check()
    assert code == 1
    assert said.startswith("setup: 'java' was not found: install Java 17")
    assert said.count("\n") == 1


@pytest.mark.parametrize("version", ["11.0.22", "1.8.0_392"])
def test_java_too_old(check: Check, fake: Fake, version: str) -> None:
    fake("java", f"""echo 'openjdk version "{version}" 2024-01-16' >&2""")
    assert check() == (
        1,
        f"setup: 'java' is Java {version}, 17 or newer is needed:"
        " install it, or set JAVA_HOME to one\n",
    )


def test_java_that_tells_no_version(check: Check, fake: Fake) -> None:
    fake("java", "echo nonsense >&2; exit 1")
    code, said = check()
    assert code == 1
    assert said.startswith("setup: 'java -version' names no version")


def test_java_home_comes_before_path(check: Check, tmp_path: Path) -> None:
    code, said = check(JAVA_HOME=str(tmp_path / "jdk"))
    assert code == 1
    assert said.startswith(f"setup: '{tmp_path}/jdk/bin/java' was not found")


def test_a_newer_java_will_do(check: Check, fake: Fake) -> None:
    fake("java", """echo 'openjdk version "21" 2023-09-19' >&2""")
    assert check() == (0, "")


def test_a_full_disk(check: Check, fake: Fake, tmp_path: Path) -> None:
    fake("df", "echo header; echo '/dev/sda 99999999 1 2097152 98% /'")
    assert check() == (
        1,
        f"setup: 2048 MB of disk are free in {tmp_path}/checkout, 4 GB are needed:"
        " make room, or check out elsewhere\n",
    )


def test_a_full_disk_is_no_matter_once_installed(check: Check, fake: Fake, tmp_path: Path) -> None:
    fake("df", "echo header; echo '/dev/sda 99999999 1 2097152 98% /'")
    program = tmp_path / "checkout" / ".venv" / "bin" / "midstream"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    assert check() == (0, "")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_is_not_ours(check: Check, tmp_path: Path) -> None:
    (tmp_path / "checkout").chmod(0o555)
    code, said = check()
    assert code == 1
    assert "is not writable" in said


def test_the_checks_come_in_order(check: Check, fake: Fake) -> None:
    fake("java", """echo 'openjdk version "11" 2018-09-25' >&2""")
    assert "Python" in check(PYTHON="python3.99")[1]
    assert "Java" in check()[1]
