"""The benchmark of join orders, with very little to join."""

import json

from jobs.cli import run
from tests.bench.orders import Load, asked, ranked


def test_every_tree_without_a_cross_product_is_priced():
    found = [str(offer) for offer in ranked(asked(30), Load(1000, 30, 40))]
    assert sorted(found) == sorted([
        "(((a b) c) d)", "((a (b c)) d)", "((a b) (c d))", "(a ((b c) d))", "(a (b (c d)))",
    ])  # fmt: skip
    assert (found[0], found[-1]) == ("(a (b (c d)))", "(((a b) c) d)")


def test_the_command_prints_what_was_predicted_and_measured(capsys):
    options = ["--rate", "20", "--window", "10", "--seconds", "30", "--plans", "2"]
    assert run(["bench", "orders", *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    best, worst = found["plans"]
    assert best["results"] == worst["results"] > 0
    assert worst["predicted"] > best["predicted"]


def test_a_window_must_fill(capsys):
    assert run(["bench", "orders", "--seconds", "30"]) == 2
    assert "--seconds" in capsys.readouterr().err
