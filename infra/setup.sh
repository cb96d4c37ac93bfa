#!/usr/bin/env bash
# Makes .venv: checks the machine, installs the lock and the project, fetches Spark's jars.
# Each thing that is missing is one line that says what to do. `setup.sh check` only checks.
#
#   PYTHON  the Python to build on (default: python3)
#   VENV    where the environment goes (default: .venv)

set -euo pipefail
cd "$(dirname "$0")/.."

PYTHON=${PYTHON:-python3}
VENV=${VENV:-.venv}
LOCK=infra/requirements.txt
DISK_GB=4

fail() {
    echo "setup: $*" >&2
    exit 1
}

say() {
    echo "setup: $*"
}

check_python() {
    command -v "$PYTHON" >/dev/null ||
        fail "'$PYTHON' was not found: install Python 3.11 or newer, or name one: make setup PYTHON=python3.12"
    local found
    found=$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])') ||
        fail "'$PYTHON' does not run: install Python 3.11 or newer, or name one: make setup PYTHON=python3.12"
    "$PYTHON" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' ||
        fail "'$PYTHON' is Python $found, 3.11 to 3.14 is needed: install one and name it: make setup PYTHON=python3.12"
}

# As Spark looks for it: JAVA_HOME first, then PATH.
check_java() {
    local java=java found
    [[ -z "${JAVA_HOME:-}" ]] || java=$JAVA_HOME/bin/java
    command -v "$java" >/dev/null ||
        fail "'$java' was not found: install Java 17 (Debian, Ubuntu: apt-get install openjdk-17-jre-headless), or set JAVA_HOME"
    found=$("$java" -version 2>&1 | sed -n 's/.* version "\([^"]*\)".*/\1/p') || true
    local major=${found%%[!0-9]*}
    [[ -n "$major" ]] || fail "'$java -version' names no version: install Java 17, or set JAVA_HOME to one"
    ((major >= 17)) || fail "'$java' is Java $found, 17 or newer is needed: install it, or set JAVA_HOME to one"
}

check_writable() {
    [[ -w . ]] || fail "$PWD is not writable: check the project out where you may write"
}

check_disk() {
    local free_kb
    free_kb=$(df -Pk . | awk 'NR == 2 { print $4 }')
    ((free_kb >= DISK_GB * 1024 * 1024)) ||
        fail "$((free_kb / 1024)) MB of disk are free in $PWD, $DISK_GB GB are needed: make room, or check out elsewhere"
}

check() {
    check_python
    check_java
    check_writable
    [[ -x $VENV/bin/midstream ]] || check_disk
}

# The environment itself: by uv where there is one, as it needs nothing of the system's Python.
make_venv() {
    "$VENV/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && return
    say "environment in $VENV, from $("$PYTHON" -c 'import sys; print(sys.executable)')"
    rm -rf "$VENV"
    if command -v uv >/dev/null; then
        uv venv --quiet --python "$PYTHON" "$VENV"
    elif ! "$PYTHON" -m venv "$VENV" >/dev/null 2>&1; then
        rm -rf "$VENV"
        fail "'$PYTHON' cannot make environments: install its venv module (Debian, Ubuntu: apt-get install python3-venv), or uv"
    fi
}

# uv of the lock's version, where the machine has none.
find_uv() {
    if command -v uv >/dev/null; then
        UV=uv
        return
    fi
    UV=$VENV/bin/uv
    [[ ! -x $UV ]] || return 0
    local pinned
    pinned=$(mktemp)
    sed -n '/^uv==/,/# via/p' "$LOCK" >"$pinned"
    "$VENV/bin/python" -m pip install --quiet --require-hashes --requirement "$pinned" ||
        fail "uv could not be installed: see the lines above; it also works with uv on PATH"
    rm -f "$pinned"
}

install() {
    say "packages of $LOCK"
    "$UV" pip install --quiet --python "$VENV/bin/python" --require-hashes --requirement "$LOCK" ||
        fail "the packages could not be installed: see the lines above, then run make setup again"
    "$UV" pip install --quiet --python "$VENV/bin/python" --no-deps --no-build-isolation --editable . ||
        fail "the project could not be installed: see the lines above, then run make setup again"
}

# Says itself what went wrong.
fetch_jars() {
    say "Delta's jars for Spark"
    "$VENV/bin/python" -m jobs.spark
}

check
[[ "${1:-}" != check ]] || exit 0
make_venv
find_uv
install
fetch_jars
say "done: $VENV/bin/midstream --help"
