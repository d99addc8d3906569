"""The request of each API with very many items in each of its lists, on a broker with as many topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

from broker.server.attack_scene import (
    SMALL,
    Outcome,
    Scene,
    measured,
    requests_for,
    sending_anything,
    topic_of,
)
from broker.server.widened import Wide, wide_requests

from dafka import Broker
from dafka.broker.interface.topics import TopicSpec
from dafka.hub.hub import get_hub
from dafka.hub.turns import next_turn

TOPIC = "wide"
FEW = 3  # items of the requests that have everything imported and compiled


class Everything:
    """A broker with a topic of ``count`` partitions and ``topics`` others, and all that it can be asked.

    ``wanted``: requests, by their names; ``newest``: in their newest versions, or in the oldest;
    ``warmed_up``: they have been answered in this process.
    """

    def __init__(
        self,
        broker: Broker,
        count: int,
        topics: int,
        wanted: Callable[[str], bool],
        newest: bool,
        warmed_up: bool = False,
    ) -> None:
        self.scene = Scene(broker, count, count, TOPIC)
        self.scene.ask(topic_of(SMALL, 1), 5)
        for request, version in requests_for(TOPIC, count):
            self.scene.ask(request, version)
        self._which = wanted, newest
        core = broker._running.core  # type: ignore[union-attr]
        names = [f"{TOPIC}-{number}" for number in range(topics)]
        hub = get_hub()
        hub.run(core.create_topics, dict.fromkeys(names, TopicSpec(1)))
        found = hub.run(core.metadata, [TOPIC, *names]).topics
        self._ids: list[UUID] = [found[name].topic_id for name in (TOPIC, *names)]
        for wide in () if warmed_up else self.requests(FEW):
            sending_anything(self.scene, wide.frame)()

    def requests(self, count: int = 0) -> Iterator[Wide]:
        """One for each list of each API, with so many items or as many as there are partitions."""
        return wide_requests(TOPIC, self._ids, count or self.scene.partitions, *self._which)

    def outcome(self, wide: Wide) -> Outcome:
        """The effects of a request, also for a bystander."""
        return measured(self.scene, lambda scene: sending_anything(scene, wide.frame))

    def turn(self, wide: Wide) -> float:
        """The longest turn that a request makes, in seconds of processor time."""
        hub = get_hub()
        hub.run(hub.turns.reset)
        sending_anything(self.scene, wide.frame)()
        for _ in range(3):  # its connection is closed, too
            hub.run(next_turn)
        return hub.turns.longest_cpu


@contextmanager
def everything(
    count: int,
    topics: int,
    wanted: Callable[[str], bool] = lambda _: True,
    newest: bool = True,
    warmed_up: bool = False,
) -> Iterator[Everything]:
    """With a broker in a temporary folder."""
    with Broker(listen="127.0.0.1:0") as broker:
        yield Everything(broker, count, topics, wanted, newest, warmed_up)
