"""The envelope: which first frame is the delimiter."""

from __future__ import annotations

from dafka.zper.envelope import answer, without_delimiters


def test_a_first_frame_that_is_empty_and_followed_by_more_is_the_delimiter():
    assert without_delimiters([[b"", b"a"], [b"", b"b", b"c"]]) == [(True, [[b"a"], [b"b", b"c"]])]


def test_a_lone_empty_frame_is_a_message():
    assert without_delimiters([[b""]]) == [(False, [[b""]])]
    assert without_delimiters([[b"", b""]]) == [(True, [[b""]])]


def test_messages_with_and_without_stay_in_their_order():
    messages = [[b"a"], [b"b", b""], [b"", b"c"], [b"", b"d"], [b"e"]]
    assert without_delimiters(messages) == [
        (False, [[b"a"], [b"b", b""]]),
        (True, [[b"c"], [b"d"]]),
        (False, [[b"e"]]),
    ]


def test_an_answer_repeats_the_delimiter():
    assert answer(True, [b"a", b"b"]) == (b"", b"a", b"b")
    assert answer(False, [b"a", b"b"]) == [b"a", b"b"]
