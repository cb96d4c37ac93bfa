"""Benchmarks: `midstream bench NAME [--json]`.

Each is a function with typer parameters, one of them `json`, that prints its own figures.
"""

BENCHES: dict[str, str] = {}
"""Name to `module:function`, imported when it is run."""
