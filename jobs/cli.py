"""`midstream`, the one command.  A subcommand is a file in jobs/commands and a line here.

Exit codes: 0 done, 1 failed, 2 bad input, 3 refused or nothing qualified, 4 cannot tell (`verify`).
"""

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version as installed
from typing import Annotated

import typer
from typer._click.exceptions import ClickException, NoArgsIsHelpError  # typer names neither

from jobs import show
from jobs.commands.bench import PASS_ON, bench
from jobs.commands.demo import demo
from jobs.commands.doctor import doctor
from jobs.commands.down import down
from jobs.commands.explain import explain
from jobs.commands.maintain import maintain
from jobs.commands.migrate import migrate
from jobs.commands.migration import app as migration
from jobs.commands.optimize import optimize
from jobs.commands.place import place
from jobs.commands.plan_network import plan_network
from jobs.commands.rate import rate
from jobs.commands.reoptimize import reoptimize
from jobs.commands.run import run as run_job
from jobs.commands.stats import app as stats
from jobs.commands.status import status
from jobs.commands.strategies import strategies
from jobs.commands.track import track
from jobs.commands.up import up
from jobs.commands.verify import verify
from jobs.errors import InputError, MidstreamError, RefusedError
from stats.errors import StatsError

DEBUG = "MIDSTREAM_DEBUG"
"""Set to 1, errors show where in the program they come from."""

app = typer.Typer(
    name="midstream",
    help="Changes the plan of a running Spark streaming query, midstream.",
    epilog="Exit codes: 0 done, 1 failed, 2 bad input, 3 refused or nothing qualified, "
    "4 cannot tell.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command()(demo)
app.command()(up)
app.command()(down)
app.command(name="run")(run_job)
app.command()(status)
app.command()(verify)
app.add_typer(stats, name="stats")
app.command()(reoptimize)
app.command()(migrate)
app.add_typer(migration, name="migration")
app.command()(track)
app.command()(maintain)
app.command()(explain)
app.command()(optimize)
app.command()(rate)
app.command()(place)
app.command()(plan_network)
app.command()(strategies)
app.command(context_settings=PASS_ON)(bench)
app.command()(doctor)


def _version(asked: bool) -> None:  # noqa: FBT001  # typer calls it with the option's value
    if asked:
        typer.echo(f"midstream {installed('midstream')}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line of this process."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command line; the exit code."""
    try:
        return int(app(args=list(arguments), prog_name="midstream", standalone_mode=False) or 0)
    except NoArgsIsHelpError:  # making it has shown the help
        return InputError.code
    except (MidstreamError, StatsError, ClickException, typer.Abort, PermissionError) as error:
        if os.environ.get(DEBUG) == "1":
            raise
        problem = _problem(error)
        show.error(problem, json="--json" in arguments)
        return problem.code
    except Exception as error:
        if os.environ.get(DEBUG) == "1":
            raise
        problem = _outside(error) or _defect(error)
        show.error(problem, json="--json" in arguments)
        return problem.code


def _outside(error: Exception) -> MidstreamError | None:
    """What the machine does not do: a path, a disk, the memory, or a text nested without end."""
    if isinstance(error, RecursionError):
        return InputError("what was given is nested too deeply")
    if isinstance(error, MemoryError):
        return MidstreamError("memory is too short for this")
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else str(error.filename)
        return MidstreamError(error.strerror.lower(), where)
    return None


def _defect(error: Exception) -> MidstreamError:
    advice = f"this is a defect; {DEBUG}=1 shows where it happened"
    what = str(error).strip().partition("\n")[0]
    return MidstreamError(f"{type(error).__name__}: {what} ({advice})")


def _problem(error: Exception) -> MidstreamError:
    if isinstance(error, MidstreamError):
        return error
    if isinstance(error, StatsError):
        return RefusedError(str(error))
    if isinstance(error, PermissionError):
        where = str(error.filename or "")
        return RefusedError("permission denied; do this as its owner, or have it opened", where)
    if not isinstance(error, ClickException):
        return MidstreamError("interrupted")
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "midstream"
    message = error.format_message().strip().rstrip(".")
    see = " See" if message.endswith("?") else "; see"
    where = command.removeprefix("midstream").strip()
    return InputError(f"{message}{see} '{command} --help'", where)


if __name__ == "__main__":
    main()
