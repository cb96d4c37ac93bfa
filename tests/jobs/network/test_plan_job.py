"""A job on its network: what it takes, when another deployment is proposed, what is kept, by hand.

Stream a comes in at l, b at r, the job runs at m between them, results go to l.  A tuple of either
has 40 bytes in three columns; `narrow` does not need one of a's.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import Any

import pytest
import yaml
from deltalake import DeltaTable

from jobs import specs
from jobs.cli import run
from jobs.network import placing
from jobs.network.deployments import DeploymentLog
from jobs.network.scene import Wish
from optimizer.network.placement import NETWORK_PLACEMENTS
from stats.store import EDGES, SELECTS, StatsStore
from tests.jobs.network.test_job_queries import JOB, NETWORK
from tests.jobs.windows import window, write

SECOND = 1_000_000
WIDE_NOW = 3 * 40 + 30 * 40 + 27 * 80
"""Both streams over 1 to m, and 3 x 30 x 0.01 x (20 + 10) results a second over 1 to l."""
NARROW_NOW = 0.3 * 80 / 3 + 2.7 * 200 / 3
"""Besides b, which comes to m once for both: a tenth of a without a column, and the results."""
WIDE_BEST = 30 * 40 * 2
"""Joined at l: b over 2."""


class Stage:
    """A job file, its network and its statistics."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]):
        self.path, self.capsys = path, capsys
        self.file = path / "job.yaml"
        self.write()
        self.network(NETWORK)
        self.see()

    def network(self, content: dict[str, Any]) -> None:
        (self.path / "network.yaml").write_text(yaml.safe_dump(content))

    def write(self, *queries: str, **changes: Any) -> None:
        sites = {"a": "l", "b": "r"}
        content = JOB | {
            "network": "network.yaml",
            "site": "m",
            "streams": {name: s | {"site": sites[name]} for name, s in JOB["streams"].items()},
            "queries": {
                n: JOB["queries"][n] | {"sink": {"site": "l"}} for n in queries or ("wide",)
            },
        }
        found = {n: v for n, v in (content | changes).items() if v is not None}
        self.file.write_text(yaml.safe_dump(found, sort_keys=False))

    def see(self, *at: int, a: float = 3.0, b: float = 30.0, share: float = 0.01) -> None:
        for number in at or (0, 1, 2):
            when = window(0, number)
            write(self.path / "store", when, "wide", {"a": a, "b": b}, {})
            store = StatsStore.of(self.path / "store")
            names = ("wide", "narrow")
            edge = {"one": "a", "other": "b", "selectivity": share, "method": "exact"}
            store.replace(EDGES, when, [edge | {"query": name} for name in names])
            passed = {"alias": "a", "predicate": "a.ax = 7", "selectivity": 0.1}
            store.replace(SELECTS, when, [passed | {"query": name} for name in names])

    def __call__(self, *options: str, code: int = 0, command: str = "plan-network") -> Any:
        self.capsys.readouterr()
        assert run([command, str(self.file), *options, "--json"]) == code
        return json.loads(self.capsys.readouterr().out)

    def people(self, *options: str, command: str = "plan-network") -> str:
        self.capsys.readouterr()
        assert run([command, str(self.file), *options]) == 0
        return "".join(self.capsys.readouterr())


@pytest.fixture
def stage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Stage:
    return Stage(tmp_path, capsys)


def test_what_is_taken_now_and_what_would_be(stage: Stage):
    found = stage("--dry-run")
    figures = found["figures"]
    assert found["outcome"] == "deploy"
    assert figures["running_usage"] == pytest.approx(WIDE_NOW)
    assert figures["usage"] == pytest.approx(WIDE_BEST)
    assert figures["drift"] == pytest.approx([WIDE_NOW / WIDE_BEST - 1] * 3)
    assert {one["strategy"] for one in found["candidates"]} == set(NETWORK_PLACEMENTS)
    (operator,) = found["queries"][0]["operators"]
    assert operator["site"] == "l"


def test_the_price_is_the_state_that_moves(stage: Stage):
    """20 s of a and 10 s of b, over 1 from m to l."""
    found = stage("--dry-run")
    figures = found["figures"]
    moved = 3 * 20 * 40 + 30 * 10 * 40
    assert figures["moved_bytes"] == figures["transfer"] == pytest.approx(moved)
    assert figures["payback_seconds"] == pytest.approx(moved / (WIDE_NOW - WIDE_BEST))
    assert figures["kept_bytes"] == figures["filled_bytes"] == 0
    assert [(s["do"], s["kind"], s["site"]) for s in found["steps"]] == [
        ("start", "operator", "l"), ("connect", "operator", "l"), ("connect", "operator", "l"),
        ("advertise", "operator", "l"), ("connect", "sink", "l"), ("stop", "operator", "m"),
    ]  # fmt: skip


def test_what_two_queries_read_alike_comes_once(stage: Stage):
    stage.write("narrow", "wide")
    found = stage("--dry-run")
    assert found["figures"]["running_usage"] == pytest.approx(WIDE_NOW + NARROW_NOW)


def test_a_dry_run_keeps_nothing(stage: Stage):
    assert "dry run" in stage.people("--dry-run")
    assert not (stage.path / "store" / "network").exists()


def test_a_proposal_is_written_down_once(stage: Stage):
    first = stage("--propose", "--reason", "why not")
    assert (first["outcome"], first["deployed"], first["why"]) == ("deploy", False, "why not")
    assert "over 0.20" in first["reasons"][0]
    stage.see(3, a=3.1)
    assert stage("--propose")["id"] == first["id"]
    log = stage.path / "store" / "network" / "log"
    assert DeltaTable(log).to_pyarrow_table().num_rows == 1
    pictures = stage.path / "store" / "network" / "pictures" / first["id"]
    assert {path.stem for path in pictures.iterdir()} == set(NETWORK_PLACEMENTS)


def test_two_who_look_at_once_propose_once(stage: Stage):
    log = DeploymentLog.of(stage.path / "store")
    job, wish = specs.load(stage.file), Wish(SECOND, "eva")
    with ThreadPoolExecutor(1) as pool, log.alone():
        other = pool.submit(placing.propose, job, wish)
        sleep(0.3)
        assert not other.done()
        assert log.all() == []
    assert other.result()[0].outcome == "deploy"
    again, _ = placing.propose(job, Wish(2 * SECOND, "eva"))
    assert [one.id for one in log.all()] == [again.id]


def test_what_is_deployed_is_in_force(stage: Stage):
    assert stage()["deployed"] is True
    found = stage("--propose")
    assert found["outcome"] == "hold"
    assert found["figures"]["running_usage"] == pytest.approx(WIDE_BEST)
    assert found["figures"]["drift"] == pytest.approx([0.0] * 3)
    assert found["steps"] == []
    again = stage()
    assert (again["outcome"], again["deployed"]) == ("hold", False)
    assert again["reasons"][-1] == "nothing takes less"


def test_other_rates_are_another_best_place_and_a_cooldown_passes_first(stage: Stage):
    """Of a fast b and few matches the join belongs where b comes in."""
    deployed = stage()
    stage.see(3, 4, 5, a=0.3, b=3000.0, share=1e-5)
    found = stage("--propose")
    assert found["outcome"] == "hold"
    assert "within the cooldown" in found["reasons"][-1]
    stage.write(reoptimize={"cooldown": "0 seconds"})
    found = stage("--propose")
    assert (found["outcome"], found["deployed"]) == ("deploy", False)
    assert found["id"] != deployed["id"]
    assert [s["site"] for s in found["steps"] if s["do"] == "start"] == ["r"]
    assert {s["from"] for s in found["states"]} == {"l"}
    assert found["figures"]["transfer"] == pytest.approx(2 * found["figures"]["moved_bytes"])


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ({"usage": 0.5}, "not over 0.50 for 3 windows"),
        ({"horizon": "10 seconds"}, "beyond the horizon"),
        ({"windows": 4}, "3 of 4 windows"),
    ],
)
def test_what_holds_it_back(stage: Stage, policy: dict[str, Any], says: str):
    stage.write(reoptimize=policy)
    found = stage("--propose")
    assert found["outcome"] == "hold"
    assert says in found["reasons"][-1]
    assert stage("--dry-run")["outcome"] == "deploy"


def test_one_window_is_a_burst(stage: Stage):
    stage.see(1, a=30.0, b=30.0, share=1e-5)
    stage.write(reoptimize={"usage": 0.3})
    drift = stage("--propose")["figures"]["drift"]
    assert drift[0] > 0.3
    assert drift[1] < 0.3
    assert stage("--propose")["outcome"] == "hold"


def test_one_strategy_if_asked(stage: Stage):
    found = stage("--dry-run", "--strategy", "relaxation", "--svg", str(stage.path / "n.svg"))
    assert [one["strategy"] for one in found["candidates"]] == [found["strategy"]] == ["relaxation"]
    assert (stage.path / "n.svg").read_text().startswith("<svg")
    stage("--dry-run", "--strategy", "npc", "--svg", str(stage.path / "pictures"))
    assert (stage.path / "pictures" / "npc.svg").exists()


def test_the_clusters_of_a_jobs_network(stage: Stage):
    found = stage("--hierarchy")
    assert sorted(found["levels"][0][0]["members"]) == ["l", "m", "r"]


def test_a_site_that_is_gone_and_a_query_that_is_new(stage: Stage):
    """Whatever is not where it was deployed is taken to be where the job runs."""
    hub = {
        "sites": {"l": {"capacity": 0}, "r": {"capacity": 0}, "m": {"capacity": 0}, "h": None},
        "links": [{"between": [one, "h"], "latency": 0.1} for one in "lmr"] + NETWORK["links"],
    }
    stage.network(hub)
    assert [o["site"] for o in stage()["queries"][0]["operators"]] == ["h"]
    stage.network(NETWORK)
    assert stage("--dry-run")["figures"]["running_usage"] == pytest.approx(WIDE_NOW)
    stage()
    stage.write("narrow", "wide")
    running = stage("--dry-run")["figures"]["running_usage"]
    assert running == pytest.approx(WIDE_BEST + 1200 + NARROW_NOW)


def test_without_statistics_nothing_is_decided(stage: Stage):
    stage.write(storage="empty")
    found = stage(code=3)
    assert found["outcome"] == "blocked"
    assert "no good windows" in found["reasons"][0]


def test_a_stream_that_is_joined_with_itself(stage: Stage):
    stage.write("self")
    found = stage(code=2)
    assert found["where"].endswith("queries.self.sql")
    assert "joins itself" in found["error"]


def test_no_way_and_no_room(stage: Stage):
    stage.network(NETWORK | {"links": NETWORK["links"][:1]})
    found = stage(code=2)
    assert found["where"].endswith(": network")
    assert "no path leads from 'r'" in found["error"]
    stage.network(NETWORK | {"sites": {name: {"capacity": 0} for name in NETWORK["sites"]}})
    assert "no site is left" in stage(code=3)["error"]


@pytest.mark.parametrize(
    ("changes", "where", "says"),
    [
        ({"network": None}, "site", "is a site of no network"),
        ({"network": None, "site": None}, "streams.a.site", "is a site of no network"),
        ({"site": None}, "site", "missing"),
        ({"site": "x"}, "site", "no site is called 'x'"),
        ({"network": "none.yaml"}, "none.yaml", "no such file"),
    ],
)
def test_wrong_job_files(stage: Stage, changes: dict[str, Any], where: str, says: str):
    stage.write(**changes)
    found = stage(code=2)
    assert found["where"].endswith(where), found
    assert says in found["error"], found


def test_wrong_sites_of_streams_and_sinks(stage: Stage):
    text = stage.file.read_text()
    stage.file.write_text(text.replace("site: r", "site: R").replace("site: l\n", "site: L\n"))
    found = stage(code=2)
    assert [one["where"].rpartition(": ")[2] for one in (found, *found["more"])] == [
        "streams.a.site", "streams.b.site", "queries.wide.sink.site",
    ]  # fmt: skip


def test_options_of_the_other_form(stage: Stage):
    assert stage("--state", "x", code=2)["where"] == "--state"
    assert stage("--strategy", "best", code=2)["where"] == "--strategy"
    stage.file = stage.path / "network.yaml"
    for option in ("--dry-run", "--propose"):
        assert stage(option, code=2)["where"] == option


def test_a_job_without_a_network(stage: Stage):
    stage.file.write_text(yaml.safe_dump(JOB))
    assert stage(code=2)["where"].endswith("network")


def test_where_it_runs_is_not_what_it_computes(stage: Stage):
    """A job that is at another site goes on with its states."""
    before = specs.load(stage.file).definition
    stage.write(network=None, site=None, streams=JOB["streams"],
                queries={"wide": JOB["queries"]["wide"]})  # fmt: skip
    assert specs.load(stage.file).definition == before


@pytest.mark.parametrize("table", ["log", "deployments"])
def test_a_damaged_table_is_named(stage: Stage, table: str):
    stage()
    stage.see(3, 4, 5, a=0.3, b=3000.0, share=1e-5)
    for file in (stage.path / "store" / "network" / table).glob("*.parquet"):
        file.write_bytes(b"")
    found = stage("--propose", code=1)
    assert f"network/{table} cannot be read" in found["error"]
    assert "restore the job's storage" in found["error"]


# --- explain -------------------------------------------------------------------------------------


def explained(stage: Stage, *options: str) -> dict[str, Any]:
    workload = {
        "streams": {"a": {"rate": 3, "width": 40}, "b": {"rate": 30, "width": 40}},
        "joins": [{"between": ["a", "b"], "selectivity": 0.01}],
    }  # fmt: skip
    path = stage.path / "workload.yaml"
    path.write_text(yaml.safe_dump(workload))
    found: dict[str, Any] = stage("--workload", str(path), *options, command="explain")["network"]
    return found


def test_explain_says_what_a_plan_takes_site_by_site(stage: Stage):
    svg = stage.path / "plan.svg"
    found = explained(stage, "--svg", str(svg))
    assert found["usage"] == pytest.approx(WIDE_NOW)
    sites = {one["site"]: one for one in found["sites"]}
    assert sites["m"]["operators"] == [["a", "b"]]
    assert sites["m"]["bytes_in"] == pytest.approx(3 * 40 + 30 * 40)
    assert sites["m"]["bytes_out"] == sites["l"]["usage"] == pytest.approx(27 * 80)
    assert (sites["l"]["bases"], sites["l"]["sinks"]) == ([["a"]], [["a", "b"]])
    drawn = svg.read_text()
    assert "by the site that reads" in drawn
    assert drawn.count("join a b") == 1


def test_explain_goes_by_what_is_deployed(stage: Stage):
    stage()
    found = explained(stage)
    assert found["deployed"] is True
    assert found["usage"] == pytest.approx(WIDE_BEST)
    asked = explained(stage, "--plan", "(a b)")
    assert (asked["deployed"], asked["usage"]) == (False, pytest.approx(WIDE_NOW))
    assert "as deployed" in stage.people(command="explain")


def test_a_plan_is_explained_though_a_network_cannot_say(stage: Stage):
    stage.write("self")
    svg = stage.path / "plan.svg"
    found = stage("--svg", str(svg), command="explain")
    assert "joins itself" in found["network"]["error"]
    assert "by the site that reads" not in svg.read_text()
    assert "is not known" in stage.people(command="explain")


# --- many streams --------------------------------------------------------------------------------


def test_beyond_eight_streams_the_exact_least_is_not_looked_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(placing, "EXACT", 1)
    found, choice = placing.propose(specs.load(stage.file), Wish(0, "eva"), keep=False)
    assert tuple(one.strategy for one in found.candidates) == placing.QUICK
    assert all(one.over_optimum is None for one in found.candidates)
    assert choice is not None
    assert choice.taken.usage == pytest.approx(WIDE_BEST)
