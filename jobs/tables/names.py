"""Names of a job's tables, as they lie below its storage; results may lie elsewhere."""

CONTROL = "control/"
DECISIONS = f"{CONTROL}decisions"
PROGRESS = f"{CONTROL}progress"
REQUESTS = f"{CONTROL}requests"
MIGRATIONS = f"{CONTROL}migrations"

STATE = "state/"


def state_table(key: str) -> str:
    """The rows of a state, by the key of its identity."""
    return f"{STATE}{key}"


def result_table(query: str) -> str:
    """The results of a query."""
    return f"out/{query}"


def late_table(stream: str) -> str:
    """Rows of a stream that came after the watermark had passed them."""
    return f"late/{stream}"


def rejected_table(stream: str) -> str:
    """Rows of a stream that do not fit its schema."""
    return f"rejected/{stream}"
