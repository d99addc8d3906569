from __future__ import annotations

import pytest

from compat.broker import Topic
from compat.broker._topic import topic_texts
from dafka.overlay.errors import InvalidValue


@pytest.mark.parametrize(
    ("left", "right", "joined"),
    [
        ("/a", "b", "/a/b"),
        ("/a", "/b", "/a/b"),
        ("/a/", "/b/c", "/a//b/c"),
        ("/b/c", "/a/", "/b/c/a"),
        ("", "b", "b"),
        ("/a", "", "/a"),
        ("/a/", "", "/a"),
        ("", "", ""),
    ],
)
def test_topics_are_joined_with_one_separator(left: str, right: str, joined: str):
    assert (Topic(left) / Topic(right)).string() == joined
    topic = Topic(left)
    topic /= Topic(right)
    assert str(topic) == repr(topic) == joined


def test_a_topic_is_joined_with_a_topic_alone():
    with pytest.raises(TypeError):
        Topic("/a") / "b"
    with pytest.raises(TypeError):
        topic = Topic("/a")
        topic /= "b"


def test_one_topic_or_several_are_taken_in_any_form():
    assert topic_texts("/a") == topic_texts(Topic("/a")) == topic_texts(b"/a") == ["/a"]
    assert topic_texts(["/a", Topic("/b")]) == topic_texts(iter(("/a", b"/b"))) == ["/a", "/b"]


@pytest.mark.parametrize("wrong", [5, None, [5], [None]])
def test_anything_but_a_topic_is_refused(wrong: object):
    with pytest.raises(TypeError):
        topic_texts(wrong)


def test_half_of_a_surrogate_pair_is_refused():
    with pytest.raises(InvalidValue):
        Topic("\ud800")
