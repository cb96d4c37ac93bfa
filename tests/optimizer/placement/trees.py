"""Trees of operators to place: the CQ4 template of Ji's Table 2, and others at random."""

from random import Random

from optimizer.cost.fragments import Border, LogicalPlan, Operator

Shape = int | tuple["Shape", "Shape"]
"""Branches by number, and how they are joined."""

TABLE_2 = {
    2: (1, 2),
    5: ((1, 2), ((3, 4), 5)),
    8: (((((1, 2), ((3, 4), 5)), 6), 7), 8),
}
"""The only shapes that have the paper's counts."""

FREE = Border(0.0, 1.0, 0.0, 0.0)


def cq4(shape, random=None):
    """A select and an aggregate in each branch, the joins, and a project on top."""
    operators: list[Operator] = []

    def add(kind, *inputs):
        operators.append(drawn(f"{kind}{len(operators)}", kind, inputs, random or Random(1)))
        return len(operators) - 1

    def built(part):
        if isinstance(part, int):
            return add("aggregate", add("select", "plugs"))
        return add("join", *map(built, part))

    add("project", built(shape))
    return LogicalPlan(tuple(operators), border(random or Random(1)))


def drawn(name, kind, inputs, random, heavy=1.0):
    """An operator of random figures."""
    rates = tuple(random.uniform(0, 10) for _ in inputs)
    spark, db = random.choice([(1.5, 0.4), (0.3, 0.1), (0.1, 0.4)])
    return Operator(
        name, kind, inputs, rates, random.uniform(0, 10), 1.0,
        heavy * random.uniform(0, spark), heavy * random.uniform(0, db),
    )  # fmt: skip


def border(random):
    return Border(random.uniform(0, 0.3), 1.0, random.uniform(0, 0.05), random.uniform(0, 0.05))


def drawn_plan(random, most=8):
    """A random tree that keeps up or does not; some connected parts of it were measured."""
    heavy = random.choice([1.0, 5.0])
    operators: list[Operator] = []
    loose: list[int] = []
    for at in range(random.randint(1, most)):
        count = random.choice([0, 1, 1, 2])
        taken = [loose.pop(random.randrange(len(loose))) for _ in range(min(count, len(loose)))]
        operators.append(drawn(f"o{at}", "any", tuple(taken) or ("s",), random, heavy))
        loose.append(at)
    while len(loose) > 1:
        pair = loose.pop(0), loose.pop(0)
        operators.append(drawn(f"j{len(operators)}", "join", pair, random, heavy))
        loose.append(len(operators) - 1)
    plan = LogicalPlan(tuple(operators), border(random))
    parts = [mask for mask in range(1, 1 << len(plan)) if plan.connected(mask)]
    some = random.sample(parts, min(len(parts), random.choice([0, 2, 6])))
    measured = {part: random.uniform(0, 1.5) for part in some}
    return LogicalPlan(plan.operators, plan.border, measured)
