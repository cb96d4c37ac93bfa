"""Names that users give: plain ones, and those that could be taken for something else."""

from tests.simulation.dice import Dice

_STREAMS = (
    "s", "s_1", "s_2", "s__1", "a", "a__b", "select", "order", "state_s", "new_s", "in_s", "raw_s",
    "late_s", "p0", "r", "i", "w", "out_q",
)  # fmt: skip
"""Keywords; what statements call relations; and what was once pieced together with underscores."""

_COLUMNS = (
    "k", "b__c", "c", "s__k", "a", "e", "i", "r", "w", "p0", "select", "from", "größe", "名前",
    "x__sum", "window", "number", "stream", "content", "clock", "_", "__", "watermark", "latest_s",
    "epoch_us", "_until", "_slot", "_batch", "_reason", "_row", "_watermark", "until", "batch",
)  # fmt: skip

_KEYS = ("f0__sum", "f0__count", "f1__sum", "f0", "f1", "_slot", "_until", "_batch", "end", "start")
"""Of group-bys, beside aggregates that are called `f0`, `f1` and so on where they can."""

_QUERIES = (("q-0", "q_0"), ("q_0", "q0"), ("a-b", "a_b"), ("select", "q__1"), ("b", "b-"))


def streams(r: Dice, count: int) -> list[str]:
    """So many names of streams."""
    if not r.hostile:
        return [f"s{number}" for number in range(1, count + 1)]
    return r.sample(_STREAMS, count)


def columns(r: Dice, plain: str) -> list[str]:
    """As many names of columns as there are letters."""
    return r.sample(_COLUMNS, len(plain)) if r.hostile else list(plain)


def keys(r: Dice, count: int, taken: list[str]) -> list[str]:
    """Names of what is grouped by, beside those of aggregates."""
    if not r.hostile:
        return [f"g{number}" for number in range(count)]
    return r.sample([name for name in _KEYS if name not in taken], count)


def outputs(r: Dice, count: int) -> list[str]:
    """Names of what a query puts out."""
    return r.sample(_COLUMNS, count) if r.hostile else [f"o{at}" for at in range(count)]


def queries(r: Dice) -> tuple[str, str]:
    """The names of two queries."""
    return r.choice(_QUERIES) if r.hostile else ("q0", "q1")
