"""Keys of a mesh: a folder with the pair that its nodes share as servers, pairs of nodes, and a list.

::

    keys/server.key, keys/server.key_secret     the pair of every socket that others connect to
    keys/NODE.key, keys/NODE.key_secret         the pair of a node, with which it connects to others
    keys/allowed/NODE.key                       the list: public keys of the nodes that may come in

The files are certificates as czmq and pyzmq write them, with keys in Z85. A program of ZeroMQ's that only
connects needs the public key in ``server.key`` and a pair on the list. The roles of a node (:class:`Node`)
stand in the metadata of its file on the list.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dafka.security.addresses import address_of, belongs
from dafka.security.errors import KeyFolderError

if TYPE_CHECKING:  # its cryptography is not always installed
    import zmq

    from dafka.zmtp.curve import Pair

log = logging.getLogger(__name__)

SERVER = "server"
ALLOWED = "allowed"
PUBLIC, SECRET = ".key", ".key_secret"
LOOK_SECONDS = 5.0
"""The interval at which the list of those that may come in is read again."""

_Z85_OCTETS = 40  # of a key in Z85
_METADATA = re.compile(rb'^[ \t]+(store|plain)[ \t]*=[ \t]*"?yes"?[ \t]*$', re.MULTILINE)
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Node(NamedTuple):
    """A node's entry in the list.

    ``store``: it may be a store: acknowledge, and say what it likes of anybody's partitions. ``plain``: it is
    a program that cannot prove its key to those who connect to it, such as a C node or one of pyzmq's.
    """

    store: bool = False
    plain: bool = False


class ServerKeys(NamedTuple):
    """The keys of a socket that others connect to."""

    pair: Pair
    allows: Allowed


class Keys(NamedTuple):
    """The keys of a node, which listens and connects."""

    server: ServerKeys
    own: Pair


class KeyFolder(NamedTuple):
    """A folder of keys, made by ``dafka keys new``.

    ``node``: the node whose keys are used to connect to others; empty: the only one with a secret key.
    """

    path: str
    node: str = ""

    def load(self) -> Keys:
        """The keys of a node. Raises :class:`~dafka.security.errors.KeyFolderError`, which names the file."""
        return Keys(self.load_server(), self._own())

    def load_server(self) -> ServerKeys:
        """The keys of what only listens. Raises as :meth:`load`."""
        folder = Path(self.path)
        return ServerKeys(read_pair(folder, SERVER), Allowed(folder / ALLOWED))

    def address(self, name: str | None = None) -> str:
        """An address of the node's own, for a producer: a new one, or with a ``name`` always the same.

        Others believe a node what it says under addresses of its own. Raises as :meth:`load`.
        """
        return address_of(self._own().public, None if name is None else name.encode()).decode()

    def check_address(self, address: str) -> None:
        """Raise KeyFolderError unless an address is the node's own."""
        if not belongs(address.encode(), self._own().public):
            raise KeyFolderError(
                f"the address {address} is not of the node's own key, so nobody would believe it: "
                "take keys.address('NAME')"
            )

    def check_store(self) -> None:
        """Raise KeyFolderError unless the list says that the node may be a store."""
        folder = Path(self.path)
        node = self.node or self._only_node(folder)
        if not Allowed(folder / ALLOWED).node(self._own().public).store:
            raise KeyFolderError(
                f"the list {folder / ALLOWED} does not say that {node} may be a store, so nobody would "
                f"believe it: dafka keys allow {folder} {node} --store"
            )

    def _own(self) -> Pair:
        folder = Path(self.path)
        return read_pair(folder, self.node or self._only_node(folder))

    def context(self) -> zmq.Context[zmq.Socket[bytes]]:
        """A context of pyzmq's, whose sockets connect with the node's keys. Raises as :meth:`load`."""
        import zmq

        keys = self.load()
        context = zmq.Context()
        for option, key in (
            (zmq.CURVE_SERVERKEY, keys.server.pair.public),
            (zmq.CURVE_PUBLICKEY, keys.own.public),
            (zmq.CURVE_SECRETKEY, keys.own.secret),
        ):
            context.setsockopt(option, key)
        return context

    @staticmethod
    def _only_node(folder: Path) -> str:
        nodes = list(nodes_in(folder))
        if len(nodes) == 1:
            return nodes[0]
        if not nodes:
            raise KeyFolderError(f"{folder} has no secret key of a node: make one with `dafka keys new`")
        raise KeyFolderError(f"{folder} has the keys of several nodes: say which, of {', '.join(nodes)}")


def check_keys(keys: object) -> None:
    """Raise ValueError for a ``keys=`` that is neither a KeyFolder nor None."""
    if keys is not None and not isinstance(keys, KeyFolder):
        raise ValueError(f"keys is a dafka.security.KeyFolder, not {keys!r:.100}")


class Allowed:
    """The public keys of those that may come in: those in a folder, read again every LOOK_SECONDS.

    Calling it says whether a key is on the list. If the folder cannot be read nobody is let in.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self._read_files: dict[str, tuple[tuple[int, int], _Entry | None]] = {}  # by file, with its state
        self._nodes: dict[bytes, Node] = {}
        self._known: frozenset[bytes] = frozenset()
        self._of_plain = _NOBODY
        self._told: set[str] = set()
        self._look_at = 0.0
        self._look()

    def __call__(self, key: bytes) -> bool:
        return key in self.keys

    @property
    def keys(self) -> frozenset[bytes]:
        """The keys on the list, each of 32 octets."""
        if self._clock() >= self._look_at:
            self._look()
        return self._known

    def node(self, key: bytes) -> Node:
        """The roles of the node with this key; one that is not on the list has no role."""
        if self._clock() >= self._look_at:
            self._look()
        return self._nodes.get(key, _NOBODY)

    @property
    def of_plain(self) -> Node:
        """The roles of a node without a proven key: those of all nodes on the list that cannot prove one."""
        if self._clock() >= self._look_at:
            self._look()
        return self._of_plain

    def _look(self) -> None:
        self._look_at = self._clock() + LOOK_SECONDS
        before, self._read_files = self._read_files, {}
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    if entry.name.endswith(PUBLIC):
                        status = entry.stat()
                        state = status.st_mtime_ns, status.st_size
                        known = before.get(entry.name)
                        read = known[1] if known and known[0] == state else self._read(entry.path)
                        self._read_files[entry.name] = state, read
        except OSError as error:
            self._tell(f"nobody is let in: the list {self._folder} cannot be read: {error.strerror}")
            self._read_files = {}
        self._nodes = dict(entry for _, entry in self._read_files.values() if entry is not None)
        self._known = frozenset(self._nodes)
        plain = [node for node in self._nodes.values() if node.plain]
        self._of_plain = Node(any(node.store for node in plain), bool(plain))

    def _read(self, path: str) -> _Entry | None:
        try:
            return _Entry(read_public(Path(path)), read_node(Path(path)))
        except KeyFolderError as error:
            self._tell(str(error))
            return None

    def _tell(self, what: str) -> None:
        if what not in self._told:
            self._told.add(what)
            log.warning("%s", what)


class _Entry(NamedTuple):
    key: bytes
    node: Node


_NOBODY = Node()


def nodes_in(folder: Path) -> Iterator[str]:
    """The nodes whose secret keys are in a folder, by name."""
    for file in sorted(folder.glob(f"*{SECRET}")):
        if file.name != SERVER + SECRET:
            yield file.name.removesuffix(SECRET)


def allowed_in(folder: Path) -> list[str]:
    """The nodes that may come in, by name."""
    return sorted(file.name.removesuffix(PUBLIC) for file in (folder / ALLOWED).glob(f"*{PUBLIC}"))


def new_keys(folder: Path, node: str, *, store: bool = False, plain: bool = False) -> None:
    """Make a node's pair, and let it in; in a folder without keys make the servers' pair first.

    ``store``, ``plain``: its roles (:class:`Node`).

    Folders and secret keys are private to the user. Raises KeyFolderError, also if the node has keys already.
    """
    if not _NODE.fullmatch(node) or node == SERVER:
        raise KeyFolderError(
            f"the name of a node is letters, digits, '.', '_' and '-', and not {SERVER!r}: {node!r:.120}"
        )
    if (folder / f"{node}{SECRET}").exists() or (folder / ALLOWED / f"{node}{PUBLIC}").exists():
        raise KeyFolderError(f"{folder} has keys of {node} already")
    try:
        (folder / ALLOWED).mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        if not (folder / f"{SERVER}{SECRET}").exists():
            _make(folder, SERVER)
        _make(folder, node)
    except OSError as error:
        raise KeyFolderError(f"{folder}: {error.strerror}") from error
    allow_node(folder, node, Node(store, plain))


def allow_node(folder: Path, name: str, node: Node) -> None:
    """Put a node whose public key is in the folder on the list, or say anew what it may be.

    Raises KeyFolderError.
    """
    if not _NODE.fullmatch(name) or name == SERVER:
        raise KeyFolderError(f"{name!r:.120} cannot be the name of a node")
    own = folder / f"{name}{PUBLIC}"
    read_public(own)
    listed = folder / ALLOWED / f"{name}{PUBLIC}"
    says = "".join(f'    {field} = "yes"\n' for field, is_so in node._asdict().items() if is_so)
    try:
        said = _METADATA.sub(b"", own.read_bytes())
        if b"\nmetadata\n" not in said:
            said += b"\nmetadata\n"
        said = said.replace(b"\nmetadata\n", b"\nmetadata\n" + says.encode(), 1)
        new = listed.with_suffix(".new")
        new.write_bytes(said)
        new.replace(listed)  # at once: readers see the old list or the new one
    except OSError as error:
        raise KeyFolderError(f"{listed}: {error.strerror}") from error


def remove_node(folder: Path, node: str) -> bool:
    """Take a node off the list of those that may come in; whether it was there."""
    file = folder / ALLOWED / f"{node}{PUBLIC}"
    if not _NODE.fullmatch(node) or not file.exists():
        return False
    file.unlink()
    return True


def read_pair(folder: Path, name: str) -> Pair:
    """The pair ``name`` of a folder. Raises KeyFolderError."""
    try:
        from dafka.zmtp.curve import KEY_OCTETS, Pair, public_of
    except ImportError as error:
        raise KeyFolderError(f"keys need PyNaCl: pip install 'dafka[curve]' ({error})") from error
    file = folder / f"{name}{SECRET}"
    public, secret = _read(file)
    if len(secret) != KEY_OCTETS:
        raise KeyFolderError(f"{file} has no secret key")
    if public != public_of(secret):
        raise KeyFolderError(f"{file}: its two keys are not a pair")
    if stat.S_IMODE(file.stat().st_mode) & 0o077:
        raise KeyFolderError(f"{file} can be read by others than its owner: chmod 600 {file}")
    return Pair(public, secret)


def read_public(file: Path) -> bytes:
    """The public key in a file. Raises KeyFolderError."""
    return _read(file)[0]


def read_node(file: Path) -> Node:
    """The roles that a file of the list gives to its node. Raises KeyFolderError."""
    try:
        said = set(_METADATA.findall(file.read_bytes()))
    except OSError as error:
        raise KeyFolderError(f"the key {file} cannot be read: {error.strerror}") from error
    return Node(b"store" in said, b"plain" in said)


def _make(folder: Path, name: str) -> None:
    from zmq.auth.certs import create_certificates

    _, secret = create_certificates(folder, name)
    os.chmod(secret, 0o600)


def _read(file: Path) -> tuple[bytes, bytes]:
    from zmq.auth.certs import load_certificate
    from zmq.utils import z85

    try:
        public, secret = load_certificate(file)
        if len(public) != _Z85_OCTETS:
            raise ValueError(f"a public key has {_Z85_OCTETS} letters, not {len(public)}")
        return z85.decode(public), z85.decode(secret) if secret else b""
    except OSError as error:
        raise KeyFolderError(f"the key {file} cannot be read: {error.strerror or 'there is none'}") from error
    except (ValueError, LookupError) as error:
        raise KeyFolderError(f"{file} is not a key file of ZeroMQ's: {error}") from error
