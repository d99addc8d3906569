"""What was acknowledged with one request, while it is being written."""

from __future__ import annotations

from collections.abc import Collection

from gevent.event import AsyncResult
from kafka.errors import InvalidRequestError, UnknownError, UnknownTopicIdError, UnknownTopicOrPartitionError

from dafka.broker.interface.share import SharedRecords, SharePlace, ShareRequest
from dafka.broker.share import checks
from dafka.broker.share.delivery import Delivery
from dafka.broker.share.places import Places
from dafka.broker.share.states import Saved
from dafka.hub.turns import Pace


class Acknowledging:
    """The acknowledgements of one request. Hub side; methods wait as green threads.

    A fetch that comes with them looks first at what there is without them, as in Kafka: until :meth:`free`
    nothing is set free.
    """

    def __init__(self, places: Places) -> None:
        self._places = places
        self.answers: dict[SharePlace, SharedRecords] = {}
        """By partition; an error of writing is known only in the end."""
        self._begun: dict[SharePlace, tuple[Delivery, AsyncResult | None]] = {}
        self._held: list[Delivery] = []

    def begin(self, request: ShareRequest) -> None:
        """Carry out what a request acknowledges, and begin to write it."""
        answers = self.answers
        pace, is_any = Pace(), False
        for place, batches in pace.over(request.acknowledgements.items(), every=1):
            delivery, error, detail = self._places.open(request.group, place), None, ""
            if delivery is UnknownTopicIdError:
                answers[place] = SharedRecords(None, UnknownTopicIdError)
                continue
            try:
                checks.check_acknowledgements(batches, request.is_renewal)
            except InvalidRequestError as wrong:
                answers[place] = SharedRecords(None, InvalidRequestError, detail=checks.words(wrong))
                continue
            is_any = is_any or self._places.missing(place) is None
            if isinstance(delivery, Delivery):
                delivery.hold()
                self._held.append(delivery)
                error, detail = delivery.acknowledge(request.member_id, batches)
                if error is None and delivery.saved is not None:
                    pace.rest()  # to have it written may take as long again
                    begun = delivery.saved.begin()  # or finds that somebody else has had it
                    self._begun[place] = delivery, begun
            else:
                error = UnknownTopicOrPartitionError if delivery is UnknownError else delivery
            answers[place] = SharedRecords(None, error, detail=detail)
        for place in pace.over(request.bare):
            error = self._places.missing(place)
            if place not in answers and (error is not None or is_any):
                answers[place] = SharedRecords(None, error)

    def free(self) -> None:
        """Let what is on disk set free what it does; has to be called in any case."""
        held, self._held = self._held, []
        for delivery in held:
            delivery.let_go()

    def settled(self) -> Collection[Delivery]:
        """The share partitions of what was carried out, when all is on disk."""
        self.free()
        for place, (_, outcome) in self._begun.items():
            failed = Saved.end(outcome)
            if failed is not None:
                self.answers[place] = SharedRecords(None, failed)
        return [delivery for delivery, _ in self._begun.values()]

    def end(self) -> dict[SharePlace, SharedRecords]:
        """The answers, when all is on disk."""
        self.settled()
        return self.answers
