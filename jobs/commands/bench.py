"""`midstream bench`: measurements that live in the source tree, each with options of its own."""

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer

from jobs import show
from jobs.errors import InputError
from jobs.words import unknown

PASS_ON = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "allow_interspersed_args": False,
}
"""What stands behind the benchmark's name is for the benchmark."""


def bench(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="Which one; without a name, they are listed.")
    ] = None,
) -> int:
    """Measure: figures, ratios, the command line and versions. NAME --help shows its options."""
    known = _benches()
    asks_json = "--json" in context.args or name == "--json"
    if name is None or name == "--json":
        _list(known, json=asks_json)
        return 0
    if name not in known:
        raise InputError(unknown("benchmark", name, known), "bench")
    one = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    one.command()(_function(known[name]))
    return int(
        one(args=context.args, prog_name=f"midstream bench {name}", standalone_mode=False) or 0
    )


def _benches() -> dict[str, str]:
    try:
        from tests.bench import BENCHES
    except ImportError:
        advice = "benchmarks are part of the source tree: run this from a checkout (make setup)"
        raise InputError(advice, "bench") from None
    return BENCHES


def _list(known: dict[str, str], *, json: bool) -> None:
    lines = {name: _line(_function(target)) for name, target in known.items()}
    if json:
        show.as_json(lines)
    elif lines:
        show.table(("name", "what it measures"), list(lines.items()))
    else:
        show.plain("There are no benchmarks yet.")


def _function(target: str) -> Callable[..., Any]:
    module, _, name = target.partition(":")
    function: Callable[..., Any] = getattr(import_module(module), name)
    return function


def _line(function: Callable[..., Any]) -> str:
    return " ".join((function.__doc__ or "").split("\n\n")[0].split())
