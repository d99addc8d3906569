"""A consumer for tests that read what there is to its end, however busy the machine is."""

from __future__ import annotations

import time

from timing import SECONDS

from compat.kafka import KafkaConsumer


class PatientConsumer(KafkaConsumer):
    """Iterating ends when nothing has come in time and nothing is left to come.

    On a busy machine the timeout may be over before the broker has had a turn.
    """

    def _begin_next_chunk(self) -> None:
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                return super()._begin_next_chunk()
            except StopIteration:
                if not self._is_behind() or time.monotonic() > deadline:
                    raise

    def _is_behind(self) -> bool:
        if self._closed or (self._subscription.subscription is None and not self.assignment()):
            return False
        reading = self.assignment() - self.paused()
        positions = {one: self._subscription.assignment[one].position for one in reading}
        if not positions:  # there may be nothing to read, or its group has not given it anything yet
            return not self.paused() and self._has_topics()
        ends = self.end_offsets(positions)
        return any(where is None or where.offset != ends[one] for one, where in positions.items())

    def _has_topics(self) -> bool:
        return any(self.partitions_for_topic(topic) for topic in self.subscription() or ())
