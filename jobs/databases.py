"""What files say of the database beside Spark: what its statements and its border cost."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from jobs.documents import Document, Loc, Model
from jobs.errors import InputError
from jobs.words import unknown
from optimizer.cost.fragments import Border, LogicalPlan, Mask
from optimizer.workload import UnitCosts

NotNegative = Annotated[float, Field(strict=True, ge=0)]


class FragmentFields(Model):
    """What was measured of some connected operators as one statement of the database."""

    operators: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        description="the names of the operators"
    )
    utilisation: NotNegative = Field(description="seconds a second, transfers included")


class DatabaseFields(Model):
    """What a part in the database costs besides its operators."""

    statement: NotNegative = Field(description="seconds that one execution takes")
    executions: NotNegative = 1.0
    """Of each statement, a second."""
    into: NotNegative = Field(alias="in", description="seconds for a tuple that goes in")
    out: NotNegative = Field(description="seconds for a tuple that comes back")
    fragments: tuple[FragmentFields, ...] = ()

    @property
    def border(self) -> Border:
        """As the optimizer counts it."""
        return Border(self.statement, self.executions, self.into, self.out)


class UnitDatabaseFields(DatabaseFields):
    """The same with what the database's units of work cost, where they are not Spark's."""

    join: NotNegative | None = None
    insert: NotNegative | None = None
    delete: NotNegative | None = None
    scan: NotNegative | None = None
    probe: NotNegative | None = None
    match: NotNegative | None = None
    write: NotNegative | None = None
    write_byte: NotNegative | None = None

    def units(self, spark: UnitCosts) -> UnitCosts:
        """Spark's where nothing else is given."""
        given = {name: getattr(self, name) for name in vars(spark) if name != "statement"}
        return replace(spark, **{name: cost for name, cost in given.items() if cost is not None})


def measured(
    fragments: Sequence[FragmentFields], plan: LogicalPlan, document: Document
) -> Mapping[Mask, float]:
    """What was measured, by the operators of the plan."""
    found: dict[Mask, float] = {}
    for number, fragment in enumerate(fragments):
        loc = ("db", "fragments", number, "operators")
        part = _part(fragment.operators, plan, document, loc)
        if not plan.connected(part):
            raise InputError(
                "these are not one piece of the plan: they would be several statements",
                document.where(loc),
            )
        if part in found:
            raise InputError("these operators are measured above already", document.where(loc))
        found[part] = fragment.utilisation
    return found


def _part(names: Sequence[str], plan: LogicalPlan, document: Document, loc: Loc) -> Mask:
    positions = {one.name: at for at, one in enumerate(plan.operators)}
    part = 0
    for number, name in enumerate(names):
        where = document.where((*loc, number))
        if name not in positions:
            raise InputError(unknown("operator", name, positions), where)
        if part >> positions[name] & 1:
            raise InputError(f"operator {name!r} is there twice", where)
        part |= 1 << positions[name]
    return part
