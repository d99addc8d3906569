"""Fetching: one at a time, credit, windows, loss, records kept ahead of a gap. Seen on a consumer."""

from __future__ import annotations

from dafka.protocol.commands import DirectHead, Fetch, Head, StoreHello
from dafka.protocol.runs import Run
from dafka.roles.consumer import ConsumerRole
from dafka.roles.limits import Limits
from dafka.roles.outputs import Deliver, HearAnswers

ME = b"C" * 32
STORE = b"5" * 32
TOPIC = b"hello"
PARTITION = b"A" * 32
LIMITS = Limits(first_window=10, smallest_window=2, largest_window=40, heads_interval=1e9)


def consumer(limits: Limits = LIMITS, room: int = 1_000_000) -> ConsumerRole:
    role = ConsumerRole(ME, offset_reset="earliest", limits=limits)
    role.set_room(0.0, room, 10**9)
    role.subscribe(0.0, TOPIC)
    return role


def run(first: int, end: int, recipient: bytes | None = None, address: bytes = PARTITION) -> Run:
    return Run(recipient, address, TOPIC, first, [b"%d" % sequence for sequence in range(first, end)])


def direct(first: int, end: int, address: bytes = PARTITION) -> Run:
    return run(first, end, ME, address)


def asked(outputs) -> list[tuple[int, int]]:
    """(first, end) of the FETCHes among the outputs."""
    return [(out.sequence, out.sequence + out.count) for out in outputs if isinstance(out, Fetch)]


def given(outputs) -> list[tuple[int, int]]:
    """(first, end) of the deliveries among the outputs."""
    return [(out.first, out.first + len(out.contents)) for out in outputs if isinstance(out, Deliver)]


def head(sequence: int, address: bytes = PARTITION) -> Head:
    return Head(address, TOPIC, sequence)


# -- one at a time ----------------------------------------------------------------------------------


def test_no_fetch_while_one_is_under_way():
    role = consumer()
    assert asked(role.receive(1.0, head(5))) == [(0, 6)]
    assert role.receive(1.1, head(7)) == []
    assert role.receive_run(1.2, run(8, 9)) == []
    assert role.tick(1.3) == []
    assert role.fetches == 1


def test_a_complete_answer_is_followed_by_the_next_fetch_at_once():
    role = consumer()
    role.receive(1.0, head(99))
    outputs = role.receive_run(1.1, direct(0, 10))
    assert (given(outputs), asked(outputs)) == ([(0, 10)], [(10, 30)])


def test_an_answer_may_come_in_pieces_and_from_anywhere():
    role = consumer()
    role.receive(1.0, head(9))
    assert given(role.receive_run(1.1, direct(0, 4))) == [(0, 4)]
    assert given(role.receive_run(1.2, run(4, 6))) == [(4, 6)]
    assert given(role.receive_run(1.3, direct(2, 10))) == [(6, 10)]
    assert role.tick(9.0) == []


def test_the_other_stores_answers_to_the_same_fetch_are_of_no_consequence():
    role = consumer()
    role.receive(1.0, head(99))
    role.receive_run(1.1, direct(0, 10))
    assert role.receive_run(1.1, direct(0, 10)) == []
    assert role.receive_run(1.1, direct(0, 11)) == [Deliver(TOPIC, PARTITION, 10, [b"10"])]


# -- loss -------------------------------------------------------------------------------------------


def test_a_lost_fetch_is_repeated_once_and_then_with_growing_pauses():
    role = consumer(LIMITS._replace(fetch_timeout=1.0, longest_pause=4.0))
    role.receive(0.0, head(9))
    times = [step / 10 for step in range(1, 301) if asked(role.tick(step / 10))]
    assert times == [1.0, 3.0, 6.0, 11.0, 16.0, 21.0, 26.0]
    assert role.timeouts == role.fetches == 8


def test_an_answer_that_breaks_off_is_continued_after_the_timeout():
    role = consumer()
    role.receive(0.0, head(9))
    role.receive_run(0.5, direct(0, 4))
    assert role.tick(1.4) == []
    assert asked(role.tick(1.6)) == [(4, 9)]  # the window was halved
    assert asked(role.receive_run(1.7, direct(4, 9))) == [(9, 10)]


def test_a_gap_in_an_answer_is_asked_for_when_the_end_has_come_but_not_twice():
    role = consumer()
    role.receive(0.0, head(9))
    role.receive_run(0.1, direct(0, 4))
    assert asked(role.receive_run(0.1, direct(5, 10))) == [(4, 5)]
    assert role.receive_run(0.1, direct(5, 10)) == []
    assert given(role.receive_run(0.2, direct(4, 5))) == [(4, 5), (5, 10)]


def test_a_first_record_that_is_missing_again_and_again_causes_no_storm_of_fetches():
    role = consumer()
    role.receive(0.0, head(9))
    for _ in range(100):
        role.receive_run(0.1, direct(5, 10))
    assert role.fetches == 2


def test_a_late_answer_ends_the_pause():
    role = consumer()
    role.receive(0.0, head(99))
    for step in range(1, 80):
        role.tick(step / 10)
    fetches = role.fetches
    outputs = role.receive_run(8.0, direct(0, 10))
    assert given(outputs) == [(0, 10)]
    assert len(asked(outputs)) == 1
    assert role.fetches == fetches + 1


def test_a_store_that_has_records_ends_the_pause():
    for news in (StoreHello(ME, STORE), DirectHead(ME, PARTITION, TOPIC, 9)):
        role = consumer()
        role.receive(0.0, head(9))
        for step in range(1, 45):
            role.tick(step / 10)
        assert role.receive(4.5, head(9)) == []
        assert len(asked(role.receive(4.5, news))) == 1


def test_a_partition_that_nobody_answers_for_is_one_while_it_is_asked_for_again():
    role = consumer()
    role.receive(0.0, head(99))
    seen = []
    for step in range(300):
        role.tick(step / 10)
        seen.append(role.unanswered)
    assert seen == sorted(seen) and seen[-1] == 1
    assert role.longest_unanswered == (TOPIC, PARTITION, 0, 100)
    role.receive_run(30.0, direct(0, 2))
    assert (role.unanswered, role.longest_unanswered) == (0, None)


def test_a_partition_is_unanswered_since_the_same_time_until_an_answer_comes():
    """A node that says that it has the records has not sent them."""
    role = consumer()
    role.receive(0.0, head(99))
    for step in range(200):
        role.tick(step / 10)
        if step in (60, 120):
            role.receive(step / 10, DirectHead(ME, PARTITION, TOPIC, 99))
    assert (role.unanswered, role.unanswered_since(1.0), role.unanswered_since(3.0)) == (1, 0, 1)
    role.receive_run(20.0, direct(0, 2))
    assert role.unanswered_since(20.0) == 0
    for step in range(200, 400):
        role.tick(step / 10)
    assert (role.unanswered_since(20.0), role.unanswered_since(24.0)) == (0, 1)


def test_a_store_that_has_nothing_new_does_not_end_the_pause():
    role = consumer()
    role.receive_run(0.0, run(0, 5))
    role.receive(0.0, head(9))
    for step in range(1, 45):
        role.tick(step / 10)
    assert role.receive(4.5, DirectHead(ME, PARTITION, TOPIC, 4)) == []


# -- the window -------------------------------------------------------------------------------------


def test_the_window_doubles_when_it_is_filled():
    role = consumer()
    outputs = role.receive(0.0, head(999))
    sizes = []
    for _ in range(5):
        ((first, end),) = asked(outputs)
        sizes.append(end - first)
        outputs = role.receive_run(0.1, direct(first, end))
    assert sizes == [10, 20, 40, 40, 40]


def test_the_window_halves_with_each_loss():
    role = consumer()
    outputs = role.receive(0.0, head(999))
    sizes = [asked(outputs)[0][1]]
    for step in range(1, 150):
        sizes += [end for _, end in asked(role.tick(step / 10))]
    assert sizes[:5] == [10, 5, 2, 2, 2]


def test_a_fetch_asks_for_about_as_many_bytes_as_it_may():
    role = consumer(LIMITS._replace(fetch_bytes=1000, guessed_record_bytes=500))
    assert asked(role.receive(0.0, head(999))) == [(0, 2)]
    outputs = role.receive_run(0.1, Run(ME, PARTITION, TOPIC, 0, [b"x" * 99] * 2))
    assert asked(outputs) == [(2, 12)]
    outputs = role.receive_run(0.1, Run(ME, PARTITION, TOPIC, 2, [b"x" * 5000] * 10))
    assert asked(outputs) == [(12, 13)]


# -- credit -----------------------------------------------------------------------------------------


def address(number: int) -> bytes:
    return b"%032d" % number


def knowing(partitions: int, room: int, limits: Limits = LIMITS) -> ConsumerRole:
    """A consumer that has record 0 of so many partitions, and room for as many records as are said."""
    role = consumer(limits)
    for number in range(partitions):
        role.receive_run(0.0, run(0, 1, address=address(number)))
    role.set_room(0.0, room, 10**9)
    return role


def test_fetches_under_way_share_half_of_the_room():
    role = knowing(5, room=26)
    sizes = []
    for number in range(5):
        sizes += [end - first for first, end in asked(role.receive(0.0, head(99, address(number))))]
    assert sizes == [10, 3]


def test_waiters_for_credit_get_it_in_turn():
    role = knowing(3, room=1000, limits=LIMITS._replace(fetches=1))
    for number in range(3):
        role.receive(0.0, head(30, address(number)))
    turns = []
    outputs = role.receive_run(0.1, direct(1, 11, address(0)))
    while fetches := [out for out in outputs if isinstance(out, Fetch)]:
        (fetch,) = fetches
        turns.append(int(fetch.partition))
        outputs = role.receive_run(0.1, direct(fetch.sequence, fetch.sequence + fetch.count, fetch.partition))
    assert turns == [1, 2, 0, 1, 2]


def test_live_records_do_not_take_the_room_set_aside_for_an_answer():
    role = knowing(2, room=16)
    assert asked(role.receive(0.0, head(8, address(1)))) == [(1, 9)]
    assert given(role.receive_run(0.1, run(1, 20, address=address(0)))) == [(1, 9)]
    assert given(role.receive_run(0.1, direct(1, 9, address(1)))) == [(1, 9)]


def test_live_records_find_room_whatever_is_fetched():
    role = knowing(1, room=1000)
    for number in range(2000):
        role.receive(0.0, head(99, b"I" * 24 + b"%08d" % number))
    assert role.fetches == 500
    assert given(role.receive_run(0.1, run(1, 501, address=address(0)))) == [(1, 501)]


def test_a_known_partition_does_not_wait_for_those_that_nothing_has_come_of():
    role = knowing(1, room=1000)
    for number in range(2000):
        role.receive(0.0, head(99, b"I" * 24 + b"%08d" % number))
    assert asked(role.receive_run(0.5, run(2, 3, address=address(0)))) == []
    assert next(out.partition for out in role.tick(1.0) if isinstance(out, Fetch)) == address(0)


def test_a_partition_that_nothing_has_come_of_is_asked_for_so_little_that_all_fetches_find_credit():
    role = consumer(LIMITS._replace(fetches=50, first_window=1000, largest_window=1000), room=1000)
    fetches = []
    for number in range(60):
        fetches += asked(role.receive(0.0, head(999, address(number))))
    assert fetches == [(0, 10)] * 50


def test_a_lost_fetch_gives_its_credit_back():
    role = knowing(3, room=20)
    assert asked(role.receive(0.0, head(99, address(1)))) == [(1, 11)]
    assert role.receive(0.0, head(99, address(2))) == []
    assert [(out.partition, out.count) for out in role.tick(1.0)] == [(address(2), 10)]
    assert [(out.partition, out.count) for out in role.tick(2.0)] == [(address(1), 5), (address(2), 5)]


def test_no_fetch_is_sent_into_less_room_than_a_record_while_others_may_use_it_up():
    role = consumer()
    role.set_room(0.0, 100, 600)  # a record is thought to have 256 bytes
    assert asked(role.receive(1.0, head(0, address(1)))) == [(0, 1)]
    assert asked(role.receive(1.0, head(0, address(2)))) == []
    assert asked(role.receive_run(1.1, direct(0, 1, address(1)))) == [(0, 1)]


def test_when_nobody_answers_the_producers_own_answers_are_heard():
    role = consumer()
    role.receive(1.0, head(5))
    times = [now for now in (2.1, 3.2, 4.3) if HearAnswers(PARTITION) in role.tick(now)]
    assert times == [3.2]


def test_dead_partitions_do_not_starve_the_living():
    role = consumer(LIMITS._replace(fetches=10))
    for number in range(100):
        role.receive(0.0, head(99, address(number)))
    living = address(1000)
    role.receive(0.0, head(0, living))
    answered = None
    for step in range(1, 600):
        if any(type(out) is Fetch and out.partition == living for out in role.tick(step / 10)):
            answered = step / 10
            break
    assert answered is not None
    assert answered <= 11.0


def test_however_many_partitions_nobody_has_the_others_do_not_wait_for_them():
    role = consumer(LIMITS._replace(fetches=10))
    for number in range(1000):
        role.receive(0.0, head(99, address(number)))
    for step in range(2500):
        role.tick(step / 10)
    role.receive(250.0, head(0, address(5000)))
    asked = [out for step in range(2500, 2521) for out in role.tick(step / 10) if isinstance(out, Fetch)]
    assert address(5000) in [fetch.partition for fetch in asked]
    assert len(asked) > 10  # nor do they wait for it


# -- ahead of a gap ---------------------------------------------------------------------------------


def test_live_records_behind_a_gap_are_kept_and_not_fetched():
    role = consumer()
    role.receive_run(0.0, run(0, 5))
    assert asked(role.receive_run(0.1, run(7, 9))) == [(5, 7)]
    assert role.receive_run(0.2, run(9, 12)) == []
    assert given(role.receive_run(0.3, direct(5, 7))) == [(5, 7), (7, 9), (9, 12)]
    assert role.positions[TOPIC, PARTITION] == (12, 12)
    assert role.fetches == 1


def test_records_behind_a_second_gap_are_fetched_later():
    role = consumer()
    assert asked(role.receive_run(0.0, run(2, 4))) == [(0, 2)]
    role.receive_run(0.0, run(6, 8))
    outputs = role.receive_run(0.1, direct(0, 2))
    assert (given(outputs), asked(outputs)) == ([(0, 2), (2, 4)], [(4, 8)])


def test_answers_that_overlap_what_is_kept_are_given_once():
    role = consumer()
    role.receive_run(0.0, run(4, 8))
    role.receive_run(0.0, run(6, 10))
    assert given(role.receive_run(0.1, direct(0, 6))) == [(0, 6), (6, 8), (8, 10)]


def test_kept_records_wait_for_room():
    role = consumer(room=3)
    role.receive_run(0.0, run(2, 9))
    assert given(role.receive_run(0.1, direct(0, 2))) == [(0, 2), (2, 3)]
    assert given(role.set_room(0.2, 4, 1000)) == [(3, 7)]
    assert given(role.set_room(0.3, 4, 1000)) == [(7, 9)]
    assert role.fetches == 1


def test_records_far_from_the_next_one_are_not_kept():
    role = consumer(LIMITS._replace(ahead_distance=100))
    role.receive_run(0.0, run(101, 105))
    assert role._catchup._ahead.records == 0
    role.receive_run(0.0, direct(0, 1))
    role.receive_run(0.0, run(101, 105))
    assert role._catchup._ahead.records == 4


def test_kept_records_are_bounded_for_one_partition_and_for_all():
    limits = LIMITS._replace(ahead_records=5, all_ahead_records=12, ahead_bytes=100, all_ahead_bytes=1000)
    role = consumer(limits)
    for number in range(4):
        role.receive_run(0.0, run(1, 5, address=address(number)))
        role.receive_run(0.0, run(5, 9, address=address(number)))
    assert role._catchup._ahead.records == 12
    role = consumer(limits)
    role.receive_run(0.0, Run(None, PARTITION, TOPIC, 1, [b"x" * 60]))
    role.receive_run(0.0, Run(None, PARTITION, TOPIC, 2, [b"x" * 60]))
    assert role._catchup._ahead.bytes == 60


def test_kept_records_are_given_up_when_nobody_fills_the_gap():
    role = consumer()
    role.receive_run(0.0, run(1, 5))
    for step in range(1, 100):
        role.tick(step / 10)
    assert (role._catchup._ahead.records, role._catchup._ahead.bytes) == (0, 0)
    outputs = role.receive_run(10.0, direct(0, 1))
    assert (given(outputs), asked(outputs)) == ([(0, 1)], [(1, 3)])


def test_accounts_are_even_when_everything_has_come():
    role = consumer(room=100)
    for number in range(20):
        role.receive_run(0.0, run(3, 7, address=address(number)))
    for _ in range(10):
        role.set_room(0.1, 100, 10**6)
        for number in range(20):
            role.receive_run(0.1, direct(0, 7, address(number)))
    catchup = role._catchup
    assert role.lag == 0
    room = catchup.room
    assert (catchup._ahead.records, catchup._ahead.bytes) == (0, 0)
    assert (room.reserved_records, room.reserved_bytes, catchup._under_way) == (0, 0, 0)
    role.tick(100.0)
    assert not catchup._alarms


def test_a_tick_costs_nothing_for_partitions_that_are_up_to_date():
    role = consumer()
    for number in range(10_000):
        role.receive_run(0.0, run(0, 1, address=address(number)))
    catchup = role._catchup
    assert (len(catchup._alarms), catchup._queue.length, len(catchup._paused)) == (0, 0, 0)
    assert role.tick(1.0) == []
