"""The command line: exit codes, JSON, and what people are told."""

import json
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

import jobs.doctor
import tests.bench
from jobs import cli
from jobs.commands import strategies as strategies_command
from jobs.doctor import Check
from optimizer.search import COSTS, SEARCHES

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
AIRLINE = str(EXAMPLES / "airline.yaml")
TERMINAL = str(EXAMPLES / "terminal.yaml")


class Result:
    """How a command ended."""

    def __init__(self, code: int, out: str, err: str):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv(cli.DEBUG, raising=False)

    def run(*arguments: str) -> Result:
        capsys.readouterr()
        code = cli.run(arguments)
        return Result(code, *capsys.readouterr())

    return run


def set_(number: int) -> str:
    return str(EXAMPLES / f"set-{number}.yaml")


# --- the program ---------------------------------------------------------------------------------


def midstream(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "jobs.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_help_comes_at_once():
    """What the program imports before it knows what to do is what everyone waits for."""
    assert "Changes the plan" in midstream("--help").stdout
    code = "import sys, jobs.cli; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"pyspark", "sqlglot", "numba", "numpy", "pandas", "pydantic", "mlflow", "airflow"}
    assert not heavy & set(told.stdout.split())


def test_exit_codes_of_the_process(tmp_path: Path):
    assert midstream("strategies", "--json").returncode == 0
    assert midstream("explain", str(tmp_path / "none.yaml")).returncode == 2
    refused = midstream("optimize", "--workload", set_(4), "--strategy", "as-written", "--json")
    assert refused.returncode == 3
    assert json.loads(refused.stdout)["qualified"] is False
    assert refused.stderr == ""


def test_a_closed_pipe_is_no_error():
    command = f"{sys.executable} -m jobs.cli explain {AIRLINE} --query terminal | head -1"
    told = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert (told.stdout, told.stderr) == ("(((f w) c) b)\n", "")


def test_the_runner_of_typer_works_too():
    told = CliRunner().invoke(cli.app, ["explain", AIRLINE, "--query", "gates", "--json"])
    assert (told.exit_code, json.loads(told.stdout)["plan"]) == (0, "((f b) c)")


@pytest.mark.parametrize("words", [(), ("migration",)])
def test_alone_shows_help(run: Run, words: tuple[str, ...]):
    told = run(*words)
    assert (told.code, told.err) == (2, "")
    assert "Usage: midstream" in told.out


def test_version(run: Run):
    told = run("--version")
    assert (told.code, told.out.split()[0]) == (0, "midstream")


# --- errors --------------------------------------------------------------------------------------


def test_an_error_is_what_where_and_what_to_do(run: Run, tmp_path: Path):
    told = run("explain", AIRLINE, "--query", "gate")
    assert (told.code, told.out) == (2, "")
    assert told.err == (
        "midstream: --query: no query is called 'gate'; there is gates, terminal, monitoring; "
        "did you mean gates?\n"
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("explian", "No such command 'explian'. Did you mean 'explain'? See 'midstream --help'"),
        ("explain", "explain: Missing argument 'JOB'; see 'midstream explain --help'"),
        (
            "optimize --workload F --limit soon",
            "optimize: Invalid value for '--limit': Input should be a valid number, "
            "unable to parse string as a number; "
            "see 'midstream optimize --help'",
        ),
        (
            f"explain {AIRLINE}",
            f"--query: {AIRLINE} has several queries: name one of gates, terminal, monitoring",
        ),
        (f"explain {AIRLINE} --query gates --plan (f,b)", "--plan: unexpected ',' at 3 in '(f,b)'"),
        (
            f"explain {AIRLINE} --query gates --plan (f;b;x)".replace(";", "\0"),
            "--plan: the query has no stream x; it has f, b, c",
        ),
        (
            f"explain {TERMINAL}",
            f"{TERMINAL}: no window bounds f against w; give a window in seconds, "
            "or bounds such as [{between: [f, w], seconds: [-60, 300]}]",
        ),
        (
            f"explain {EXAMPLES}/set-1.yaml --query q",
            f"--query: {EXAMPLES}/set-1.yaml is a workload file: it has no queries to choose from",
        ),
        (
            f"explain {EXAMPLES}/set-1.yaml --workload {EXAMPLES}/set-1.yaml",
            f"--workload: {EXAMPLES}/set-1.yaml is a workload file itself",
        ),
        (
            f"optimize --workload {EXAMPLES}/set-1.yaml --strategy two-layers",
            "--strategy: no strategy is called 'two-layers'; there is "
            f"{', '.join(COSTS)}, all; did you mean two-layer?",
        ),
        (
            f"optimize --workload {EXAMPLES}/set-1.yaml --query q",
            "--query: a query is one of a job: give --job as well",
        ),
        (
            f"optimize --workload {EXAMPLES}/set-1.yaml --svg plan.svg",
            "--svg: all strategies make several pictures: plan.svg must be a directory",
        ),
        ("bench nothing", "bench: no benchmark is called 'nothing'; there is one"),
    ],
)
def test_bad_input(run: Run, monkeypatch: pytest.MonkeyPatch, arguments: str, says: str):
    monkeypatch.setattr(tests.bench, "BENCHES", {"one": f"{__name__}:measure"})
    words = [word.replace("\0", " ") for word in arguments.split(" ")]
    told = run(*words)
    assert (told.code, told.out, told.err) == (2, "", f"midstream: {says}\n")
    as_json = run(*words, "--json")
    where, _, error = says.rpartition(": ") if says.count(": ") == 1 else ("", "", "")
    assert as_json.code == 2
    assert as_json.err == ""
    assert as_json.json.keys() >= {"error", "where"}
    assert not error or as_json.json == {"error": error, "where": where}


def test_several_problems(run: Run, tmp_path: Path):
    path = tmp_path / "w.yaml"
    path.write_text("window: 1\nstreams: {A: {rate: -1}, B: {}}\n")
    told = run("explain", str(path))
    assert told.err.splitlines() == [
        f"midstream: {path}:2: streams.A.rate: found -1; allowed: a number of at least 0",
        f"midstream: {path}:2: streams.B.rate: missing; needed: tuples per second",
    ]
    assert run("explain", str(path), "--json").json == {
        "error": "found -1; allowed: a number of at least 0",
        "where": f"{path}:2: streams.A.rate",
        "more": [
            {"error": "missing; needed: tuples per second", "where": f"{path}:2: streams.B.rate"}
        ],
    }


def test_sql_is_shown_with_the_place(run: Run, tmp_path: Path):
    path = tmp_path / "job.yaml"
    path.write_text(Path(AIRLINE).read_text().replace("f.gate, b.status", "f.gaet, b.status"))
    told = run("explain", str(path), "--query", "gates")
    assert told.code == 2
    first, line, caret = told.err.splitlines()
    assert first.startswith(f"midstream: {path}:38: queries.gates.sql, line 1, column 15: ")
    assert line[caret.index("^") :].startswith("f.gaet")


def test_a_defect_is_a_line_unless_asked(run: Run, monkeypatch: pytest.MonkeyPatch):
    def fails(**_: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(jobs.doctor, "checks", fails)
    told = run("doctor")
    assert (told.code, told.err) == (
        1,
        "midstream: ZeroDivisionError: oh (this is a defect; "
        "MIDSTREAM_DEBUG=1 shows where it happened)\n",
    )
    monkeypatch.setenv(cli.DEBUG, "1")
    with pytest.raises(ZeroDivisionError):
        run("doctor")


# --- explain -------------------------------------------------------------------------------------


def test_explain(run: Run):
    told = run("explain", AIRLINE, "--query", "gates")
    assert told.code == 0
    assert told.out.startswith("((f b) c)\n")
    assert "◀ heaviest" in told.out
    assert "Rates and selectivities are assumed: --workload FILE gives others." in told.out


def test_explain_json(run: Run):
    data = run("explain", AIRLINE, "--query", "gates", "--json").json
    assert data.keys() >= {"query", "plan", "cpu", "memory_tuples", "memory_bytes", "root"}
    assert (data["query"], data["plan"], data["assumed"]) == ("gates", "((f b) c)", True)
    assert data["root"]["op"] == "emit"


def test_explain_probes_in_the_best_order_that_we_know(run: Run):
    data = run("explain", set_(2), "--plan", "(A B C)", "--json").json
    assert data["cpu"] == pytest.approx(5.405, abs=0.001)
    assert data["memory_tuples"] == 1350


def test_explain_a_placed_plan(run: Run):
    plan = "((f b)@db c)"
    assert (
        run("explain", AIRLINE, "--query", "gates", "--plan", plan, "--json").json["plan"] == plan
    )


def test_explain_with_a_workload(run: Run):
    told = run("explain", AIRLINE, "--query", "terminal", "--workload", TERMINAL, "--json")
    assert told.json["assumed"] is False


def test_explain_draws(run: Run, tmp_path: Path):
    picture = tmp_path / "new" / "plan.svg"
    told = run("explain", set_(1), "--svg", str(picture))
    assert told.out.endswith(f"The picture is in {picture}\n")
    assert picture.read_text().startswith("<svg")
    (tmp_path / "file").write_text("")
    told = run("explain", set_(1), "--svg", str(tmp_path / "file" / "plan.svg"))
    assert told.code == 1
    assert "cannot write the picture: " in told.err


# --- optimize ------------------------------------------------------------------------------------


def test_optimize_json(run: Run):
    told = run("optimize", "--workload", set_(2), "--strategy", "two-layer", "--json")
    assert (told.code, told.err) == (0, "")
    data = told.json
    assert data.keys() >= {
        "strategy", "qualified", "plan", "cpu", "memory_tuples", "memory_bytes",
        "examined", "seconds", "front",
    }  # fmt: skip
    assert (data["strategy"], data["qualified"], data["plan"]) == ("two-layer", True, "((A B) C)")
    assert data["cpu"] == pytest.approx(0.621, abs=0.001)
    assert (data["memory_tuples"], data["memory_bytes"]) == (3150, pytest.approx(495_000))
    assert data["examined"] > 0
    assert data["seconds"] >= 0
    for point in data["front"]:
        assert point.keys() >= {"plan", "cpu", "memory_tuples"}


def test_optimize_all_json(run: Run):
    told = run("optimize", "--workload", set_(2), "--strategy", "all", "--json")
    found = {one["strategy"]: one for one in told.json}
    assert list(found) == list(COSTS)
    mjoin = found["mjoin-ordering"]
    assert (mjoin["qualified"], mjoin["plan"], mjoin["binding"]) == (False, "(A B C)", "cpu")
    assert mjoin["cpu"] == pytest.approx(5.405, abs=0.001)
    assert told.code == 0  # one that qualifies is enough


@pytest.mark.parametrize(
    ("number", "strategy", "cpu", "tuples", "code"),
    [
        (1, "mjoin-ordering", 0.277, 300, 0),
        (1, "min-state", 0.075, 800, 0),
        (2, "mjoin-ordering", 5.405, 1350, 3),
        (2, "min-state", 0.621, 3150, 0),
        (3, "mjoin-ordering", 0.477, 600, 0),
        (3, "min-state", 0.447, 5100, 3),
        (4, "mjoin-ordering", 36.181, 4000, 3),
        (4, "min-state", 35.207, 74000, 3),
    ],
)
def test_settled(run: Run, number: int, strategy: str, cpu: float, tuples: float, code: int):
    told = run("optimize", "--workload", set_(number), "--strategy", strategy, "--json")
    assert told.code == code
    assert told.json["cpu"] == pytest.approx(cpu, abs=0.0006)
    assert told.json["memory_tuples"] == pytest.approx(tuples)


def test_optimize_for_people(run: Run):
    told = run("optimize", "--workload", set_(3))
    assert told.code == 0
    assert told.out.startswith("Budget: 1 CPU, 1,000 tuples\n")
    assert all(name in told.out for name in COSTS)
    assert "→  (A B C D)      0.477    600 rows  CPU 48 %, memory 60 %" in told.out


def test_optimize_shows_the_plan_of_one_strategy(run: Run):
    assert "◀ heaviest" in run("optimize", "--workload", set_(1), "--strategy", "min-state").out


def test_nothing_qualified_says_what_is_short(run: Run):
    told = run("optimize", "--workload", set_(4), "--strategy", "two-layer")
    assert told.code == 3
    assert "No plan within the budget" in told.out
    assert "two-layer comes nearest, and cpu is what it lacks" in told.out


def test_optimize_the_query_of_a_job(run: Run, tmp_path: Path):
    picture = tmp_path / "plan.svg"
    told = run("optimize", "--job", AIRLINE, "--query", "terminal", "--workload", TERMINAL,
               "--strategy", "two-layer", "--svg", str(picture), "--json")  # fmt: skip
    assert (told.code, told.json["qualified"]) == (0, True)
    assert picture.exists()


def test_optimize_draws_every_strategy(run: Run, tmp_path: Path):
    run("optimize", "--workload", set_(1), "--svg", str(tmp_path / "plans"))
    assert {path.stem for path in (tmp_path / "plans").iterdir()} == set(COSTS)


def test_optimize_within_a_limit(run: Run, tmp_path: Path):
    """A search that is cut short still returns the best of what it has, and says so."""
    names = [f"s{number}" for number in range(14)]
    streams = {name: {"rate": 10 + 3 * i} for i, name in enumerate(names)}
    joins = [{"between": pair, "selectivity": 0.02} for pair in pairwise(names)]
    path = tmp_path / "w.json"
    path.write_text(json.dumps({"window": 10, "streams": streams, "joins": joins}))
    told = run("optimize", "--workload", str(path), "--strategy", "jtree-finder",
               "--limit", "0.1", "--json")  # fmt: skip
    assert told.json["complete"] is False
    assert told.json["plan"]


# --- the others ----------------------------------------------------------------------------------


def test_strategies(run: Run):
    lines = run("strategies", "--json").json["search"]
    assert list(lines) == list(SEARCHES)
    assert all(lines.values())
    people = run("strategies").out
    assert all(name in people for name in SEARCHES)


def test_composed_strategies_exist():
    assert strategies_command.COMPOSED.keys() <= SEARCHES.keys()


def test_doctor(run: Run, monkeypatch: pytest.MonkeyPatch):
    missing = Check("Java", ok=False, found="none to use", advice="install Java 17")
    good = Check("Python", ok=True, found="3.11.2")
    monkeypatch.setattr(jobs.doctor, "checks", lambda **_: [good])
    assert run("doctor").code == 0
    monkeypatch.setattr(jobs.doctor, "checks", lambda **_: [good, missing])
    told = run("doctor")
    assert told.code == 1
    assert "✓  Python" in told.out
    assert "✗  Java" in told.out
    assert "install Java 17" in told.out
    data = run("doctor", "--json").json
    assert data["ok"] is False
    assert data["checks"][1] == {
        "name": "Java", "ok": False, "found": "none to use", "advice": "install Java 17",
    }  # fmt: skip


def measure(
    *,
    rows: Annotated[int, typer.Option(help="How many.")] = 3,
    json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Count rows."""
    typer.echo(f'{{"rows": {rows}}}' if json else f"{rows} rows")


def test_bench(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tests.bench, "BENCHES", {"one": f"{__name__}:measure"})
    assert "Count rows." in run("bench").out
    assert run("bench", "--json").json == {"one": "Count rows."}
    assert run("bench", "one", "--rows", "5").out == "5 rows\n"
    assert run("bench", "one", "--rows", "5", "--json").json == {"rows": 5}
    assert "--rows" in run("bench", "one", "--help").out
    assert run("bench", "one", "--rows", "many").code == 2


def test_bench_outside_a_checkout(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "tests.bench", None)
    told = run("bench")
    assert told.code == 2
    assert "run this from a checkout" in told.err


def test_a_demo_empties_only_what_is_its_own(run: Run, tmp_path: Path):
    (tmp_path / "precious.txt").write_text("keep me")
    told = run("demo", "--directory", str(tmp_path))
    assert told.code == 2
    assert "something else" in told.err
    assert (tmp_path / "precious.txt").exists()
