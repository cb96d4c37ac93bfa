"""The place of Kafka: topics as streams.  Not there yet, and refused in words."""

from typing import Any, NoReturn

from jobs.sources.common import Feed, SourceError


class KafkaSource:
    """Says that it does not exist."""

    endless = True
    keeps = True

    def __init__(self, feed: Feed, _spec: Any) -> None:
        self._feed = feed

    def check(self) -> None:
        self._refuse()

    def check_presence(self) -> None:
        self._refuse()

    def frame(self, *_: Any) -> NoReturn:
        self._refuse()

    def inspect(self, *_: Any) -> NoReturn:
        self._refuse()

    def damaged(self, *_: Any) -> NoReturn:
        self._refuse()

    def again(self, *_: Any) -> NoReturn:
        self._refuse()

    def count(self, *_: Any) -> NoReturn:
        self._refuse()

    def waiting(self, *_: Any) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise SourceError(
            f"stream {self._feed.name}: kafka is not supported yet; use files, delta or generator"
        )
