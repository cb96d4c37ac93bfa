"""When to act, by windows made up so that every threshold can be checked by hand."""

from dataclasses import replace

import pytest

from optimizer.drift import (
    HAND,
    TRIGGERS,
    Choice,
    Observation,
    Outcome,
    Policy,
    Standing,
    Verdict,
    horizon,
    judge,
)

POLICY = Policy(drift=0.2, windows=3, cooldown=600, horizon=3600, near=0.9)
FREE = Standing()
CALM = Observation(running=0.6, best=0.6, chosen=0.6)
WORSE = Observation(running=0.81, best=0.57, chosen=0.57)
"""0.81 / 0.57 is 1.421."""
BETTER = Choice("((b c) f)", "((f b) c)", cpu=0.57, running_cpu=0.81, work=24.0)
"""Saves 0.24 a second: pays after 100 s, 864 CPU-seconds an hour."""


def verdict(
    *seen: Observation,
    choice: Choice = BETTER,
    policy: Policy = POLICY,
    standing: Standing = FREE,
) -> Verdict:
    return judge(seen, choice, policy, standing)


def fired(*seen: Observation, policy: Policy = POLICY) -> set[str]:
    return {name for name, trigger in TRIGGERS.items() if trigger.fires(seen, policy)}


# --- data-driven ---------------------------------------------------------------------------------


def test_drift_for_k_windows():
    found = verdict(WORSE, WORSE, WORSE)
    assert (found.outcome, found.trigger) == (Outcome.MIGRATE, "data-driven")
    assert found.reasons == (
        "drift 0.42 for 3 windows, over 0.20",
        "((f b) c) costs 0.81 CPU-s/s, ((b c) f) 0.57",
        "24 CPU-s to migrate, 864 saved an hour: pays after 100 s",
    )


@pytest.mark.parametrize(
    "seen",
    [
        (CALM, CALM, CALM),
        (CALM, WORSE, CALM),  # a burst
        (WORSE, WORSE, CALM),  # over before anyone acted
        (CALM, WORSE, WORSE),  # not for long enough
        (WORSE, WORSE),  # not enough windows
        (WORSE, CALM, WORSE),  # to and fro
    ],
)
def test_a_burst_is_not_a_trend(seen: tuple[Observation, ...]):
    assert fired(*seen) == set()
    assert verdict(*seen).outcome == Outcome.HOLD


def test_only_the_last_windows_count():
    assert fired(CALM, WORSE, WORSE, WORSE) == {"data-driven"}
    assert fired(WORSE, WORSE, WORSE, CALM) == set()


def test_drift_at_the_threshold_is_not_over_it():
    at = Observation(running=1.5, best=1.0, chosen=1.0)
    assert fired(at, at, at, policy=replace(POLICY, drift=0.5)) == set()
    assert fired(at, at, at, policy=replace(POLICY, drift=0.49)) == {"data-driven"}


def test_every_window_has_another_best_plan():
    """Noise: the plan to migrate to would have been worse in one of them."""
    other = Observation(running=0.8, best=0.5, chosen=0.9)
    assert fired(WORSE, other, WORSE) == set()


def test_how_many_windows_is_the_jobs_business():
    assert fired(CALM, WORSE, policy=replace(POLICY, windows=1)) == {"data-driven"}


def test_nothing_costs_nothing():
    idle = Observation(running=0.0, best=0.0, chosen=0.0)
    assert idle.drift == 0
    assert verdict(idle, idle, idle).outcome == Outcome.HOLD


def test_why_nothing_happens():
    assert verdict(CALM, WORSE, WORSE).reasons[0] == (
        "no trigger for 3 windows: drift 0.00, 0.42, 0.42, threshold 0.20"
    )
    assert verdict(WORSE).reasons[0] == "good windows: 1 of the 3 that a trend takes"


# --- the budget, and keeping up ------------------------------------------------------------------

OUTSIDE = replace(CALM, memory_share=1.3, cpu_share=0.4)
BEHIND = replace(CALM, heaviest=1.2)


def test_unqualified():
    assert fired(OUTSIDE, OUTSIDE, OUTSIDE) == {"unqualified"}
    assert fired(OUTSIDE, CALM, OUTSIDE) == set()
    assert fired(*3 * [replace(CALM, memory_share=1.0, cpu_share=1.0)]) == set()
    assert verdict(OUTSIDE, OUTSIDE, OUTSIDE).reasons[0] == (
        "outside the budget for 3 windows: "
        "the running plan needs 40% of the CPU and 130% of the memory in it"
    )


def test_infeasible():
    assert fired(BEHIND, BEHIND, BEHIND) == {"infeasible"}
    assert fired(BEHIND, BEHIND, CALM) == set()
    assert fired(*3 * [replace(CALM, heaviest=0.999)]) == set()
    assert fired(*3 * [replace(CALM, heaviest=1.0)]) == {"infeasible"}


@pytest.mark.parametrize("need", [OUTSIDE, BEHIND])
def test_what_must_be_need_not_pay(need: Observation):
    dearer = replace(BETTER, cpu=0.9, work=1e6)
    assert verdict(need, need, need, choice=dearer).outcome == Outcome.MIGRATE


def test_no_qualified_plan():
    lacking = replace(BETTER, qualified=False, why="the best known, (b c f), needs 120 %")
    found = verdict(OUTSIDE, OUTSIDE, OUTSIDE, choice=lacking)
    assert found.outcome == Outcome.BLOCKED
    assert found.reasons[-1] == "no qualified plan: the best known, (b c f), needs 120 %"
    stays = replace(lacking, same=True)
    assert verdict(OUTSIDE, OUTSIDE, OUTSIDE, choice=stays).outcome == Outcome.BLOCKED


def test_no_feasible_plan():
    found = verdict(BEHIND, BEHIND, BEHIND, choice=replace(BETTER, feasible=False))
    assert found.outcome == Outcome.BLOCKED
    assert "no feasible plan" in found.reasons[-1]


# --- memory --------------------------------------------------------------------------------------


def full(share: float | None) -> Observation:
    return replace(CALM, state=share)


def test_state_near_the_budget():
    assert fired(full(0.9), full(0.95), full(0.92)) == {"memory-driven"}
    assert fired(full(0.9), full(0.89), full(0.92)) == set()
    assert fired(full(0.95), full(None), full(0.95)) == set()


def test_a_plan_that_keeps_no_less_does_not_help():
    lasts = full(0.95)
    lighter = replace(BETTER, cpu=0.9, lighter=True)
    assert verdict(lasts, lasts, lasts, choice=lighter).outcome == Outcome.MIGRATE
    found = verdict(lasts, lasts, lasts, choice=replace(lighter, lighter=False))
    assert found.outcome == Outcome.BLOCKED
    assert found.reasons[-1] == "((b c) f) keeps no less than ((f b) c)"


def waiting(*files: float | None, busy: float | None = None) -> list[Observation]:
    return [replace(CALM, backlog=count, busy=busy) for count in files]


def test_backlog_rising():
    assert fired(*waiting(0, 1, 2, 5)) == {"backlog-driven"}
    assert fired(*waiting(0, 1, 2, 5, busy=0.95)) == {"backlog-driven"}
    assert fired(*waiting(1, 2, 5)) == set()  # three windows have two steps
    assert fired(*waiting(0, 9, 8, 10)) == set()
    assert fired(*waiting(0, 40, 0, 0)) == set()  # a burst
    assert fired(*waiting(3, 3, 3, 3)) == set()
    assert fired(*waiting(0, 1, None, 5)) == set()


def test_an_idle_job_has_a_backlog_for_other_reasons():
    assert fired(*waiting(0, 1, 2, 5, busy=0.5)) == set()


def lagging(*seconds: float, busy: float | None = 0.99) -> list[Observation]:
    return [replace(CALM, lag=lag, busy=busy) for lag in seconds]


def test_lag_rising():
    """18 s in three minutes are a tenth of them."""
    assert fired(*lagging(10, 15, 20, 28)) == {"backlog-driven"}
    assert fired(*lagging(10, 15, 20, 27)) == set()
    assert fired(*lagging(10, 15, 14, 40)) == set()
    assert fired(*lagging(10, 70, 130, 190, busy=0.1)) == set()  # a stream is silent
    assert fired(*lagging(10, 70, 130, 190, busy=None)) == set()


def test_a_backlog_takes_a_plan_of_less_work():
    falls = waiting(0, 1, 2, 5)
    assert verdict(*falls).outcome == Outcome.MIGRATE
    found = verdict(*falls, choice=replace(BETTER, cpu=0.9))
    assert (found.outcome, found.reasons[-1]) == (
        Outcome.BLOCKED, "((b c) f) needs no less CPU than ((f b) c)",
    )  # fmt: skip


def keeping(*rows: float) -> list[Observation]:
    return [replace(CALM, intermediate={"(f b)": count}) for count in rows]


def test_an_intermediate_state_grows():
    assert fired(*keeping(100, 110, 115, 121)) == {"refined-memory-driven"}
    assert fired(*keeping(100, 110, 115, 120)) == set()  # not over a fifth
    assert fired(*keeping(100, 200, 150, 300)) == set()
    assert fired(CALM, *keeping(110, 115, 150)) == set()  # it is new
    assert verdict(*keeping(100, 110, 115, 150)).reasons[0] == (
        "(f b) keeps more and more for 3 windows: 150 rows, from 100"
    )


def test_several_at_once():
    found = verdict(*3 * [replace(WORSE, memory_share=1.1)])
    assert found.trigger == "unqualified"
    assert [reason.partition(" ")[0] for reason in found.reasons[:2]] == ["outside", "drift"]


# --- what holds it back --------------------------------------------------------------------------


def test_cooldown():
    young, old = Standing(since=599), Standing(since=600)
    found = verdict(WORSE, WORSE, WORSE, standing=young)
    assert found.outcome == Outcome.BLOCKED
    assert found.reasons[-1] == ("cooldown: the last migration ended 599 s ago, 600 s must pass")
    assert verdict(WORSE, WORSE, WORSE, standing=old).outcome == Outcome.MIGRATE
    assert verdict(OUTSIDE, OUTSIDE, OUTSIDE, standing=young).outcome == Outcome.BLOCKED


def test_one_migration_after_the_other_cools_down_for_longer():
    """10 minutes, then 20, then 40."""
    for turns, wait in ((1, 600), (2, 1200), (3, 2400)):
        young, old = Standing(since=wait - 1, turns=turns), Standing(since=wait, turns=turns)
        assert verdict(WORSE, WORSE, WORSE, standing=young).outcome == Outcome.BLOCKED
        assert verdict(WORSE, WORSE, WORSE, standing=old).outcome == Outcome.MIGRATE


def test_payback_within_the_horizon():
    """0.25 CPU-seconds saved a second, 900 an hour: an hour pays for 900, and for no more."""
    at = replace(BETTER, cpu=0.5, running_cpu=0.75, work=900.0)
    assert at.payback == 3600
    assert verdict(WORSE, WORSE, WORSE, choice=at).outcome == Outcome.MIGRATE
    found = verdict(WORSE, WORSE, WORSE, choice=replace(at, work=901.0))
    assert found.outcome == Outcome.BLOCKED
    assert found.reasons[-1] == (
        "payback too long: 901 CPU-s to migrate, 900 saved an hour: 3604 s, over 3600"
    )


def test_what_came_back_soon_may_be_gone_as_soon():
    """Fifteen minutes ago the query left the plan that would now be taken again."""
    returns = Standing(since=900, returns=True)
    assert horizon(POLICY, returns) == 900
    assert horizon(POLICY, replace(returns, since=9000)) == 3600
    assert horizon(POLICY, replace(returns, returns=False)) == 3600
    long = replace(BETTER, work=240.0)  # pays after 1000 s
    assert verdict(WORSE, WORSE, WORSE, choice=long).outcome == Outcome.MIGRATE
    assert verdict(WORSE, WORSE, WORSE, choice=long, standing=returns).outcome == Outcome.BLOCKED


def test_what_stands_in_the_way():
    stopped = Standing(obstacles=("the job does not run",))
    found = verdict(WORSE, WORSE, WORSE, standing=stopped)
    assert (found.outcome, found.reasons[-1]) == (Outcome.BLOCKED, "the job does not run")
    assert verdict(CALM, CALM, CALM, standing=stopped).outcome == Outcome.HOLD


def test_the_running_plan_is_the_best():
    stays = replace(BETTER, same=True)
    found = verdict(WORSE, WORSE, WORSE, choice=stays)
    assert (found.outcome, found.reasons[-1]) == (Outcome.HOLD, "no plan better than ((f b) c)")


# --- by hand -------------------------------------------------------------------------------------


def test_force_overrides_thresholds():
    forced = Standing(since=1, forced=True)
    slow = replace(BETTER, work=1e6)
    found = verdict(CALM, choice=slow, standing=forced)
    assert (found.outcome, found.trigger) == (Outcome.MIGRATE, HAND)
    assert verdict(WORSE, WORSE, WORSE, choice=slow, standing=forced).trigger == "data-driven"


@pytest.mark.parametrize(
    ("choice", "standing"),
    [
        (replace(BETTER, qualified=False), Standing(forced=True)),
        (replace(BETTER, feasible=False), Standing(forced=True)),
        (BETTER, Standing(forced=True, obstacles=("a migration is under way",))),
    ],
)
def test_force_does_not_override_safety(choice: Choice, standing: Standing):
    assert verdict(CALM, choice=choice, standing=standing).outcome == Outcome.BLOCKED


def test_force_has_nothing_to_do():
    found = verdict(CALM, choice=replace(BETTER, same=True), standing=Standing(forced=True))
    assert found.outcome == Outcome.HOLD
