"""Messages on their way to a replica: which answer acknowledges what."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dafka.zper.in_flight import InFlight


def sent(*frames, messages=10, octets=1000):
    one = InFlight(0, messages, octets)
    one.send([(number + 1, [frame]) for number, frame in enumerate(frames)])
    return one


def test_each_answer_of_mode_2_acknowledges_the_oldest_message():
    one = sent(b"a", b"a", b"b")
    assert [one.answer([frame]) and one.acknowledged for frame in (b"a", b"a", b"b")] == [1, 2, 3]
    assert len(one) == one.octets == 0


def test_an_answer_at_a_flush_acknowledges_all_up_to_its_message():
    one = sent(b"a", b"b", b"c", b"d")
    assert one.answer([b"c"])
    assert one.acknowledged == 3


def test_the_first_of_equal_frames_is_acknowledged_and_later_answers_make_up_for_it():
    one = sent(b"a", b"b", b"b", b"c")
    one.answer([b"b"])
    assert one.acknowledged == 2
    one.answer([b"c"])
    assert one.acknowledged == 4


def test_a_frame_that_is_not_a_messages_last_acknowledges_the_messages_before_it():
    one = InFlight(0, 10, 1000)
    one.send([(1, [b"id1", b"x"]), (2, [b"id2", b"x"]), (3, [b"id3", b"y"])])
    assert one.answer([b"id3"])
    assert one.acknowledged == 2
    assert one.answer([b"id3"])
    assert one.acknowledged == 2
    assert one.answer([b"y"])
    assert one.acknowledged == 3


def test_an_answer_with_the_identity_acknowledges_the_oldest_message():
    one = InFlight(0, 10, 1000, identity=b"me")
    assert not one.answer([b"me"])
    one.send([(1, [b"a"]), (2, [b"b"])])
    assert one.answer([b"me"])
    assert one.acknowledged == 1


def test_an_answer_to_nothing_is_told():
    one = sent(b"a")
    assert not one.answer([b"b"])
    assert one.acknowledged == 0


def test_the_delimiter_of_an_answer_means_nothing():
    assert sent(b"a").answer([b"", b"a"])


def test_the_window_is_bounded_by_messages_and_by_octets():
    assert sent(*[b"a"] * 4, messages=10).room == 6
    assert sent(*[b"a"] * 10, messages=10).room == 0
    assert sent(b"a" * 1000).room == 0


def test_a_full_window_grows_by_one_for_each_second_without_an_answer():
    one = sent(b"a", b"b", messages=2)
    one.wait_longer()
    assert one.room == 1
    one.send([(3, [b"c"])])
    assert one.room == 0
    one.wait_longer()
    one.answer([b"c"])
    assert (one.acknowledged, one.room) == (3, 2)


def test_a_window_with_room_does_not_grow():
    one = sent(b"a", messages=2)
    one.wait_longer()
    assert one.room == 1


def test_messages_lost_with_a_connection_are_sent_again():
    one = sent(b"a", b"b", b"c")
    one.answer([b"a"])
    assert one.lose() == 1
    assert len(one) == one.octets == 0


def test_offsets_that_are_not_for_the_replica_are_acknowledged_with_the_messages_before_them():
    one = sent(b"a")
    one.skip(5)
    assert one.acknowledged == 0
    one.answer([b"a"])
    assert one.acknowledged == 5
    one.skip(9)
    assert one.acknowledged == 9


@given(st.lists(st.sampled_from([b"a", b"b", b"c"]), max_size=30), st.data())
def test_nothing_is_acknowledged_that_was_not_answered(frames, data):
    """The replica flushes some messages at a time and says the last frame of each flush."""
    one = sent(*frames, messages=100)
    flushed = 0
    while flushed < len(frames):
        flushed = data.draw(st.integers(flushed + 1, len(frames)))
        one.answer([frames[flushed - 1]])
        assert one.acknowledged <= flushed
