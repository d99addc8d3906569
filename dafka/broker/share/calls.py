"""Share groups as the broker answers for them: their members, their sessions, and how far they have come."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from kafka.errors import (
    BrokerResponseError,
    GroupIdNotFoundError,
    InvalidRequestError,
    InvalidShareSessionEpochError,
    NonEmptyGroupError,
    ShareSessionNotFoundError,
    UnknownError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.groups.modern.member import JOIN_EPOCH
from dafka.broker.groups.modern.topics import TableTopics
from dafka.broker.groups.registry import Groups
from dafka.broker.interface.broker import Error, TopicPartition
from dafka.broker.interface.groups import GroupType
from dafka.broker.interface.share import (
    CLOSE_SESSION,
    OPEN_SESSION,
    SharedRecords,
    ShareFetched,
    ShareFetchLimits,
    ShareGroupDescription,
    ShareHeartbeat,
    ShareHeartbeatAnswer,
    ShareInterface,
    ShareOffsets,
    ShareOutcome,
    SharePlace,
    ShareRequest,
    ShareStandings,
)
from dafka.broker.records.leader_epochs import LeaderEpochs
from dafka.broker.share import checks
from dafka.broker.share.acknowledging import Acknowledging
from dafka.broker.share.delivery import Deliveries, Delivery
from dafka.broker.share.fetching import ShareFetch
from dafka.broker.share.group import ShareGroup
from dafka.broker.share.kept import FORMAT, SavedGroup, SavedMember
from dafka.broker.share.offset_changes import OffsetChanges
from dafka.broker.share.places import Places
from dafka.broker.share.progress import Progress
from dafka.broker.share.releasing import Releasing
from dafka.broker.share.sessions import SessionKey, ShareSession, ShareSessions
from dafka.broker.share.settings import SettingsTable
from dafka.broker.share.states import States
from dafka.broker.share.targets import Targets
from dafka.broker.topics.table import Partition, Topic, TopicTable
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace


class ShareCalls(ShareInterface):
    """The share groups of one broker. Hub side; methods wait as green threads."""

    def __init__(
        self,
        hub: Hub,
        groups: Groups,
        topics: TopicTable,
        epochs: LeaderEpochs,
        states: States,
        settings: SettingsTable,
        deliveries: Deliveries,
        stopped: Callable[[], object],
        check_on: Callable[[], object],
    ) -> None:
        """``stopped()`` raises what ends waiting calls after :meth:`close`; ``check_on()``, what is answered
        while such groups are off."""
        self._hub = hub
        self._groups = groups
        self._topics = topics
        self._states = states
        self._settings = settings
        self._deliveries = deliveries
        self._stopped = stopped
        self._check_on = check_on
        self._progress = Progress(topics, epochs, states, settings, deliveries)
        self._sessions = ShareSessions(lambda: settings.sessions)
        self._targets = Targets(hub, groups)
        self._waiting: set[ShareFetch] = set()
        self._releasing = Releasing(hub, deliveries)
        self._changes = OffsetChanges(topics, states, deliveries)
        self._places = Places(groups, topics, states, deliveries)
        groups.revive(GroupType.SHARE, self._new_group, FORMAT, self._restoring)

    def close(self) -> None:
        """End all waiting calls."""
        self._deliveries.close()
        for fetch in list(self._waiting):
            fetch.abandon()

    # -- members ---------------------------------------------------------------------------------------

    def share_heartbeat(self, heartbeat: ShareHeartbeat) -> ShareHeartbeatAnswer:
        try:
            self._check_on()
            checks.check_heartbeat(heartbeat)
            group = self._group_of(heartbeat)
        except BrokerResponseError as error:
            return ShareHeartbeatAnswer(type(error), checks.words(error))
        settings = self._settings.of(heartbeat.group)
        try:
            try:
                group.interval = settings.interval
                group.receive(self._groups.clock(), heartbeat, settings.session, self._settings.size)
            finally:
                self._groups.changed(heartbeat.group, group)
            if heartbeat.member_epoch >= JOIN_EPOCH:
                self._targets.renew(group)
                self._changes.begin(group, lambda: self._groups.get(group.name) is group)
            self._targets.wait(group, heartbeat.member_id)
            interval = group.come_again(self._groups.clock(), heartbeat.member_id, settings.heartbeat)
            answer = group.answer(heartbeat, interval)
            self._groups.changed(heartbeat.group, group)
            self._groups.saved(heartbeat.group)
            return answer
        except BrokerResponseError as error:
            return ShareHeartbeatAnswer(type(error), checks.words(error))

    def _group_of(self, heartbeat: ShareHeartbeat) -> ShareGroup:
        name = heartbeat.group
        if heartbeat.member_epoch == JOIN_EPOCH:
            self._groups.check_joins(name)
        found = self._groups.get(name)
        if isinstance(found, ShareGroup) and not found.dead:
            return found
        if self._groups.is_offsets(name) if found is None else not found.dead:
            raise GroupIdNotFoundError(f"Group {name} is not a share group.")
        if heartbeat.member_epoch != JOIN_EPOCH:
            raise GroupIdNotFoundError(f"Share group {name} not found.")
        return self._create(name)

    def _create(self, name: str) -> ShareGroup:
        self._groups.check_room()
        group = self._new_group(name)
        self._groups.put(name, group)
        return group

    def _new_group(self, name: str, epoch: int = 0, behind: int = 0) -> ShareGroup:
        group = ShareGroup(self._groups.clock(), TableTopics(self._topics), self._gone, epoch, name)
        group.go_on(behind)
        return group

    def _restoring(
        self, name: str, group: ShareGroup, whole: SavedGroup, members: Sequence[SavedMember]
    ) -> Iterator[None]:
        return group.restoring(self._groups.clock(), self._settings.of(name).session, whole, members)

    def _gone(self, group: ShareGroup, member_id: str) -> None:
        """A member left or was silent for too long.

        As in Kafka its session goes on as long as its connection: the last acknowledgements may come after
        the heartbeat by which it leaves.
        """
        key = (group.name, member_id)
        if not self._sessions.is_connected(key):
            self._end(key)
        if not group.members:
            self._hub.spawn(self._retire, group.name)

    def _retire(self, name: str) -> None:
        """Keep nothing in memory of a group without members."""
        for delivery in Pace().over(self._deliveries.of_group(name), every=1):
            if delivery.saved is not None:
                delivery.saved.idle()
            found = self._groups.get(name)  # which may have members again
            if (found is None or not found.occupied) and not delivery.is_used:
                self._deliveries.drop(delivery)

    def _end(self, key: SessionKey) -> None:
        """End a session, and have what its member has acquired given back."""
        session = self._sessions.close(key)
        if session is not None:
            for fetch in list(session.fetches):
                fetch.abandon()
            self._releasing.begin(key, session.places)
            self._hub.spawn(self._ended, key)

    def _ended(self, key: SessionKey) -> None:
        """A session has ended; it may have been the last one of a group without members."""
        self._releasing.wait(key)
        found = self._groups.get(key[0])
        if found is None or not found.occupied:
            self._retire(key[0])

    def forget_connection(self, connection: object) -> None:
        for key in self._sessions.of_connection(connection):
            self._end(key)

    def switched_off(self) -> None:
        """All sessions end, and what was acquired is forgotten; waits as a green thread."""
        self._sessions.close_all()
        self._deliveries.drop_all()

    # -- records ---------------------------------------------------------------------------------------

    def share_fetch(
        self,
        request: ShareRequest,
        partitions: Collection[SharePlace],
        forgotten: Collection[SharePlace],
        limits: ShareFetchLimits,
        connection: object = None,
    ) -> ShareFetched:
        try:
            self._check_on()
            session = self._session(request, connection, partitions, forgotten)
        except BrokerResponseError as error:
            return ShareFetched(type(error), checks.words(error))
        acknowledging = Acknowledging(self._places)
        try:
            if request.acknowledgements:
                acknowledging.begin(request)
            if request.session_epoch == CLOSE_SESSION or request.is_renewal:
                answers = acknowledging.end()
            else:
                answers = self._fetch_and_end(request, session, limits, acknowledging)
        except ShareSessionNotFoundError as error:
            return ShareFetched(type(error), checks.words(error), partitions=acknowledging.end())
        finally:
            acknowledging.free()
        if request.session_epoch == CLOSE_SESSION:
            self._close(request, session)
        return ShareFetched(None, "", self._settings.of(request.group).terms.lock, answers)

    def _fetch_and_end(
        self,
        request: ShareRequest,
        session: ShareSession,
        limits: ShareFetchLimits,
        acknowledging: Acknowledging,
    ) -> dict[SharePlace, SharedRecords]:
        found = self._fetch(request, session, limits, acknowledging)
        answers = acknowledging.end()
        for place, records in Pace().over(found.items()):
            before = answers.get(place)
            if before is not None:
                records = records._replace(acknowledge_error=before.acknowledge_error)
            answers[place] = records
        return answers

    def share_acknowledge(self, request: ShareRequest) -> ShareFetched:
        try:
            self._check_on()
            if request.session_epoch == OPEN_SESSION:
                checks.check_member(request)
                raise InvalidShareSessionEpochError
            session = self._session(request, None, (), ())
        except BrokerResponseError as error:
            return ShareFetched(type(error), checks.words(error))
        acknowledging = Acknowledging(self._places)
        try:
            acknowledging.begin(request)
            answers = acknowledging.end()
        finally:
            acknowledging.free()
        if request.session_epoch == CLOSE_SESSION:
            self._close(request, session)
        return ShareFetched(None, "", self._settings.of(request.group).terms.lock, answers)

    def _close(self, request: ShareRequest, session: ShareSession) -> None:
        """The last request of a session was carried out."""
        self._releasing.begin((request.group, request.member_id), session.places)
        self._ended((request.group, request.member_id))

    def _session(
        self,
        request: ShareRequest,
        connection: object,
        added: Collection[SharePlace],
        forgotten: Collection[SharePlace],
    ) -> ShareSession:
        """The session of a request, which is closed if it is its last one. Raises what is answered."""
        checks.check_member(request)
        key = (request.group, request.member_id)
        if request.session_epoch == OPEN_SESSION:
            if request.acknowledgements:
                raise InvalidRequestError("The initial request of a share session has no acknowledgements.")
            self._releasing.wait(key)
            return self._sessions.open(key, connection, added)
        if request.session_epoch == CLOSE_SESSION:
            closed = self._sessions.close(key)
            if closed is None:
                raise ShareSessionNotFoundError
            return closed
        session = self._sessions.resume(key, request.session_epoch, connection)
        self._sessions.change(session, added, forgotten)
        return session

    def _fetch(
        self,
        request: ShareRequest,
        session: ShareSession,
        limits: ShareFetchLimits,
        acknowledging: Acknowledging,
    ) -> dict[SharePlace, SharedRecords]:
        opened: dict[Delivery, SharePlace] = {}
        answers: dict[SharePlace, SharedRecords] = {}
        unread: dict[SharePlace, SharedRecords] = {}
        unopened: list[SharePlace] = []
        fetch = ShareFetch(self._deliveries, request.member_id, limits)
        self._waiting.add(fetch)
        session.fetches.add(fetch)
        try:
            places = session.in_turn(request.session_epoch)
            for place in Pace().over(places):
                known = session.opened.get(place)
                if known is not None and known.is_there:
                    opened[known] = place
                    continue
                partition = self._places.partition(request.group, place)
                if not isinstance(partition, Partition):  # of one that nobody reads, after the wait
                    (unread if partition is UnknownError else answers)[place] = SharedRecords(partition)
                    continue
                if self._deliveries.known(request.group, partition) is None:
                    unopened.append(place)
                    continue
                delivery = self._places.open(request.group, place)  # which waits if it is being opened
                if isinstance(delivery, Delivery):
                    opened[delivery] = place
                    session.remember(place, delivery)
                else:
                    answers[place] = SharedRecords(delivery)
            found: dict[SharePlace, SharedRecords] = {}
            if limits.max_bytes > 0 and limits.max_records != 0:
                if unopened:
                    self._hub.spawn(self._open, request.group, unopened)
                opening = self._places.opening(request.group, unopened, answers)
                found = fetch.run(opened, opening, acknowledging.settled, not answers)
                if session.owed:
                    found = {**session.take_owed(fetch.looked_at()), **found}
            answers.update(unread)
            if request.session_epoch == OPEN_SESSION:
                session.owed.clear()  # as in Kafka: what it has not looked at is owed nothing
            else:
                session.owe(answers)
        finally:
            self._waiting.discard(fetch)
            session.fetches.discard(fetch)
            self._stopped()
        if (request.group, request.member_id) not in self._sessions:  # it has ended meanwhile
            self._releasing.release((request.group, request.member_id), session.places)
            raise ShareSessionNotFoundError
        if request.session_epoch != OPEN_SESSION:  # as in Kafka the first one does not count
            session.read([place for place, one in Pace().over(found.items()) if one.batches])
        return {**answers, **found}

    def _open(self, group: str, places: Collection[SharePlace]) -> None:
        """Open share partitions, whether or not the fetch that is the first to read them waits for it."""
        self._places.open_together(group, places)
        found = self._groups.get(group)
        if found is None or not found.occupied:  # meanwhile
            self._retire(group)

    # -- tools -----------------------------------------------------------------------------------------

    def describe_share_groups(self, groups: Iterable[str]) -> dict[str, ShareGroupDescription]:
        return {name: self._describe(name) for name in Pace().over(groups, every=1)}

    def _describe(self, name: str) -> ShareGroupDescription:
        try:
            group = self._share_group(name)
        except BrokerResponseError as error:
            return ShareGroupDescription(type(error), checks.words(error))
        return group.description(list(Pace().over(group.described(), every=1)))

    def _share_group(self, name: str) -> ShareGroup:
        self._check_on()
        return self._groups.of(name, ShareGroup)

    def share_offsets(self, group: str, partitions: Iterable[TopicPartition] | None = None) -> ShareOffsets:
        try:
            self._check_on()
        except BrokerResponseError as error:
            return ShareOffsets(type(error), {}, checks.words(error))
        if not group and any(self._topics.get(name) for name, _ in partitions or ()):
            return ShareOffsets(UnknownError, {})  # as in Kafka
        keys = self._read_or_to_read(group) if partitions is None else partitions
        return ShareOffsets(None, {key: self._progress.offset(group, key) for key in Pace().over(keys)})

    def _read_or_to_read(self, group: str) -> list[TopicPartition]:
        """The partitions that a group has a state for, and those of the topics that its members read."""
        pace = Pace()
        found = dict.fromkeys(pace.over(self._progress.read(group)))
        known = self._groups.get(group)
        if isinstance(known, ShareGroup):
            for name in pace.over(sorted(known.subscribed() or ())):
                topic = self._topics.get(name)
                if topic is not None:
                    found.update(((name, number), None) for number in pace.over(range(len(topic.partitions))))
        return list(found)

    def share_standings(self, group: str) -> ShareStandings:
        try:
            self._share_group(group)
        except BrokerResponseError as error:
            return ShareStandings(type(error), {}, checks.words(error))
        keys = Pace().over(self._progress.read(group), every=1)
        return ShareStandings(None, {key: self._progress.standing(group, key) for key in keys})

    def alter_share_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> ShareOutcome:
        try:
            self._check_on()
            checks.check_group(group)
            if not self._groups.exists(group):  # it begins with its offsets, too
                if not any(self._topics.get(name) for name, _ in offsets):
                    return ShareOutcome(None, dict.fromkeys(offsets, UnknownTopicOrPartitionError))
                self._groups.changed(group, self._create(group))
            self._check_empty(group)
            with self._groups.nobody_joins(group), self._changes.beginning.held(group):
                return ShareOutcome(None, self._changes.alter(group, offsets))
        except BrokerResponseError as error:
            return ShareOutcome(type(error), {}, checks.words(error))

    def _check_empty(self, group: str) -> None:
        if self._share_group(group).occupied:
            raise NonEmptyGroupError("The group is not empty.")

    def delete_share_offsets(self, group: str, topics: Iterable[str]) -> ShareOutcome:
        try:
            self._check_on()
            checks.check_group(group)
            self._check_empty(group)
            with self._groups.nobody_joins(group), self._changes.beginning.held(group):
                return ShareOutcome(None, self._changes.delete(group, topics))
        except BrokerResponseError as error:
            return ShareOutcome(type(error), {}, checks.words(error))

    # -- what others delete ------------------------------------------------------------------------------

    def forget_group(self, group: str) -> Error | None:
        """A group was deleted; waits as a green thread."""
        for delivery in self._deliveries.of_group(group):
            self._deliveries.drop_and_wait(delivery)
        with self._changes.beginning.held(group):
            return self._states.delete_group(group) if self._states.has_group(group) else None

    def forget(self, topic: Topic) -> None:
        """A topic was deleted; waits as a green thread, and raises the exceptions of the log."""
        self._deliveries.forget(topic)
        self._states.forget(topic)
