"""Which regular expressions of a group are resolved, and when."""

from __future__ import annotations

import pytest
from broker.groups.modern.known_topics import FakeTopics

from dafka.broker.groups.consumer.expressions import Expressions

T, U = frozenset("t"), frozenset("u")


@pytest.fixture
def topics():
    return FakeTopics(t=1)


@pytest.fixture
def expressions():
    made = Expressions()
    made.replace(None, "t.*")
    return made


def test_all_expressions_of_a_group_are_resolved_together(expressions, topics):
    expressions.replace(None, "u.*")
    assert expressions.begin(0.0, topics, 600.0).expressions == {"t.*", "u.*"}
    assert expressions.begin(0.0, topics, 600.0) is None  # that is under way
    assert expressions.lacks("t.*") and not expressions.lacks(None)
    assert expressions.end({"t.*": T, "u.*": frozenset()})
    assert expressions.topics("t.*") == T and not expressions.lacks("u.*")
    assert expressions.begin(0.0, topics, 600.0) is None


def test_a_new_expression_has_all_of_them_resolved(expressions, topics):
    expressions.begin(0.0, topics, 600.0)
    expressions.replace(None, "u.*")
    expressions.end({"t.*": T})
    assert expressions.begin(0.0, topics, 600.0).expressions == {"t.*", "u.*"}


def test_only_topics_that_are_created_have_them_resolved_again(expressions, topics):
    expressions.begin(0.0, topics, 600.0)
    expressions.end({"t.*": T})
    topics.delete("t")
    assert expressions.begin(0.0, topics, 600.0) is None
    assert expressions.topics("t.*") == T  # as in Kafka, until the next time
    topics.create("u", 1)
    assert expressions.begin(0.0, topics, 600.0) is not None
    assert expressions.end({"t.*": frozenset()})


def test_topics_created_meanwhile_count_for_the_next_resolution(expressions, topics):
    expressions.begin(0.0, topics, 600.0)
    topics.create("t2", 1)
    expressions.end({"t.*": T})
    assert expressions.begin(0.0, topics, 600.0) is not None
    assert not expressions.end({"t.*": T})


def test_the_interval_passes_between_resolutions_without_a_reason(expressions, topics):
    expressions.begin(5.0, topics, 600.0)
    expressions.end({"t.*": T})
    assert expressions.begin(605.0, topics, 600.0) is None
    assert expressions.begin(605.1, topics, 600.0) is not None


def test_an_expression_that_nobody_has_any_more_is_forgotten(expressions, topics):
    expressions.replace(None, "t.*")
    expressions.begin(0.0, topics, 600.0)
    expressions.end({"t.*": T})
    expressions.replace("t.*", "u.*")
    assert expressions.topics("t.*") == T
    expressions.replace("t.*", None)
    assert expressions.resolved == {}
    expressions.begin(0.0, topics, 600.0)
    expressions.replace("u.*", None)
    assert not expressions.end({"u.*": U})
    assert expressions.resolved == {} and expressions.begin(700.0, topics, 600.0) is None


def test_a_resolution_that_fails_is_tried_again(expressions, topics):
    expressions.begin(0.0, topics, 600.0)
    expressions.fail()
    assert expressions.begin(0.0, topics, 600.0) is not None


def test_topics_from_before_a_restart_count_until_they_are_resolved_again(expressions, topics):
    expressions.restore({"t.*": T, "of nobody": U})
    assert expressions.topics("t.*") == T
    assert expressions.begin(0.0, topics, 600.0).expressions == {"t.*"}
    assert not expressions.end({"t.*": T})
    assert expressions.resolved == {"t.*": T} and expressions.begin(0.0, topics, 600.0) is None
