"""`midstream down`: ends what `midstream up` keeps running."""

from jobs import show
from jobs.commands.up import HOME, HomeOption


def down(*, home: HomeOption = HOME, json: show.Json = False) -> None:
    """End the jobs, Airflow and MLflow; what they have done so far is kept."""
    from jobs.services.home import Home
    from jobs.services.manage import stop

    with show.progress("ending everything"):
        ended = stop(Home.of(home))
    if json:
        show.as_json({"ended": ended})
    else:
        show.plain("Everything has ended." if ended else "Nothing was up.")
