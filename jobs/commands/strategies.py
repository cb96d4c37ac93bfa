"""`midstream strategies`: everything that can be chosen by name, with a line on each."""

import re
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from rich.text import Text

from jobs import show

REGISTRIES = {
    "search": "optimizer.search:SEARCHES",
    "placement": "optimizer.placement:PLACEMENTS",
    "migration": "optimizer.migration:MIGRATIONS",
    "network": "optimizer.network.placement:NETWORK_PLACEMENTS",
}
"""A kind of strategy, and the registry that lists them."""

COMPOSED = {
    "mjoin-init": "`mjoin-ordering`, then `state-selection` until the plan is within the budget.",
    "bjtree-init": "`min-state`, then `state-removal` until the plan is within the budget.",
}
"""Those put together from others, without a file of their own."""


def strategies(*, json: show.Json = False) -> None:
    """List the strategies that optimize, reoptimize and migrate can use."""
    kinds = {kind: {name: line(kind, name) for name in registry(kind)} for kind in REGISTRIES}
    if json:
        show.as_json(kinds)
        return
    for kind, lines in kinds.items():
        show.heading(kind)
        show.table(("name", "what it does"), [(Text(n, "cyan"), text) for n, text in lines.items()])


def registry(kind: str) -> Mapping[str, Any]:
    """The strategies of a kind by name."""
    module, _, name = REGISTRIES[kind].partition(":")
    found: Mapping[str, Any] = getattr(import_module(module), name)
    return found


def line(kind: str, name: str) -> str:
    """The first sentence of the strategy's file, without its name."""
    package = REGISTRIES[kind].partition(":")[0]
    file = f"{package}.{name.replace('-', '_')}"
    if find_spec(file) is None:
        return COMPOSED.get(name, "")
    text = " ".join((import_module(file).__doc__ or "").split("\n\n")[0].split())
    return re.sub(r"^`[\w-]+`[:,]?\s*", "", text)
