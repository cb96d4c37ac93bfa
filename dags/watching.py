"""Waits for the end of a migration without a worker: the triggerer looks, and may be restarted."""

import asyncio
from collections.abc import AsyncIterator
from time import monotonic
from typing import Any

from airflow.sdk import BaseOperator, Context
from airflow.triggers.base import BaseTrigger, TriggerEvent

from dags.commands import Answer, RefusedError, command, read, tell, variables

EVERY = 1.0
"""Seconds between two looks."""

PATIENCE = 300.0
"""Seconds after which what could not be read all the time is not going to be."""


class MigrationTrigger(BaseTrigger):
    """Looks at a migration until it has ended; looking changes nothing, however often."""

    def __init__(self, file: str, migration: str) -> None:
        super().__init__()
        self.file = file
        self.migration = migration

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """As the triggerer makes it again, perhaps on another machine."""
        return "dags.watching.MigrationTrigger", {"file": self.file, "migration": self.migration}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """One event, when it has ended, or when nobody can tell."""
        seen, readable = 0, monotonic()
        while True:
            found, problem = await self._look()
            if not problem:
                readable = monotonic()
            elif monotonic() > readable + PATIENCE:
                yield TriggerEvent({"id": self.migration, "phase": "out of sight", "events": [],
                                    "means": problem})  # fmt: skip
                return
            for event in found.get("events", ())[seen:]:
                self.log.info("%s", line(event))
            seen = len(found.get("events", ()))
            if found.get("ended"):
                yield TriggerEvent(found)
                return
            await asyncio.sleep(EVERY)

    async def _look(self) -> tuple[dict[str, Any], str]:
        """Its status; none where that cannot be read just now, and why not."""
        process = await asyncio.create_subprocess_exec(
            *command("migration", "status", "--", self.file, self.migration),
            env=variables("migration"), stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        out, _ = await process.communicate()
        answer = Answer(process.returncode or 0, read(out))
        if answer.code == 0 and answer.data is not None:
            return answer.data, ""
        self.log.warning("the status cannot be read just now: %s", answer.problem)
        return {}, answer.problem


def line(event: dict[str, Any]) -> str:
    """What happened to a migration."""
    detail = f": {event['detail']}" if event["detail"] else ""
    return f"{event['at']} before batch {event['batch']}: {event['phase']}{detail}"


class WatchOperator(BaseOperator):
    """Succeeds once the migration is done, and fails, saying why, if it ends in another way."""

    template_fields = ("file", "migration")

    def __init__(self, *, file: str, migration: str, **others: Any) -> None:
        super().__init__(**others)
        self.file = file
        self.migration = migration

    def execute(self, context: Context) -> None:  # noqa: ARG002
        """Hand over to the triggerer."""
        tell("waiting for the end of %s", self.migration)
        self.defer(trigger=MigrationTrigger(self.file, self.migration), method_name="ended")

    def ended(self, context: Context, event: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002
        """Say how it ended."""
        if event["phase"] != "done":
            why = event["events"][-1]["detail"] if event["events"] else ""
            raise RefusedError(f"{event['id']} is {event['phase']}: {why or event['means']}")
        return event
