"""State matching: what of the old plan's states serves the new plan, and how (Zhu 12.1, 13, 14).

Zhu's bit-map of predicates and columns (13.3.2) falls out of the states' identity: equal keys are
kept; of two states over the same inputs, what was applied to each says what is left to do.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from optimizer.explain import duration
from optimizer.identity import identity, retention, stateful
from optimizer.migration.steps import Fill, How, Refused
from optimizer.plan import (
    Combine,
    GroupBy,
    Join,
    Node,
    Plan,
    Project,
    Select,
    applied_by,
    tree_of,
    walk,
)
from optimizer.query import ColumnRef, Predicate, Query

ELSE = "parallel-track can do it"
"""What to do where states cannot be made from states."""


@dataclass(frozen=True)
class Context:
    """What else the job keeps, and for whom."""

    available: Mapping[str, int] = field(default_factory=dict)
    """States that other queries keep: how long, in microseconds."""
    partial: Mapping[str, str] = field(default_factory=dict)
    """States whose older rows hold only what one query needs: its name."""
    query: str = ""
    """Whose plan is changed."""


@dataclass(frozen=True)
class Matching:
    """What becomes of each state; or why it cannot be done."""

    kept: tuple[str, ...] = ()
    fills: tuple[Fill, ...] = ()
    """Lower ones first."""
    dropped: tuple[str, ...] = ()
    refused: str | None = None


@dataclass(frozen=True)
class Recipe:
    """A fill in terms of operators: `target` computed from the rows of the `sources`."""

    how: How
    target: Node
    sources: tuple[Node, ...]
    """For a join its parts in their order, otherwise one state of the old plan."""
    selects: tuple[Predicate, ...] = ()
    """What the rows must still satisfy."""
    padded: tuple[ColumnRef, ...] = ()
    """Columns that the source lacks, and that nothing will read: NULL."""
    stuffed: tuple[Predicate, ...] = ()
    """What the rows satisfy already although the target does not ask for it."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The sources by key."""
        return tuple(identity(source).key for source in self.sources)

    @property
    def exact(self) -> bool:
        """Whether it makes all of the source's rows what the target's key says."""
        return not (self.padded or self.stuffed)


@dataclass(frozen=True)
class States:
    """A plan's states by key, lower ones first: where each is read, and for how long."""

    nodes: Mapping[str, tuple[Node, ...]]
    retention: Mapping[str, int]

    @classmethod
    def of(cls, plan: Plan) -> "States":
        """Those of that plan; inputs from one stream may share a state."""
        nodes: dict[str, tuple[Node, ...]] = {}
        kept: dict[str, int] = {}
        for node in stateful(plan.root):
            key = identity(node).key
            nodes[key] = (*nodes.get(key, ()), node)
            kept[key] = max(kept.get(key, 0), retention(plan.query, node))
        return cls(nodes, kept)


def name(node: Node) -> str:
    """What people call the state."""
    return "the group-by" if isinstance(node, GroupBy) else str(tree_of(node))


# --- matching ------------------------------------------------------------------------------------


def check(old: Plan, new: Plan) -> None:
    """Refuse what is no migration at all."""
    if old.query != new.query:
        raise Refused("the two plans are not of one query")
    if old == new:
        raise Refused("the job runs this plan already")


def match(old: Plan, new: Plan, context: Context | None = None) -> Matching:
    """What becomes of each state if the states are made from states."""
    try:
        return _Matcher.of(old, new, context or Context()).match()
    except Refused as why:
        return Matching(refused=str(why))


def shared(old: Plan, new: Plan, context: Context) -> Matching:
    """What is there already and what is not, whatever its older rows hold (parallel track)."""
    check(old, new)
    before, after = States.of(old), States.of(new)
    there = before.nodes.keys() | context.available.keys()
    return Matching(
        kept=tuple(key for key in after.nodes if key in there),
        dropped=_dropped(before, after, context),
    )


def young(old: Plan, new: Plan, context: Context) -> dict[Node, Fill | None]:
    """How a parallel track's states get the rows of before that are as young as its beginning.

    Lower ones first; none where such rows cannot be made, or those that are there may lack some.
    """
    matcher = _Matcher.of(old, new, context)
    there = matcher.before.nodes.keys() | context.available.keys()
    found: dict[Node, Fill | None] = {}
    for key, nodes in matcher.after.nodes.items():
        try:
            if key not in there:
                found[nodes[0]] = matcher.fill(key)
            elif key in context.partial:
                found[nodes[0]] = None
        except Refused:
            found[nodes[0]] = None
    return found


def recipe(old: Plan, new: Plan, fill: Fill) -> Recipe:
    """How to carry out a fill of a migration between those plans."""
    for found in _Matcher.of(old, new, Context()).recipes(fill.state):
        if isinstance(found, Recipe) and (found.how, found.keys) == (fill.how, fill.sources):
            return found
    raise Refused(f"{fill.state} is not made from {', '.join(fill.sources)} between these plans")


def _dropped(before: States, after: States, context: Context) -> tuple[str, ...]:
    needed = after.nodes.keys() | context.available.keys()
    return tuple(key for key in before.nodes if key not in needed)


@dataclass(frozen=True)
class _Matcher:
    query: Query
    before: States
    after: States
    context: Context
    partial: set[str]
    """States that hold, or will hold, only what this query needs."""

    @classmethod
    def of(cls, old: Plan, new: Plan, context: Context) -> "_Matcher":
        check(old, new)
        partial = {key for key, owner in context.partial.items() if owner == context.query}
        return cls(new.query, States.of(old), States.of(new), context, partial)

    def match(self) -> Matching:
        kept, fills = [], []
        for key in self.after.nodes:
            if key in self.before.nodes or key in self.context.available:
                self._check_kept(key)
                kept.append(key)
            else:
                fills.append(self.fill(key))
        dropped = _dropped(self.before, self.after, self.context)
        return Matching(tuple(kept), tuple(fills), dropped)

    def _check_kept(self, key: str) -> None:
        """Refuse a state that is there but lacks rows: one key cannot have two contents."""
        nodes, called = self.after.nodes[key], name(self.after.nodes[key][0])
        have = max(self.before.retention.get(key, 0), self.context.available.get(key, 0))
        need, owner = self.after.retention[key], self.context.partial.get(key)
        if have < need:
            raise Refused(
                f"the state of {called} is kept for {duration(have)} only, "
                f"the new plan needs {duration(need)}; {ELSE}"
            )
        if owner is not None and (owner != self.context.query or key in self._below_shared):
            raise Refused(
                f"the state of {called} still holds only what the query {owner} needs of it; {ELSE}"
            )
        known = {node.aliases for node in self.before.nodes.get(key, ())}
        if owner is not None and not {node.aliases for node in nodes} <= known:
            raise Refused(
                f"the state of {called} still holds only what another input needs; {ELSE}"
            )

    @cached_property
    def _below_shared(self) -> frozenset[str]:
        """States of the new plan that are read to maintain one which others read as well."""
        shared = (
            node
            for key, nodes in self.after.nodes.items()
            if key in self.context.available or len(nodes) > 1
            for node in nodes
        )
        return frozenset(identity(below).key for node in shared for below in stateful(node))

    # --- making states ---------------------------------------------------------------------------

    def fill(self, key: str) -> Fill:
        """The one that takes least: from the state over the same inputs, else from lower ones."""
        found = list(self.recipes(key))
        recipes = sorted((one for one in found if isinstance(one, Recipe)), key=_effort)
        made = [self._as_fill(key, one) for one in recipes]
        for_all = len(self.after.nodes[key]) > 1 or key in self._below_shared
        for fill in made:
            if not (for_all and fill.partial):
                if fill.partial:
                    self.partial.add(key)
                return fill
        if made:
            why = "it would lack rows that others need of it, or of what is made of it"
        else:
            why = next(one for one in found if isinstance(one, str))
        called = name(self.after.nodes[key][0])
        raise Refused(f"the state of {called} cannot be made: {why}; {ELSE}")

    def _as_fill(self, key: str, made: Recipe) -> Fill:
        known = self.after if made.how is How.JOIN else self.before
        whole = made.exact and all(
            source not in self.partial and known.retention[source] >= self.after.retention[key]
            for source in made.keys
        )
        return Fill(key, made.how, made.keys, partial=not whole)

    def recipes(self, key: str) -> Iterator[Recipe | str]:
        """All ways to make that state of the new plan, and why others are none."""
        for target in self.after.nodes.get(key, ()):
            yield self._derived(target)
            if isinstance(base := core(target), Join):
                selects = _applied(target) - _applied(base)
                yield Recipe(How.JOIN, target, base.parts, self._ordered(selects))

    def _derived(self, target: Node) -> Recipe | str:
        """From the old plan's state over the same inputs (Zhu 13.3.2), or why not.

        A column that the old plan dropped is padded unless a select that the new plan has yet to
        apply reads it: the rows have passed that select, but would not pass it again.  Nor would
        those that were padded before.
        """
        source = self._over(target.aliases)
        if source is None:
            return "the running plan keeps nothing like it"
        before, after = _combined(source), _combined(target)
        how, columns = How.DERIVE, target.columns
        if before - after:
            if not _countable(source):
                lost = min(before - after)
                return f"the running plan has combined {lost}, no tuple is left of it"
            how = How.EXPAND
        if after - before:
            base = core(target)
            if not isinstance(base, Combine):
                return f"the running plan has not combined {min(after - before)}"
            how, columns = How.COMBINE, base.input.columns
        applied, asked = _applied(source), _applied(target)
        lacking = set(columns) - set(source.columns)
        read = self._read_above(target, applied & asked)
        gone = {
            "the running plan has": lacking,
            "a plan before may have": self._perhaps_padded(source),
        }
        for who, dropped in gone.items():
            if traps := dropped & read:
                return f"{who} dropped {min(traps)}, which is yet to be selected on"
        return Recipe(
            how,
            target,
            (source,),
            self._ordered(asked - applied),
            tuple(sorted(lacking)),
            self._ordered(applied - asked),
        )

    def _perhaps_padded(self, source: Node) -> set[ColumnRef]:
        """Columns that nothing above reads any more: NULL may stand for them in older rows.

        A state that is partial does not say why it is.
        """
        if identity(source).key not in self.partial:
            return set()
        return set(source.columns) - self._read_above(source, _applied(source))

    def _read_above(self, node: Node, applied: frozenset[Predicate]) -> frozenset[ColumnRef]:
        """What is read of its rows by the predicates not applied yet, and by all outside."""
        later = (p for p in self.query.predicates if p not in applied)
        return self.query.needed(node.aliases).union(*(p.expression.columns for p in later))

    def _over(self, aliases: frozenset[str]) -> Node | None:
        nodes = (node for same in self.before.nodes.values() for node in same)
        fit = (node for node in nodes if node.aliases == aliases)
        return next((node for node in fit if not isinstance(node, GroupBy)), None)

    def _ordered(self, predicates: frozenset[Predicate]) -> tuple[Predicate, ...]:
        return tuple(p for p in self.query.predicates if p in predicates)


def core(node: Node) -> Node:
    """The operator below the selects and projects."""
    while isinstance(node, Select | Project):
        node = node.input
    return node


def _applied(node: Node) -> frozenset[Predicate]:
    return frozenset(predicate for below in walk(node) for predicate in applied_by(below))


def _combined(node: Node) -> frozenset[str]:
    return frozenset(below.alias for below in walk(node) if isinstance(below, Combine))


def _countable(node: Node) -> bool:
    """Whether its rows are combined tuples of one input that agree in every column."""
    base = core(node)
    return isinstance(base, Combine) and not base.partials


def _effort(made: Recipe) -> tuple[bool, bool, int]:
    """A join is more than a scan; a state for all is more than one for this query."""
    return made.how is How.JOIN, not made.exact, len(made.selects) + len(made.padded)
