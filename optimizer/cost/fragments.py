"""What operators need on Spark, and connected parts of them in the database (Ji 3 and 5.1).

A part in the database is one statement: one operator, a black box to the stream engine.  What it
needs does not add up from what its pieces would need: each of these pays its own transfers and its
own statement, and what was measured for exactly one part says nothing of any other.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import fsum

from optimizer.cost.feasibility import Utilisation

SPARK, DB = "spark", "db"

Mask = int
"""A set of a plan's operators: bit i stands for the i-th.  A placement is those in the database."""


@dataclass(frozen=True)
class Operator:
    """An operator of a logical plan, with its figures wherever it runs."""

    name: str
    kind: str
    inputs: tuple[int | str, ...]
    """What feeds it: the position of an operator before it, or the name of a stream."""
    rates: tuple[float, ...]
    """Of its inputs, in their order."""
    rate: float
    size: float
    spark: float
    """Seconds a second that it needs on Spark."""
    db: float
    """Seconds a second that it adds to a statement of the database."""
    only: str = ""
    """The place that it was given; otherwise it may run anywhere."""

    @cached_property
    def below(self) -> tuple[int, ...]:
        """The operators that feed it."""
        return tuple(one for one in self.inputs if isinstance(one, int))

    @cached_property
    def from_streams(self) -> float:
        """Tuples a second that it reads from streams."""
        pairs = zip(self.inputs, self.rates, strict=True)
        return sum(rate for one, rate in pairs if isinstance(one, str))

    def allows(self, place: str) -> bool:
        """Whether it may run there."""
        return self.only in ("", place)


@dataclass(frozen=True)
class Border:
    """What a part in the database costs besides its operators."""

    statement: float
    """Seconds that one execution takes whatever it reads."""
    executions: float
    """Of the statement, a second."""
    enter: float
    """Seconds for a tuple that goes in."""
    leave: float
    """Seconds for a tuple that comes back."""


@dataclass(frozen=True)
class Part:
    """A physical operator: one on Spark, or what is one statement in the database."""

    operators: tuple[int, ...]
    place: str
    utilisation: float
    transfer_in: float | None = 0.0
    """None, like the two below, where only the whole was measured."""
    statement: float | None = 0.0
    transfer_out: float | None = 0.0


@dataclass(frozen=True)
class LogicalPlan:
    """The tree of a query's operators, inputs first and the root last, and what borders cost."""

    operators: tuple[Operator, ...]
    border: Border
    measured: Mapping[Mask, float] = field(default_factory=dict)
    """What exactly these operators were seen to need as one part of the database."""

    def __post_init__(self) -> None:
        read = [below for one in self.operators for below in one.below]
        if sorted(read) != list(range(len(self.operators) - 1)):
            raise ValueError("each operator but the last must feed exactly one")
        if any(below >= at for at, one in enumerate(self.operators) for below in one.below):
            raise ValueError("an operator stands before its inputs")

    def __len__(self) -> int:
        return len(self.operators)

    @cached_property
    def everywhere(self) -> Mask:
        """The placement that has all of it in the database."""
        return (1 << len(self)) - 1

    @cached_property
    def fixed(self) -> Mask:
        """The operators whose place is given."""
        return sum(1 << at for at, one in enumerate(self.operators) if one.only)

    @property
    def space(self) -> int:
        """How many placements there are."""
        return 1 << len(self) - self.fixed.bit_count()

    def obeying(self, mask: Mask) -> Mask:
        """That placement, but for the operators whose place is given."""
        given = sum(1 << at for at, one in enumerate(self.operators) if one.only == DB)
        return mask & ~self.fixed | given

    def price(self, mask: Mask) -> Utilisation:
        """What a placement needs."""
        work = [part.utilisation for part in self.parts(mask)]
        return Utilisation(max(work), fsum(work))

    def parts(self, mask: Mask) -> list[Part]:
        """The physical operators of a placement, inputs first."""
        found: list[Part] = []
        open_parts: list[Mask] = []
        for at, one in enumerate(self.operators):
            part = 1 << at if mask >> at & 1 else 0
            for below in one.below:
                if part and open_parts[below]:
                    part |= open_parts[below]
                elif open_parts[below]:
                    found.append(self.database_part(open_parts[below]))
            open_parts.append(part)
            if not part:
                found.append(Part((at,), SPARK, one.spark, statement=one.spark))
        if open_parts[-1]:
            found.append(self.database_part(open_parts[-1]))
        return sorted(found, key=lambda part: part.operators[-1])

    def database_part(self, part: Mask) -> Part:
        """What a connected part needs as one statement."""
        positions = tuple(at for at in range(len(self)) if part >> at & 1)
        if part in self.measured:
            return Part(positions, DB, self.measured[part], None, None, None)
        enter = fsum(self.entering(at, part) for at in positions) * self.border.enter
        work = [self.border.statement * self.border.executions]
        statement = fsum(work + [self.operators[at].db for at in positions])
        leave = self.operators[positions[-1]].rate * self.border.leave
        return Part(positions, DB, fsum((enter, statement, leave)), enter, statement, leave)

    def entering(self, at: int, part: Mask) -> float:
        """Tuples a second that an operator of a part reads from outside of it."""
        one = self.operators[at]
        outside = (self.operators[below].rate for below in one.below if not part >> below & 1)
        return one.from_streams + sum(outside)

    def connected(self, part: Mask) -> bool:
        """Whether these operators are one piece of the tree."""
        held = [at for at in range(len(self)) if part >> at & 1]
        fed = {below for at in held for below in self.operators[at].below}
        return sum(at not in fed for at in held) == 1

    def notation(self, mask: Mask = 0) -> str:
        """The plan as text, `@db` behind what runs in the database."""
        texts: list[str] = []
        for at, one in enumerate(self.operators):
            inputs = (texts[below] if isinstance(below, int) else below for below in one.inputs)
            texts.append(f"{one.name}({' '.join(inputs)})" + ("@db" if mask >> at & 1 else ""))
        return texts[-1]

    def order(self, mask: Mask) -> Mask:
        """Where a placement stands among all, sorted by their notations."""
        return int(f"{mask:0{len(self)}b}"[::-1], 2)
