"""The programs: the command line, the streaming job and its engine. They start quiet."""

from jobs.quiet import quiet

quiet()
