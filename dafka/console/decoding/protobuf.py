"""Protobuf, by a schema of the registry.

A registry keeps the text of .proto files. protoc (of grpcio-tools) compiles it in a process of its own, which
is ended when it takes too long, and sees only the files of this schema and Google's own.
"""

from __future__ import annotations

import base64
import binascii
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gevent

from dafka.console import limits
from dafka.console.decoding.errors import DecodingError

_FILE = "schema.proto"  # the name of the schema itself, which the registry does not tell
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_][A-Za-z0-9_.-]*)*\.proto", re.ASCII)
_LONG_WORD = re.compile(rb"\w{256}", re.ASCII)
_DEEPEST_INDEX = 32


class ProtobufSchema:
    """A .proto file with what it imports. Raises DecodingError."""

    kind = "Protobuf"

    def __init__(self, text: str, references: Sequence[tuple[str, str]] = ()) -> None:
        """``references``: the files that are imported, by name, each behind those that it imports itself."""
        try:
            from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
            from google.protobuf.message import DecodeError
        except ImportError:
            raise DecodingError("Protobuf needs protobuf: pip install 'dafka[console]'") from None
        self._class_of = message_factory.GetMessageClass
        self._to_dict = json_format.MessageToDict
        self._errors = (DecodeError, json_format.Error, TypeError, ValueError, RecursionError)
        files = [*references, (_FILE, text)]
        compiled = [(name, _octets(content)) for name, content in files]
        found = descriptor_pb2.FileDescriptorSet()
        pool = descriptor_pool.DescriptorPool()
        try:
            if all(octets is not None for _, octets in compiled):
                for name, octets in compiled:
                    found.file.add().MergeFromString(octets)
                    found.file[-1].name = name
            elif any(octets is not None for _, octets in compiled):
                raise DecodingError("its Protobuf schema is text and refers to one that is not")
            else:
                found.ParseFromString(_compiled(files))
            for one in found.file:
                pool.Add(one)
            self._file = pool.FindFileByName(_FILE)
        except (DecodeError, TypeError, KeyError, ValueError) as error:
            raise DecodingError(f"its Protobuf schema cannot be understood: {error!s:.300}") from None
        self._pool = pool
        self._messages = [self._file.message_types_by_name[one.name] for one in found.file[-1].message_type]

    def decode(self, content: bytes, message: str | None = None) -> tuple[str, Any]:
        """The message's name and the value. ``message``: its type; None: numbers before the value tell it.

        Raises DecodingError.
        """
        if message is None:
            described, position = self._indexed(content)
        else:
            described, position = self._named(message), 0
        try:
            found = self._class_of(described).FromString(content[position:])
            if len(content) > limits.DECODED_PARTS and _parts(found) > limits.DECODED_PARTS:
                raise DecodingError("it holds too many values")
            return described.full_name, self._to_dict(found, preserving_proto_field_name=True)
        except self._errors as error:
            raise DecodingError(f"it is not a valid {described.full_name}: {error!s:.300}") from None

    def _named(self, message: str) -> Any:
        if not message and self._messages:
            return self._messages[0]
        try:
            return self._pool.FindMessageTypeByName(message)
        except KeyError:
            raise DecodingError(f"its Protobuf schema has no message {message!r}") from None

    def _indexed(self, content: bytes) -> tuple[Any, int]:
        """The type that the numbers at the beginning lead to, and where the value begins."""
        count, position = _number(content, 0)
        if not 0 <= count <= _DEEPEST_INDEX:
            raise DecodingError("it does not say which message of its Protobuf schema it is")
        indexes = [] if count else [0]
        for _ in range(count):
            index, position = _number(content, position)
            indexes.append(index)
        within, found = self._messages, None
        for index in indexes:
            if not 0 <= index < len(within):
                raise DecodingError(f"its Protobuf schema has no message {indexes}")
            found = within[index]
            within = list(found.nested_types)
        return found, position


def _number(content: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(content) and shift < 35:
        octet = content[position]
        position += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
    raise DecodingError("it does not say which message of its Protobuf schema it is")


def _parts(message: Any) -> int:
    """How many messages are within a message, as far as that matters."""
    count, left = 0, [message]
    while left and count <= limits.DECODED_PARTS:
        count += 1
        for field, value in left.pop().ListFields():
            if field.message_type is None:
                continue
            if field.message_type.GetOptions().map_entry:
                inner = field.message_type.fields_by_name["value"].message_type is not None
                count += len(value)
                left += value.values() if inner else ()
            else:
                left += value if _is_repeated(value) else [value]
    return count


def _is_repeated(value: Any) -> bool:
    return not hasattr(value, "ListFields")


def _octets(text: str) -> bytes | None:
    """A compiled file in Base64, as some registries and clients keep them; None if it is text.

    Raises DecodingError if names in it are too long: each value has them.
    """
    try:
        found = base64.b64decode(text, validate=True) if text else None
    except (binascii.Error, ValueError):
        found = None
    if _LONG_WORD.search(text.encode("utf-8", "replace") if found is None else found):
        raise DecodingError("its Protobuf schema has names of more than 255 characters")
    return found


def _compiled(files: Sequence[tuple[str, str]]) -> bytes:
    """The compiled files with all that they import; waits. Raises DecodingError."""
    outcome: bytes | DecodingError = gevent.get_hub().threadpool.apply(_outcome, (files,))
    if isinstance(outcome, DecodingError):
        raise outcome
    return outcome


def _outcome(files: Sequence[tuple[str, str]]) -> bytes | DecodingError:
    """Returns errors, since gevent also prints those that its threads raise."""
    try:
        return _compile(files)
    except DecodingError as error:
        return error


def _compile(files: Sequence[tuple[str, str]]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="dafka-protobuf-") as folder:
        source, here = Path(folder, "files"), Path(folder, "empty")
        here.mkdir()  # where Python runs, it imports from: no file of a registry lies there
        for name, content in files:
            if _NAME.fullmatch(name) is None or len(name) > 200:
                raise DecodingError(f"its Protobuf schema imports {name[:100]!r}, not the name of a file")
            path = source / name
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(content, "utf-8", "replace")
            except OSError as error:
                raise DecodingError(f"its Protobuf schema imports {name[:100]!r}: {error.strerror}") from None
        command = [sys.executable, "-m", "grpc_tools.protoc", "--include_imports", f"-I{source}"]
        command += [f"--descriptor_set_out={folder}/out", str(source / _FILE)]
        try:
            done = subprocess.run(
                command,
                cwd=here,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=limits.COMPILE_SECONDS,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise DecodingError(
                f"its Protobuf schema could not be compiled: {type(error).__name__}"
            ) from None
        said = done.stderr.decode("utf-8", "replace").replace(f"{source}/", "")
        if done.returncode and "No module named" in said:
            raise DecodingError("Protobuf needs grpcio-tools: pip install 'dafka[console]'")
        if done.returncode:
            raise DecodingError(f"its Protobuf schema cannot be compiled: {said.strip()[:300]}")
        return Path(folder, "out").read_bytes()
