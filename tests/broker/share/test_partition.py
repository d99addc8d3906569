"""The records that a share partition gives to members, and their further states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from broker.share import share_histories
from broker.share.taking import acquire

from dafka.broker.interface.share import Acknowledged, AcknowledgeType, Acquired
from dafka.broker.share import acquisition, stored
from dafka.broker.share import partition as partition_module
from dafka.broker.share.acknowledgements import BeyondError, InvalidRecordStateError, RenewalError
from dafka.broker.share.acquisition import Terms
from dafka.broker.share.partition import LogBatch, SharePartition
from dafka.broker.share.runs import RecordState, Runs

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
RENEW, GAP = AcknowledgeType.RENEW, AcknowledgeType.GAP
TERMS = Terms(lock=30.0, deliveries=5, in_flight=100)
TENS = [LogBatch(first, first + 9) for first in range(0, 100, 10)]


def take(
    partition: SharePartition,
    member: str = "a",
    records: int = 10,
    now: float = 0.0,
    terms: Terms = TERMS,
    log: list[LogBatch] = TENS,
    **options: object,
) -> list[Acquired]:
    partition.expire(now, terms)
    begin = partition.next_offset(terms)
    if begin is None:
        return []
    batches = [batch for batch in log if batch.last >= begin]
    return acquire(partition, now, member, begin, batches, terms, records=records, **options)  # type: ignore[arg-type]


def say(partition: SharePartition, first: int, last: int, *types: int, **options: object) -> None:
    now, member = options.get("now", 0.0), options.get("member", "a")
    terms = options.get("terms", TERMS)
    partition.acknowledge(now, member, [Acknowledged(first, last, types)], terms)  # type: ignore[arg-type]
    write(partition)


def write(partition: SharePartition) -> None:
    """What has changed is on disk."""
    partition.take_changes()
    partition.written()


def test_members_get_different_records() -> None:
    partition = SharePartition(0)
    assert take(partition, "a") == [Acquired(0, 9, 1)]
    assert take(partition, "b") == [Acquired(10, 19, 1)]


def test_a_batch_is_taken_as_a_whole_unless_the_limit_is_strict() -> None:
    assert take(SharePartition(0), records=3) == [Acquired(0, 9, 1)]
    partition = SharePartition(0)
    assert take(partition, records=3, strict=True) == [Acquired(0, 2, 1)]
    assert take(partition, records=12, strict=True) == [Acquired(3, 9, 1), Acquired(10, 14, 1)]


def test_a_long_batch_is_taken_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acquisition, "ACQUIRED_OFFSETS", 1000)
    partition, batches, terms = SharePartition(0), [LogBatch(0, 2499)], Terms(in_flight=5000)
    taken = [acquire(partition, 0.0, "m", first, batches, terms, records=1) for first in (0, 1000, 2000)]
    assert taken == [[Acquired(0, 999, 1)], [Acquired(1000, 1999, 1)], [Acquired(2000, 2499, 1)]]
    partition.release("m", terms)
    assert acquire(partition, 0.0, "m", 0, batches, terms, records=1) == [Acquired(0, 999, 2)]


class Unread(list[int]):
    """Types that must not be looked at one by one."""

    def __iter__(self) -> Any:
        raise AssertionError("they are looked at")


def test_acknowledgements_below_the_start_cost_nothing() -> None:
    SharePartition(10).acknowledge(0.0, "m", [Acknowledged(0, 9, Unread([ACCEPT] * 10))], Terms())


def test_acquired_records_are_listed_in_parts_that_end_where_batches_end() -> None:
    assert take(SharePartition(0), records=30, batch_size=15) == [Acquired(0, 19, 1), Acquired(20, 29, 1)]


def test_accepted_and_rejected_records_are_done_with() -> None:
    partition = SharePartition(0)
    take(partition)
    say(partition, 0, 9, ACCEPT, ACCEPT, REJECT, ACCEPT, GAP, ACCEPT, ACCEPT, RELEASE, ACCEPT, ACCEPT)
    assert (partition.start, partition.end, partition.in_flight, partition.finished) == (7, 10, 1, 2)
    assert take(partition, "b", strict=True)[0] == Acquired(7, 7, 2)


def test_released_records_come_again_before_others() -> None:
    partition = SharePartition(0)
    take(partition)
    say(partition, 2, 3, RELEASE)
    assert take(partition, "b", records=2) == [Acquired(2, 3, 2)]


def test_a_record_is_acknowledged_only_by_the_member_that_acquired_it_and_once() -> None:
    partition = SharePartition(0)
    take(partition, "a")
    for first, last, member in ((0, 0, "b"), (4, 4, "c")):
        with pytest.raises(InvalidRecordStateError):
            say(partition, first, last, ACCEPT, member=member)
    say(partition, 5, 5, ACCEPT)
    with pytest.raises(InvalidRecordStateError):
        say(partition, 4, 6, ACCEPT)
    assert partition.in_flight == 9  # 4 and 6 are as they were


def test_a_lock_that_expires_gives_the_record_to_another() -> None:
    partition = SharePartition(0)
    take(partition, "a", now=0.0)
    assert partition.wake_at == 30.0
    assert take(partition, "b", now=29.9, records=1, log=TENS[:1]) == []
    assert take(partition, "b", now=30.0, log=TENS[:1]) == [Acquired(0, 9, 2)]
    with pytest.raises(InvalidRecordStateError):
        say(partition, 0, 9, ACCEPT, now=30.0)


def test_a_renewed_lock_holds_from_then_on() -> None:
    partition = SharePartition(0)
    take(partition)
    say(partition, 0, 4, RENEW, now=20.0)
    partition.expire(30.0, TERMS)
    say(partition, 0, 4, ACCEPT, now=49.0)
    assert partition.start == 5
    with pytest.raises(InvalidRecordStateError):
        say(partition, 5, 9, ACCEPT, now=49.0)


def test_renewing_can_be_forbidden() -> None:
    partition = SharePartition(0)
    take(partition)
    with pytest.raises(RenewalError):
        say(partition, 0, 9, RENEW, terms=TERMS._replace(renew=False))


def test_a_record_is_archived_after_its_last_delivery() -> None:
    partition, terms = SharePartition(0), TERMS._replace(deliveries=2)
    for count in (1, 2):
        assert take(partition, records=1, strict=True, terms=terms) == [Acquired(0, 0, count)]
        say(partition, 0, 0, RELEASE, terms=terms)
    assert partition.start == 1


def test_records_that_fail_are_delivered_in_ever_smaller_parts() -> None:
    partition = SharePartition(0)
    sizes = []
    for _ in range(4):
        ((first, last, _),) = take(partition, log=TENS[:1])
        sizes.append(last - first + 1)
        say(partition, first, last, RELEASE)
    assert sizes == [10, 10, 10, 5]
    assert take(partition, log=TENS[:1]) == [Acquired(0, 0, 5)]


def test_a_member_that_leaves_gives_everything_back() -> None:
    partition = SharePartition(0)
    take(partition, "a")
    take(partition, "b")
    assert partition.release("a", TERMS)
    assert not partition.release("a", TERMS)
    assert take(partition, "c", records=1) == [Acquired(0, 9, 2)]


def test_runs_of_a_member_with_very_many_are_given_back_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(partition_module, "RELEASED_AT_ONCE", 3)
    partition = SharePartition(0)
    take(partition, "a", records=10)
    for offset in range(1, 10, 2):
        say(partition, offset, offset, ACCEPT)
    assert [partition.release("a", TERMS) for _ in range(3)] == [True, True, False]
    assert not partition.is_held


def test_a_long_batch_is_acquired_as_a_whole_if_little_is_in_flight() -> None:
    partition = SharePartition(0)
    terms = Terms(in_flight=4000)
    taken = take(partition, log=[LogBatch(0, 9_999)], terms=terms)
    assert taken == [Acquired(0, 9_999, 1)]
    partition = SharePartition(0)
    taken = take(partition, log=[LogBatch(0, 2_999), LogBatch(3_000, 12_999)], terms=terms, records=20_000)
    assert sum(one.last - one.first + 1 for one in taken) == 10_000


def test_nothing_more_is_acquired_when_as_many_records_are_in_flight_as_may_be() -> None:
    partition, terms = SharePartition(0), TERMS._replace(in_flight=15)
    take(partition, records=50, terms=terms)
    assert partition.in_flight == 20  # a batch is not torn
    assert partition.next_offset(terms) is None
    say(partition, 3, 9, ACCEPT)
    assert partition.next_offset(terms) is None  # as in Kafka those behind the start count, whatever they are
    say(partition, 0, 2, ACCEPT)
    assert partition.next_offset(terms) == 20
    partition = SharePartition(0)
    assert take(partition, records=50, strict=True, terms=terms) == [Acquired(0, 14, 1)]
    assert take(partition, "b", records=50, strict=True, terms=terms) == [Acquired(15, 19, 1)]


def test_the_rest_of_a_batch_is_in_flight_when_the_limit_is_strict() -> None:
    partition, terms, log = SharePartition(0), TERMS._replace(in_flight=100), [LogBatch(0, 89), *TENS[9:]]
    assert take(partition, records=1, strict=True, terms=terms, log=log) == [Acquired(0, 0, 1)]
    assert (partition.end, partition.in_flight) == (90, 90)
    assert take(partition, records=60, strict=True, terms=terms, log=log) == [
        Acquired(1, 10, 1)
    ]  # room for ten
    assert take(partition, records=5, terms=terms, log=log) == [Acquired(11, 89, 1)]
    assert take(partition, records=5, terms=terms, log=log) == [Acquired(90, 99, 1)]


def test_no_more_is_delivered_again_than_there_is_room_for_unless_there_is_none() -> None:
    partition, terms = SharePartition(0), TERMS._replace(in_flight=30)
    take(partition, records=25, strict=True, terms=terms)
    partition.release("a", terms)
    assert take(partition, records=25, strict=True, terms=terms) == [Acquired(0, 24, 2)]
    partition = SharePartition(0)
    take(partition, records=20, terms=terms)
    partition.release("a", terms)
    assert take(partition, records=25, strict=True, terms=terms) == [Acquired(0, 9, 2)]
    assert take(partition, records=25, strict=True, terms=terms) == [Acquired(10, 19, 2)]


def test_new_records_are_listed_apart_from_those_in_flight() -> None:
    partition = SharePartition(0)
    take(partition, records=1)
    take(partition, records=1)
    partition.release("a", TERMS)
    assert take(partition, records=500) == [Acquired(0, 9, 2), Acquired(10, 19, 2), Acquired(20, 79, 1)]


def test_an_acquisition_goes_on_with_what_is_read_next() -> None:
    partition = SharePartition(0)
    taking = partition.begin("a", 0, TERMS, records=25, strict=True)
    partition.acquire(0.0, taking, 0, TENS[:2])
    assert not taking.is_complete
    partition.acquire(1.0, taking, 20, TENS[2:4])
    assert taking.is_complete and taking.acquired == [Acquired(0, 24, 1)] and partition.end == 30
    assert [run.until for run in partition.runs] == [30.0, 31.0, 0.0]


def test_an_acknowledgement_sets_something_free_when_it_is_on_disk() -> None:
    partition, terms = SharePartition(0), TERMS._replace(in_flight=30)
    take(partition, records=20, terms=terms)
    partition.acknowledge(0.0, "a", [Acknowledged(0, 9, [ACCEPT]), Acknowledged(10, 19, [RELEASE])], terms)
    assert partition.start == 10
    assert take(partition, "b", records=100, terms=terms) == [Acquired(20, 29, 1)]
    assert take(partition, "b", records=100, terms=terms) == []
    partition.take_changes()
    partition.acknowledge(0.0, "b", [Acknowledged(25, 29, [RELEASE])], terms)  # for the next round
    partition.written()
    assert take(partition, "b", records=100, terms=terms) == [Acquired(10, 19, 2)]
    write(partition)
    assert take(partition, "b", records=100, terms=terms) == [Acquired(25, 29, 2), Acquired(30, 39, 1)]


def test_a_release_beside_one_that_is_on_disk_is_not_yet() -> None:
    partition = SharePartition(0)
    take(partition)
    partition.acknowledge(0.0, "a", [Acknowledged(0, 4, [RELEASE])], TERMS)
    partition.take_changes()
    partition.acknowledge(0.0, "a", [Acknowledged(5, 9, [RELEASE])], TERMS)
    partition.written()
    assert take(partition, "b", log=TENS[:1]) == [Acquired(0, 4, 2)]


def test_very_many_releases_are_set_free_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them alone took longer than all else that is done for them."""

    def cut(*_: object) -> None:
        raise AssertionError("each is looked for")

    partition = SharePartition(0)
    take(partition, records=30)
    partition.acknowledge(0.0, "a", [Acknowledged(one, one, [RELEASE]) for one in range(0, 30, 2)], TERMS)
    partition.take_changes()
    monkeypatch.setattr(Runs, "cut", cut)
    partition.written()
    monkeypatch.undo()
    for one in range(0, 30, 2):
        assert take(partition, "b", records=1, strict=True) == [Acquired(one, one, 2)]


def test_releases_that_are_set_free_when_records_have_gone_meanwhile() -> None:
    partition = SharePartition(0)
    take(partition, records=30)
    partition.acknowledge(0.0, "a", [Acknowledged(0, 9, [RELEASE]), Acknowledged(12, 29, [RELEASE])], TERMS)
    partition.take_changes()
    partition.trim(5)
    partition.truncate(20)
    partition.written()
    assert take(partition, "b", records=13) == [Acquired(5, 9, 2), Acquired(12, 19, 2)]
    assert [(run.first, run.last, run.member) for run in partition.runs] == [
        (5, 9, "b"),
        (10, 11, "a"),
        (12, 19, "b"),
    ]


def test_a_release_that_is_being_written_is_no_longer_the_members() -> None:
    partition = SharePartition(0)
    take(partition)
    partition.acknowledge(0.0, "a", [Acknowledged(0, 9, [RELEASE])], TERMS)
    with pytest.raises(InvalidRecordStateError):
        say(partition, 0, 9, ACCEPT)
    assert not partition.is_held and not partition.release("a", TERMS)
    restored = stored.restored([stored.snapshot(0, partition)])
    assert restored is not None and restored.runs == [(0, 9, RecordState.AVAILABLE, 1)]


def test_aborted_records_and_the_gap_that_a_read_begins_with_are_passed_over() -> None:
    log = [LogBatch(2, 3), LogBatch(4, 4, deliver=False), LogBatch(5, 6)]
    partition = SharePartition(0)
    assert take(partition, log=log) == [Acquired(2, 3, 1), Acquired(5, 6, 1)]
    assert (partition.start, partition.end, partition.in_flight) == (2, 7, 4)
    assert take(SharePartition(0), log=log, records=3) == [Acquired(2, 3, 1)]  # three with the aborted one


def test_gaps_between_batches_are_acquired_with_them_and_no_further_than_asked_for() -> None:
    log = [LogBatch(2, 3), LogBatch(10, 11), LogBatch(20, 21)]
    assert take(SharePartition(0), log=log, records=50) == [Acquired(2, 21, 1)]
    assert take(SharePartition(0), log=log, records=50, batch_size=5) == [
        Acquired(2, 9, 1),
        Acquired(10, 19, 1),
        Acquired(20, 21, 1),
    ]
    partition = SharePartition(0)
    assert take(partition, log=log, records=5) == [Acquired(2, 6, 1)]
    assert take(partition, log=log[1:]) == [Acquired(10, 19, 1)]  # what is left of the gap is passed over
    say(partition, 2, 6, ACCEPT)
    assert partition.start == 10


def test_an_acknowledgement_of_records_behind_those_in_flight_is_an_invalid_request() -> None:
    partition = SharePartition(0)
    take(partition, records=10)
    with pytest.raises(BeyondError):
        say(partition, 5, 10, ACCEPT)
    with pytest.raises(BeyondError):
        say(partition, 10, 12, ACCEPT)
    with pytest.raises(InvalidRecordStateError):
        say(SharePartition(0), 10, 12, ACCEPT)
    with pytest.raises(InvalidRecordStateError):  # what is wrong before it comes first
        partition.acknowledge(0.0, "b", [Acknowledged(0, 1, [ACCEPT]), Acknowledged(2, 20, [ACCEPT])], TERMS)
    assert partition.in_flight == 10


def test_a_start_is_settled_with_the_first_acknowledgement_or_expiry() -> None:
    settling: list[Callable[[SharePartition], object]] = [
        lambda partition: say(partition, 0, 9, RELEASE),
        lambda partition: partition.expire(1000.0, TERMS),
        lambda partition: partition.release("a", TERMS),
    ]
    for settle in settling:
        partition = SharePartition(0)
        partition.told = None
        partition.trim(0)
        take(partition, records=10)
        say(partition, 0, 9, RENEW)
        assert partition.told is None
        settle(partition)
        assert partition.told == 0


def test_compaction_and_retention_take_records_out() -> None:
    partition = SharePartition(0)
    take(partition, records=30)
    say(partition, 0, 29, RELEASE)
    assert take(partition, records=1, log=[LogBatch(5, 9), LogBatch(30, 39)]) == [Acquired(5, 9, 2)]
    partition.trim(20)
    assert (partition.start, partition.in_flight) == (20, 10)
    say(partition, 5, 9, ACCEPT)  # it is gone: nothing to say
    partition.trim(70)
    assert (partition.start, partition.end, partition.in_flight) == (70, 70, 0)


def test_a_log_that_lost_its_end_takes_what_was_in_flight_along() -> None:
    for end, expected in ((5, (0, 5, 5)), (40, (0, 30, 30))):
        partition = SharePartition(0)
        take(partition, records=30)
        partition.truncate(end)
        assert (partition.start, partition.end, partition.in_flight) == expected
    partition = SharePartition(50)
    partition.truncate(20)
    assert (partition.start, partition.end) == (20, 20)


def test_runs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dafka.broker.share.partition.RUNS", 50)
    partition, terms = SharePartition(0), Terms(in_flight=10**9)
    log = [LogBatch(offset, offset) for offset in range(100)]
    for number in range(50):
        assert take(partition, f"m{number}", records=1, strict=True, terms=terms, log=log)
    assert partition.next_offset(terms) is None


def test_expiring_is_done_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dafka.broker.share.partition.EXPIRED_AT_ONCE", 3)
    partition = SharePartition(0)
    for number in range(8):
        take(partition, f"m{number}", records=1, strict=True)
    parts = 0
    while partition.wake_at <= 30.0:
        assert partition.expire(30.0, TERMS)
        parts += 1
    assert parts == 3
    with pytest.raises(InvalidRecordStateError):
        say(partition, 7, 7, ACCEPT, member="m7", now=30.0)


@pytest.mark.parametrize("seed", range(40))
def test_a_random_history(seed: int) -> None:
    share_histories.play(seed)
