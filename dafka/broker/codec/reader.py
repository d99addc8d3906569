"""Requests, from bytes to objects of kafka-python's classes, by kafka-python's schemas.

kafka-python's own decoders are for messages of a trusted broker: they do not check lengths against the end of
the buffer and accept a varint of any length. A listener has to expect any bytes, so this module decodes
strictly by the same schemas: every length is checked against the remaining octets, and the number of items in
a request is limited (:class:`Items`). The reader of a class and version is composed of closures once and then
runs without the schema.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache, wraps
from threading import get_ident
from typing import Any, ParamSpec, TypeVar
from uuid import UUID

from dafka.broker.codec import limits
from dafka.broker.codec.errors import BadRequestError

Read = Callable[[memoryview, int], "tuple[Any, int]"]
P = ParamSpec("P")
T = TypeVar("T")

_NO_UUID = UUID(int=0)
_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_FIXED = {"int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q", "float64": "d", "bool": "?"}
_NULLABLE = {*_FIXED, "uuid", "bitfield"}  # types for which the check for null is left out


class TooManyItems(BadRequestError):
    """A request with more items than its reader allows."""


class Items:
    """How many items a request may still have, tagged fields included.

    An item takes hundreds of octets of memory and time in the hub, even if it has few octets in the request.
    """

    __slots__ = ("left",)

    def __init__(self, most: int = -1) -> None:
        self.left = limits.REQUEST_ITEMS if most < 0 else most

    def take(self, count: int) -> None:
        """Count items before they are read. Raises TooManyItems, a BadRequestError, if there are too many."""
        self.left -= count
        if self.left < 0:
            raise TooManyItems("items", f"more than {limits.REQUEST_ITEMS} items in a request")


def read_request(request_class: Any, version: int, data: memoryview, position: int) -> Any:
    """The request whose body begins at ``position``. Raises BadRequestError.

    Octets after the body are ignored, as in Kafka: librdkafka 2.16 sends three octets too many when it
    requests the metadata of all topics (version 13).
    """
    return read_message(request_class, version, data, position)[0]


def read_message(message_class: Any, version: int, data: memoryview, position: int) -> tuple[Any, int]:
    """The message whose body begins at ``position``, and where it ends. Raises BadRequestError."""
    return _message(message_class, version, get_ident())(data, position)


def naming_errors(name: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function that reads a message of this name: errors of decoding become BadRequestError."""

    def decorate(read: Callable[P, T]) -> Callable[P, T]:
        @wraps(read)
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return read(*args, **kwargs)
            except (struct.error, IndexError) as error:
                raise BadRequestError("short", f"{name} ends too early") from error
            except UnicodeDecodeError as error:
                raise BadRequestError("text", f"{name}: {error}") from error

        return checked

    return decorate


def read_varint(data: memoryview, position: int) -> tuple[int, int]:
    """An unsigned varint of at most 32 bits."""
    octet = data[position]
    if octet < 0x80:
        return octet, position + 1
    value = shift = 0
    while True:
        octet = data[position]
        position += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            break
        shift += 7
        if shift > 28:
            raise BadRequestError("varint", "a varint of more than five octets")
    return value & 0xFFFFFFFF, position


def read_count(data: memoryview, position: int, flexible: bool, items: Items) -> tuple[int, int]:
    """The number of items of a non-nullable array."""
    count, position = read_size(data, position, flexible)
    if count < 0:
        raise BadRequestError("null", "an array is null")
    _check_count(count, len(data) - position)
    items.take(count)
    return count, position


def read_size(data: memoryview, position: int, flexible: bool) -> tuple[int, int]:
    """The length of an array or of bytes; negative for null."""
    if flexible:
        octet = data[position]
        if octet < 0x80:
            return octet - 1, position + 1
        size, position = read_varint(data, position)
        return size - 1, position
    return _INT32.unpack_from(data, position)[0], position + 4


def read_topic(data: memoryview, position: int, by_id: bool, flexible: bool) -> tuple[str | UUID, int]:
    """The id or the name of a topic."""
    if by_id:
        octets, position = _octets(data, position, 16)
        return UUID(bytes=octets), position
    name, position = read_compact_string(data, position) if flexible else read_string(data, position)
    if name is None:
        raise BadRequestError("null", "the name of a topic is null")
    return name, position


def skip_tags(data: memoryview, position: int, items: Items | None = None) -> int:
    """The position after tagged fields, without reading them."""
    if not data[position]:
        return position + 1
    count, position = read_varint(data, position)
    if count:
        (items or Items()).take(count)
    for _ in range(count):
        _, position = read_varint(data, position)
        size, position = read_varint(data, position)
        position += size
        if position > len(data):
            raise BadRequestError("short", "a tagged field ends too early")
    return position


def read_string(data: memoryview, position: int) -> tuple[str | None, int]:
    """A string after its length in two octets; -1 is null."""
    return _text(data, position + 2, _INT16.unpack_from(data, position)[0])


def read_compact_string(data: memoryview, position: int) -> tuple[str | None, int]:
    """A string after a varint of its length plus one; 0 is null."""
    size, position = read_varint(data, position)
    return _text(data, position, size - 1)


def _text(data: memoryview, position: int, size: int) -> tuple[str | None, int]:
    octets, end = _octets(data, position, size)
    return None if octets is None else str(octets, "utf-8"), end


def _octets(data: memoryview, position: int, size: int) -> tuple[bytes | None, int]:
    if size < 0:
        return None, position
    end = position + size
    if end > len(data):
        raise BadRequestError("short", f"{size} octets are announced, {len(data) - position} are left")
    return bytes(data[position:end]), end


def _bytes(data: memoryview, position: int) -> tuple[bytes | None, int]:
    (size,) = _INT32.unpack_from(data, position)
    return _octets(data, position + 4, size)


def _compact_bytes(data: memoryview, position: int) -> tuple[bytes | None, int]:
    size, position = read_varint(data, position)
    return _octets(data, position, size - 1)


def _uuid(data: memoryview, position: int) -> tuple[UUID | None, int]:
    octets, end = _octets(data, position, 16)
    value = UUID(bytes=octets)
    return (None if value == _NO_UUID else value), end


def _bits(data: memoryview, position: int) -> tuple[set[int] | None, int]:
    """Authorized operations, which only responses have; None if they were not requested."""
    (value,) = _INT32.unpack_from(data, position)
    return (None if value == -(2**31) else {bit for bit in range(32) if value >> bit & 1}), position + 4


def _fixed(code: str) -> Read:
    layout = struct.Struct(">" + code)
    unpack, size = layout.unpack_from, layout.size

    def read(data: memoryview, position: int) -> tuple[Any, int]:
        return unpack(data, position)[0], position + size

    return read


def _not_null(read: Read, name: str) -> Read:
    def checked(data: memoryview, position: int) -> tuple[Any, int]:
        value, position = read(data, position)
        if value is None:
            raise BadRequestError("null", f"{name} is null")
        return value, position

    return checked


def _check_count(count: int, left: int) -> None:
    if count > left:  # each item has at least one octet
        raise BadRequestError("short", f"{count} items are announced, {left} octets are left")


def _array(read_item: Read, compact: bool, items_left: Items) -> Read:
    def read(data: memoryview, position: int) -> tuple[list[Any] | None, int]:
        if compact:
            count, position = read_varint(data, position)
            count -= 1
        else:
            (count,) = _INT32.unpack_from(data, position)
            position += 4
        if count < 0:
            return None, position
        _check_count(count, len(data) - position)
        items_left.take(count)
        items = []
        for _ in range(count):
            item, position = read_item(data, position)
            items.append(item)
        return items, position

    return read


def _tags(fields: dict[int, tuple[str, Read]], items_left: Items) -> Callable[[Any, memoryview, int], int]:
    def read(target: Any, data: memoryview, position: int) -> int:
        count, position = read_varint(data, position)
        if count:
            items_left.take(count)
        for _ in range(count):
            tag, position = read_varint(data, position)
            size, position = read_varint(data, position)
            end = position + size
            if end > len(data):
                raise BadRequestError("short", f"tagged field {tag} ends too early")
            if tag in fields:
                name, read_field = fields[tag]
                value, behind = read_field(data, position)
                if behind != end:
                    raise BadRequestError("length", f"the length of tagged field {tag} is wrong")
                setattr(target, name, value)
            position = end
        return position

    return read


def _struct(field: Any, version: int, flexible: bool, data_class: Any, items_left: Items) -> Read:
    plain = [(one.name, _field(one, version, flexible, items_left)) for one in field.untagged_fields(version)]
    tagged = {
        one.tag: (one.name, _field(one, version, flexible, items_left))
        for one in field.fields.values()
        if one.for_version_q(version) and one.tagged_field_q(version)
    }
    read_tags = _tags(tagged, items_left)
    new = object.__new__

    def read(data: memoryview, position: int) -> tuple[Any, int]:
        value = new(data_class)
        value._version = version
        value.tags = value.unknown_tags = None
        for name, read_field in plain:
            field_value, position = read_field(data, position)
            setattr(value, name, field_value)
        if flexible:
            position = read_tags(value, data, position)
        return value, position

    return read


def _nullable_struct(read_struct: Read) -> Read:
    def read(data: memoryview, position: int) -> tuple[Any, int]:
        if data[position] == 0xFF:
            return None, position + 1
        return read_struct(data, position + 1)

    return read


def _field(field: Any, version: int, flexible: bool, items_left: Items) -> Read:
    read = _nullable_field(field, version, flexible, items_left)
    if field.nullable_for_version_q(version) or field.type_str in _NULLABLE:
        return read
    return _not_null(read, field.name)


def _nullable_field(field: Any, version: int, flexible: bool, items_left: Items) -> Read:
    if field.is_struct_array():
        item = _struct(field.array_of, version, flexible, field.data_class, items_left)
        return _array(item, flexible, items_left)
    if field.is_array():
        # In kafka-python's schema the item inherits the nullability of the array; items are not nullable.
        item = _nullable_field(field.array_of, version, flexible, items_left)
        if field.array_of.type_str == "string":
            item = _not_null(item, field.name)
        return _array(item, flexible, items_left)
    if field.is_struct():
        read = _struct(field, version, flexible, field.data_class, items_left)
        return _nullable_struct(read) if field.nullable_for_version_q(version) else read
    kind = field.type_str
    if kind == "bitfield":
        return _bits
    if kind == "string":
        return read_compact_string if flexible else read_string
    if kind in ("bytes", "records"):
        return _compact_bytes if flexible else _bytes
    return _uuid if kind == "uuid" else _fixed(_FIXED[kind])


@cache
def _message(message_class: Any, version: int, thread: int) -> Read:
    # One reader for each thread, because a reader counts its items. The class is the argument, because its
    # schema has only a weak reference to it.
    flexible = message_class.flexible_version_q(version)
    items_left = Items()
    read = _struct(message_class._struct, version, flexible, message_class, items_left)

    @naming_errors(message_class.__name__)
    def read_message(data: memoryview, position: int) -> tuple[Any, int]:
        items_left.left = limits.REQUEST_ITEMS
        request, position = read(data, position)
        request._header = request._min_version = request._max_version = None
        return request, position

    return read_message
