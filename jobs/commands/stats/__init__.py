"""`midstream stats`: what has been observed of a job's streams.  A subcommand is a file here."""

import typer

from jobs.commands.stats.calibrate import calibrate
from jobs.commands.stats.collect import collect
from jobs.commands.stats.show import show
from jobs.commands.stats.validate import validate

app = typer.Typer(help="Gather, validate and show what the streams of a job are like.")

app.command()(collect)
app.command()(validate)
app.command()(calibrate)
app.command()(show)
