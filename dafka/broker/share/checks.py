"""Checks of requests about share groups that do not depend on the broker's state."""

from __future__ import annotations

from collections.abc import Sequence

from kafka.errors import BrokerResponseError, InvalidGroupIdError, InvalidRequestError

from dafka.broker.groups.modern.member import JOIN_EPOCH, LEAVE_EPOCH
from dafka.broker.interface.share import Acknowledged, AcknowledgeType, ShareHeartbeat, ShareRequest
from dafka.broker.limits import MEMBER_TOPICS
from dafka.broker.share.limits import ACKNOWLEDGED_AT_ONCE, MEMBER_ID_LENGTH
from dafka.hub.turns import Pace

_TYPES = frozenset(map(int, AcknowledgeType))


def check_heartbeat(beat: ShareHeartbeat) -> None:
    """Raise InvalidRequestError for a heartbeat that cannot be one."""
    if not beat.group:
        raise InvalidRequestError("GroupId can't be empty.")
    _check_member_id(beat.member_id)
    if beat.member_epoch < LEAVE_EPOCH:
        raise InvalidRequestError("MemberEpoch is invalid.")
    if beat.rack is not None and not beat.rack.strip():
        raise InvalidRequestError("RackId can't be empty.")
    if beat.topics is not None and len(beat.topics) > MEMBER_TOPICS:
        raise InvalidRequestError(f"A member names {MEMBER_TOPICS} topics at most.")
    if beat.member_epoch == JOIN_EPOCH and not beat.topics:
        raise InvalidRequestError("SubscribedTopicNames must be set in first request.")


def check_member(request: ShareRequest) -> None:
    """Raise InvalidRequestError if a request does not name its member."""
    _check_member_id(request.member_id)


def check_group(name: str) -> None:
    """Raise InvalidGroupIdError for a group without a name, when its offsets are to be changed."""
    if not name:
        raise InvalidGroupIdError("The group id is invalid.")


def check_acknowledgements(batches: Sequence[Acknowledged], is_renewal: bool) -> None:
    """Raise InvalidRequestError for those of one partition if nobody can carry them out; waits as a green
    thread."""
    renews = False
    items = len(batches) + sum(len(batch.types) for batch in batches)
    if items > ACKNOWLEDGED_AT_ONCE:
        raise InvalidRequestError(
            f"{items} batches and types of acknowledgements of one partition; "
            f"{ACKNOWLEDGED_AT_ONCE} are the most"
        )
    before = -1
    for batch in Pace().over(batches):
        renews = _check_batch(batch, before) or renews
        before = batch.last
    if renews and not is_renewal:
        raise InvalidRequestError("Renew acknowledgements are there, and isRenewAck is not set.")


def _check_batch(batch: Acknowledged, before: int) -> bool:
    first, last, types = batch
    if first > last or first < 0:
        raise InvalidRequestError(f"Acknowledgement first offset {first} and last offset {last}.")
    if first <= before:
        raise InvalidRequestError(f"Acknowledgement first offset {first} overlaps the one before.")
    if not types or (len(types) > 1 and len(types) != last - first + 1):
        raise InvalidRequestError(f"{len(types)} acknowledge types for {last - first + 1} records.")
    if not _TYPES.issuperset(types):
        raise InvalidRequestError(f"An acknowledge type is from 0 to 4, not among {sorted(set(types))}.")
    return AcknowledgeType.RENEW in types


def _check_member_id(member_id: str) -> None:
    if not member_id or len(member_id) > MEMBER_ID_LENGTH:
        raise InvalidRequestError(f"A member id has 1 to {MEMBER_ID_LENGTH} characters.")


def words(error: BrokerResponseError) -> str:
    """What an error says, or else what it means."""
    return str(error.args[0]) if error.args else str(type(error).description)
