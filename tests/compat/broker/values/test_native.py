from __future__ import annotations

import ipaddress

import pytest

from compat.broker import Count, Data, Enum, Port, Set, Table, Timespan, Timestamp, Vector

GIVEN = {
    "Nil": (None, "as_none", None),
    "Boolean": (True, "as_boolean", True),
    "Count": (Count(5), "as_count", 5),
    "Integer": (-5, "as_integer", -5),
    "Real": (2.5, "as_real", 2.5),
    "String": ("ä", "as_string", "ä".encode()),
    "Port": (Port(1, Port.TCP), "as_port", Port(1, Port.TCP)),
    "EnumValue": (Enum("A"), "as_enum_value", Enum("A")),
    "Timespan": (Timespan(2.5), "as_timespan", 2.5),
    "Timestamp": (Timestamp(2.5), "as_timestamp", 2.5),
    "Vector": ([1], "as_vector", Vector([Data(1)])),
    "Set": ({1}, "as_set", Set([Data(1)])),
    "Table": ({1: 2}, "as_table", Table({Data(1): Data(2)})),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_data_gives_what_it_holds(kind: str):
    thing, accessor, there = GIVEN[kind]
    data = Data(thing)
    assert data.get_type() == Data.Type[kind]
    assert getattr(data, accessor)() == there
    assert type(getattr(data, accessor)()) is type(there)


@pytest.mark.parametrize("kind", GIVEN)
def test_data_of_another_type_is_refused(kind: str):
    other = Data(ipaddress.ip_address("::1"))
    with pytest.raises(RuntimeError, match=f"data of type Address, not {kind}"):
        getattr(other, GIVEN[kind][1])()


def test_addresses_and_subnets():
    assert str(Data(ipaddress.ip_address("10.1.2.3")).as_address()) == "10.1.2.3"
    assert str(Data(ipaddress.ip_network("10.0.0.0/8")).as_subnet()) == "10.0.0.0/8"


def test_data_is_ordered_by_type_and_then_by_value():
    ascending = [Data(x) for x in (None, True, Count(3), -1, 2, 0.5, "a", "b", (1,), (1, 2))]
    descending = list(reversed(ascending))
    assert sorted(descending) == ascending
    assert Data(1) != Data(Count(1)) != Data(1.0)
    assert Data(1) != 1
    assert len({Data(1), Data(1), Data(True), Data([1]), Data((1,))}) == 3


def test_elements_are_not_objects_of_the_class_that_programs_make():
    element = Data([1]).as_vector()[0]
    assert not isinstance(element, Data)
    assert element == Data(1)
    assert Data(element) == Data(1)


class TestVector:
    def test_it_is_a_sequence_that_can_be_changed(self):
        vector = Vector([Data(1), Data(2)])
        vector.append(Data(3))
        vector.insert(0, Data(0))
        vector.extend([Data(4)])
        assert repr(vector) == "Vector[0, 1, 2, 3, 4]"
        assert vector.pop() == Data(4)
        del vector[0]
        vector[0] = Data("one")
        vector[1:2] = [Data(7), Data(8)]
        assert repr(vector[1:]) == "Vector[7, 8, 3]"
        assert Data(8) in vector
        assert len(vector) == 4
        assert Data.to_py(Data(vector)) == ("one", 7, 8, 3)

    def test_changes_do_not_reach_the_data_that_it_came_from(self):
        data = Data([1])
        data.as_vector().clear()
        assert str(data) == "(1)"

    def test_an_index_beyond_its_end_is_refused(self):
        with pytest.raises(IndexError):
            Vector()[0]


class TestSet:
    def test_it_has_each_element_once_and_in_order(self):
        things = Set([Data(2), Data(1), Data(2)])
        things.add(Data("a"))
        things.add(Data(0))
        assert repr(things) == "Set{0, 1, 2, a}"
        things.remove(Data(1))
        things.remove(Data(77))
        assert [str(one) for one in things] == ["0", "2", "a"]
        assert Data(2) in things and Data(1) not in things and 2 not in things
        assert things == Set(reversed(list(things)))
        assert Data.to_py(Data(things)) == {0, 2, "a"}
        things.clear()
        assert not things and repr(things) == "Set{}"

    def test_it_has_no_hash(self):
        with pytest.raises(TypeError):
            hash(Set())


class TestTable:
    def test_it_is_a_mapping_that_can_be_changed(self):
        table = Table({Data("b"): Data(2)})
        table[Data("a")] = Data(1)
        table[Data("b")] = Data(3)
        assert repr(table) == "Table{a: 1, b: 3}"
        assert [(str(key), str(value)) for key, value in table.items()] == [("a", "1"), ("b", "3")]
        assert [str(key) for key in table] == ["a", "b"]
        assert Data("a") in table
        del table[Data("a")]
        assert len(table) == 1
        assert Data.to_py(Data(table)) == {"b": 3}

    def test_a_missing_key_is_named(self):
        with pytest.raises(KeyError, match="missing"):
            Table()[Data("missing")]


@pytest.mark.parametrize(
    "put",
    [
        lambda: Vector([1]),
        lambda: Vector().append("x"),
        lambda: Set([1]),
        lambda: Set().add(1),
        lambda: Table({1: 2}),
        lambda: Table()[1],
    ],
)
def test_containers_take_data_alone(put):
    with pytest.raises(TypeError, match="Data is wanted here"):
        put()


@pytest.mark.parametrize("container", [Set, Table, Vector])
def test_containers_are_made_of_elements(container):
    with pytest.raises(TypeError, match=f"a {container.__name__} is made of its elements, not of int"):
        container(5)
