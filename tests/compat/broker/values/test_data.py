from __future__ import annotations

import pytest

from compat.broker import Data, ImmutableData


def test_data_is_made_of_objects_and_turned_back():
    assert Data.to_py(Data.from_py([1, {"a"}, {"b": None}])) == (1, {"a"}, {"b": None})
    assert Data().get_type() == Data.Type.Nil
    assert Data.to_py(Data()) is None


def test_data_can_be_made_of_data():
    assert Data(Data(5)) == Data(5)


def test_immutable_data_becomes_immutable_objects():
    there = ImmutableData.to_py(Data([{1}, {"a": [{2}]}, "text"]))
    assert there == (frozenset({1}), {"a": (frozenset({2}),)}, "text")
    assert type(there[0]) is type(there[1]["a"][0]) is frozenset
    assert isinstance(there[1], ImmutableData.HashableReadOnlyDict)
    assert hash(there) == hash(ImmutableData.to_py(Data(there)))


def test_data_cannot_be_made_of_an_unknown_class():
    with pytest.raises(TypeError, match="unsupported data type: <class 'complex'>"):
        Data(1j)
