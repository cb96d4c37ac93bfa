"""How `gather_statistics` tells `reoptimize` of which job there is news."""

from airflow.sdk import Asset, AssetAlias

NEWS = AssetAlias("statistics")
"""What is published: the statistics of whichever job it is about."""

_NAME = "statistics of "


def asset(job: str) -> Asset:
    """The statistics of a job."""
    return Asset(name=f"{_NAME}{job}", uri=f"midstream://{job}/statistics")


def job_of(name: str) -> str:
    """Whose statistics an asset's name says it is."""
    return name.removeprefix(_NAME)
