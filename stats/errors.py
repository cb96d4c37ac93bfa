"""What statistics tell a person when they cannot be read or written."""


class StatsError(Exception):
    """Tables of statistics that are not what they should be: which, why, and what to do."""
