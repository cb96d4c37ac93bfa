"""`midstream stats`: what has been observed of a job's streams.  A subcommand is a file here."""

import typer

from jobs.commands.stats.show import show

app = typer.Typer(help="Gather, validate and show what the streams of a job are like.")

app.command()(show)
