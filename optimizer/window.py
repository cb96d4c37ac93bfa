"""Windows as difference bounds between event times, and the volumes they enclose.

Bounds say for every ordered pair of streams how far one may lie ahead of the other:
`ts_i - ts_j <= matrix[i][j]`, in microseconds (Zhu 3.2: a window constraint graph, closed by its
shortest paths).  Volumes turn such bounds into expected numbers of combined tuples.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, prod

MICROSECONDS = 1_000_000

Matrix = Sequence[Sequence[float]]


class WindowError(ValueError):
    """The bounds of a query make no sense; `pair` names the streams concerned."""

    def __init__(self, message: str, pair: tuple[str, str]) -> None:
        super().__init__(message)
        self.pair = pair


@dataclass(frozen=True)
class Bounds:
    """A closed difference-bound matrix over named streams, every entry finite."""

    names: tuple[str, ...]
    matrix: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        for i, j in _pairs(len(self.names)):
            if self.matrix[i][j] == inf:
                pair = (self.names[i], self.names[j])
                raise WindowError(f"no window bounds {pair[0]} against {pair[1]}", pair)
            if self.matrix[i][j] + self.matrix[j][i] < 0:
                pair = (self.names[i], self.names[j])
                raise WindowError(
                    f"the windows of {pair[0]} and {pair[1]} exclude each other", pair
                )
        if self.matrix != _closure(self.matrix):
            raise ValueError("bounds must be closed: use close()")

    def __getitem__(self, pair: tuple[str, str]) -> int:
        """How far, at most, the first stream's tuple is newer than the second's."""
        i, j = pair
        return self.matrix[self._index[i]][self._index[j]]

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: position for position, name in enumerate(self.names)}

    def restrict(self, names: Iterable[str]) -> "Bounds":
        """The same bounds between some of the streams only."""
        kept = tuple(names)
        return Bounds(kept, tuple(tuple(self[i, j] if i != j else 0 for j in kept) for i in kept))

    def within(self, age: int) -> "Bounds":
        """The same, for tuples of the last microseconds only: as many as there are so far."""
        limits = {(i, j): max(min(self[i, j], age), -self[j, i])
                  for i in self.names for j in self.names if i != j}  # fmt: skip
        return close(self.names, limits)

    def agree(self, others: "Bounds") -> bool:
        """Whether the others say the same of the streams that these are about."""
        return all(self[i, j] == others[i, j] for i in self.names for j in self.names if i != j)

    def retention(self, name: str, partners: Iterable[str]) -> int:
        """How long a tuple of `name` may wait for a partner still to come."""
        return max((max(0, self[partner, name]) for partner in partners), default=0)

    @property
    def longest(self) -> int:
        """How long a tuple of any stream may wait for a partner still to come."""
        return max(self.retention(name, self.names) for name in self.names)


def close(names: Sequence[str], limits: Mapping[tuple[str, str], int]) -> Bounds:
    """Bounds from the limits given, what no one bounds being the shortest path between the pair."""
    open_matrix = [[0 if i == j else limits.get((i, j), inf) for j in names] for i in names]
    return Bounds(tuple(names), _closure(open_matrix))


def everywhere(names: Sequence[str], window: int) -> Bounds:
    """A global window: every pair at most `window` apart."""
    return close(names, {(i, j): window for i in names for j in names if i != j})


def ranges(names: Sequence[str], windows: Mapping[str, int]) -> dict[tuple[str, str], int]:
    """The limits of CQL's `s [RANGE w]`: a tuple of s is at most w older than any partner."""
    return {(o, s): w for s, w in windows.items() for o in names if o != s}


def _closure(matrix: Matrix) -> tuple[tuple[int, ...], ...]:
    """All shortest paths (Floyd-Warshall)."""
    rows = [list(row) for row in matrix]
    for via, through in enumerate(rows):
        for row in rows:
            first = row[via]
            for j, second in enumerate(through):
                row[j] = min(row[j], first + second)
    for i, row in enumerate(rows):
        row[i] = 0
    return tuple(tuple(row) for row in rows)  # type: ignore[arg-type]


def _pairs(n: int) -> Iterable[tuple[int, int]]:
    return ((i, j) for i in range(n) for j in range(n) if i != j)


# --- volumes -------------------------------------------------------------------------------------


def volume(matrix: Matrix) -> float:
    """The measure of all relative positions of n points within closed bounds: n - 1 dimensions.

    Exact where the bounds that matter form a tree (interval joins, or a window seen from now: the
    product of the widths) and for CQL's ranges (a sum over which point is the newest); otherwise
    sequential sampling, which closure keeps free of dead ends.
    """
    n = len(matrix)
    if n <= 1:
        return 1.0
    if any(matrix[i][j] + matrix[j][i] <= 0 for i, j in _pairs(n)):
        return 0.0
    edges = _tree(matrix)
    if edges is not None:
        return prod(matrix[i][j] + matrix[j][i] for i, j in edges)
    windows = _column_windows(matrix)
    if windows is not None:
        return prod(windows) * sum(1 / window for window in windows)
    from optimizer.sampling import sampled

    return sampled(matrix)


def _tree(matrix: Matrix) -> list[tuple[int, int]] | None:
    """The pairs whose bounds imply all others, if these pairs form a spanning tree."""
    n = len(matrix)
    needed = {
        (min(i, j), max(i, j))
        for i, j in _pairs(n)
        if all(matrix[i][k] + matrix[k][j] > matrix[i][j] for k in range(n) if k not in (i, j))
    }
    if len(needed) != n - 1:
        return None
    implied = [[0.0 if i == j else inf for j in range(n)] for i in range(n)]
    for i, j in needed:
        implied[i][j], implied[j][i] = matrix[i][j], matrix[j][i]
    return sorted(needed) if _closure(implied) == tuple(map(tuple, matrix)) else None


def _column_windows(matrix: Matrix) -> list[float] | None:
    """Each point's window, if all partners bound it alike."""
    n = len(matrix)
    columns = [{matrix[o][s] for o in range(n) if o != s} for s in range(n)]
    return [column.pop() for column in columns] if all(len(c) == 1 for c in columns) else None
