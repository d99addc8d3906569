"""The record batches of a flush."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.raw import encode_message, messages_of_records
from dafka.zper.batches import RECORD_OCTETS, batches
from dafka.zper.gathering import Run
from dafka.zper.identity import Mode
from dafka.zper.singles import Singles


def run(messages, timestamp=7):
    return Run("c", Mode.NO_RESPONSE, False, messages, timestamp)


def read(batch):
    columns = decode_batch(batch.encode())
    return messages_of_records(columns.keys, columns.values, columns.headers)


messages_ = st.lists(st.lists(st.binary(max_size=300), min_size=1, max_size=4), min_size=1, max_size=8)


@given(st.lists(messages_, max_size=5), st.integers(1, 1500))
def test_every_message_is_in_one_batch_in_order_and_no_batch_is_too_large(runs, limit):
    made = list(batches([run(messages) for messages in runs], limit))
    assert [message for batch in made for message in read(batch)] == [one for some in runs for one in some]
    for batch in made:
        assert batch.sizes == [len(encode_message(message)) for message in batch.messages]
        assert len(batch.messages) == 1 or sum(batch.sizes) + RECORD_OCTETS * len(batch.sizes) <= limit
        repeated = sum(len(message[0]) for message in batch.messages if len(message) > 2)
        assert len(batch.encode()) <= sum(batch.sizes) + repeated + RECORD_OCTETS * len(batch.sizes) + 61


@given(st.lists(st.tuples(st.booleans(), messages_), max_size=5), st.integers(1, 1500))
def test_messages_that_were_taken_as_their_frames_are_in_the_same_batches(some, limit):
    runs = [[[message[0]] for message in messages] if single else messages for single, messages in some]
    taken = [
        Singles([frame for (frame,) in messages]) if single else messages
        for (single, _), messages in zip(some, runs, strict=True)
    ]
    plain = list(batches(map(run, runs), limit))
    made = list(batches(map(run, taken), limit))
    assert [read(batch) for batch in made] == [read(batch) for batch in plain]
    assert [batch[2:] for batch in made] == [batch[2:] for batch in plain]
    places = [place for batch in made for place in batch.places]
    assert places == list(range(sum(map(len, runs))))


def test_the_first_frame_of_a_marked_message_counts_twice():
    three = [[bytes(400), b"", b""]]
    made = list(batches([run(three), run(three)], 1000))
    assert [len(batch.messages) for batch in made] == [1, 1]
    assert len(made[0].encode()) > 800


def test_a_record_has_the_time_at_which_its_message_came():
    (batch,) = batches([run([[b"a"]], 5), run([[b"b"], [b"c"]], 9)], 10_000)
    assert decode_batch(batch.encode()).timestamps == [5, 9, 9]


def test_messages_that_were_copied_from_another_node_have_a_header_and_batches_of_their_own():
    own, copied = run([[b"a"], [b"b"]]), run([[b"c"], [b"k", b"l", b"m"]])._replace(copied=True)
    made = list(batches([copied, own, copied], 10_000))
    assert [read(batch) for batch in made] == [copied.messages, own.messages, copied.messages]
    headers = [[name for name, _ in some] for some in decode_batch(made[0].encode()).headers]
    assert headers == [["zper.copied"], ["zper.frames", "zper.copied"]]
    assert not any(decode_batch(made[1].encode()).headers)


def test_halves_have_everything_once():
    (batch,) = batches([run([[b"%d" % number] for number in range(5)])], 10_000)
    one, other = batch.halves()
    assert [*one.messages, *other.messages] == batch.messages
    assert [*one.places, *other.places] == list(batch.places)
    assert [len(column) for column in one[:3]] == [2, 2, 2]
    assert read(other) == [[b"2"], [b"3"], [b"4"]]
