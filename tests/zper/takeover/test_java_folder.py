"""Reading the folder of a Java server: segments, messages across them, and every kind of end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from zper.takeover.folders import segments

from dafka.protocol.raw import encode_message
from dafka.zper.takeover import java_folder
from dafka.zper.takeover.java_folder import PADDING, FolderError, JavaTopic, topics_of

MESSAGES = [encode_message([b"%d" % number] * (1 + number % 3)) for number in range(100)]
WHOLE = b"".join(MESSAGES)
EMPTY = b"\0\0"


def read(path: Path, **options: bool) -> list[bytes]:
    return [message for piece in JavaTopic(path).read(**options) for message in piece.messages]


def left_out(path: Path, **options: bool) -> int:
    topic = JavaTopic(path)
    for _ in topic.read(**options):
        pass
    return topic.left_out


@pytest.fixture
def topic(tmp_path: Path) -> Path:
    return tmp_path / "events"


@pytest.mark.parametrize(
    "cuts", [[], [3], [len(MESSAGES[0])], [1, 2, 3], [len(WHOLE) - 1], list(range(1, 60, 7))]
)
def test_messages_may_begin_in_one_segment_and_end_in_the_next(topic: Path, cuts: list[int]):
    segments(topic, WHOLE, cuts)
    assert read(topic) == MESSAGES
    assert left_out(topic) == 0


def test_the_first_segment_says_the_first_position(topic: Path):
    segments(topic, WHOLE, [50], base=7_000_000_000)
    assert JavaTopic(topic).first == 7_000_000_000
    assert read(topic) == MESSAGES


def test_frames_in_a_form_that_is_not_ours_stay_as_they_are(topic: Path):
    messages = [b"\x00\xff" + b"x" * 255, b"\x02" + (1).to_bytes(8, "big") + b"y"]
    segments(topic, b"".join(messages), [100])
    assert read(topic) == messages


@given(cut=st.integers(0, len(WHOLE)), zeros=st.sampled_from([0, PADDING, PADDING + 7, 5000]))
def test_a_last_segment_that_is_torn_anywhere_ends_behind_its_last_whole_message(
    tmp_path_factory: pytest.TempPathFactory, cut: int, zeros: int
):
    path = tmp_path_factory.mktemp("folder") / "events"
    segments(path, WHOLE[:cut] + bytes(zeros), [min(cut, 100)])
    found = b"".join(read(path))
    whole = max(
        sum(map(len, MESSAGES[:count])) for count in range(101) if sum(map(len, MESSAGES[:count])) <= cut
    )
    assert found[:whole] == WHOLE[:whole]
    # A message whose head was written, and the rest of which is zeros, is one for the Java server, too.
    assert len(found) - whole in (0, *(len(message) for message in MESSAGES))
    assert left_out(path) == cut + zeros - len(found)


@pytest.mark.parametrize("end", [b"x\0\0", b"\0\0\0", b""])
def test_a_message_that_ends_with_zeros_is_whole_before_padding(topic: Path, end: bytes):
    messages = [*MESSAGES[:3], encode_message([b"id", b"value" + end])]
    segments(topic, b"".join(messages) + bytes(PADDING), [])
    assert read(topic) == messages
    assert left_out(topic) == PADDING


def test_a_message_whose_next_frame_would_begin_in_the_padding_is_torn(topic: Path):
    segments(topic, MESSAGES[0] + b"\x01\x02id" + bytes(PADDING), [])
    assert read(topic) == MESSAGES[:1]
    assert left_out(topic) == 4 + PADDING


def test_a_few_zeros_at_the_end_are_empty_messages(topic: Path):
    segments(topic, WHOLE + 3 * EMPTY, [])
    assert read(topic) == [*MESSAGES, EMPTY, EMPTY, EMPTY]
    assert read(topic, allow_empty=False) == MESSAGES
    assert left_out(topic, allow_empty=False) == 6


def test_octets_that_are_not_a_frame_end_the_last_segment(topic: Path):
    segments(topic, MESSAGES[0] + b"\x04\x01x" + MESSAGES[1], [])
    assert read(topic) == MESSAGES[:1]
    assert left_out(topic) == 3 + len(MESSAGES[1])


def test_octets_that_are_not_a_frame_in_another_segment_are_an_error_with_the_position(topic: Path):
    segments(topic, MESSAGES[0] + b"\x04\x01x" + WHOLE, [20])
    with pytest.raises(FolderError, match=rf"00000.dat is damaged at position {len(MESSAGES[0])}: flags"):
        read(topic)


def test_a_frame_of_an_absurd_size_in_another_segment_is_an_error(
    topic: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(java_folder, "LARGEST", 50)
    segments(topic, MESSAGES[0] + b"\x02" + (2**60).to_bytes(8, "big") + bytes(100), [100])
    with pytest.raises(FolderError, match="a message of more than 50 octets"):
        read(topic)


def test_a_segment_that_is_missing_is_an_error_with_the_positions(topic: Path):
    paths = segments(topic, WHOLE, [50, 90])
    paths[1].unlink()
    with pytest.raises(FolderError, match="positions 50 to 89 are in no file"):
        JavaTopic(topic)


def test_padding_of_a_segment_that_has_a_follower_is_passed_over(topic: Path):
    first, *_ = segments(topic, WHOLE, [50])
    first.write_bytes(first.read_bytes() + bytes(PADDING))
    assert read(topic) == MESSAGES


def test_messages_have_the_time_of_their_file(topic: Path):
    first, _ = segments(topic, WHOLE, [50])
    os.utime(first, (1000, 1000))
    pieces = list(JavaTopic(topic).read())
    assert pieces[0].modified == 1_000_000
    assert pieces[-1].modified > 1_000_000


def test_other_files_and_folders_are_passed_over(tmp_path: Path):
    segments(tmp_path / "events", WHOLE, [])
    segments(tmp_path / "alarms", b"", [])
    (tmp_path / "events" / "1.dat").write_bytes(b"x")
    (tmp_path / "events" / f"{5:020d}.dat.bak").write_bytes(b"x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    assert [topic.name for topic in topics_of(tmp_path)] == ["alarms", "events"]
    assert [len(topic.segments) for topic in topics_of(tmp_path)] == [1, 1]


def test_a_folder_without_topics_or_with_an_illegal_name_is_an_error(tmp_path: Path):
    with pytest.raises(FolderError, match="has no folder TOPIC"):
        topics_of(tmp_path)
    segments(tmp_path / "no topic", WHOLE, [])
    with pytest.raises(FolderError, match="no topic: topic-characters"):
        topics_of(tmp_path)
