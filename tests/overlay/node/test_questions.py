"""The peers that have not answered a question yet."""

from __future__ import annotations

from dafka.overlay.node.questions import Questions


def test_each_question_has_its_own_answers_and_lost_peers_owe_none():
    questions = Questions()
    first, silent = questions.ask([b"a", b"b", b"c"])
    _, others = questions.ask([b"a", b"b"])
    questions.answered(b"a", first)
    questions.answered(b"a", first)
    questions.answered(b"z", first)
    assert (silent, others) == ({b"b", b"c"}, {b"a", b"b"})
    questions.gone(b"b")
    assert (silent, others) == ({b"c"}, {b"a"})


def test_answers_that_nobody_waits_for_are_ignored():
    questions = Questions()
    question, silent = questions.ask([b"a"])
    questions.end(question)
    questions.answered(b"a", question)
    questions.answered(b"a", b"never asked")
    assert silent == {b"a"}
