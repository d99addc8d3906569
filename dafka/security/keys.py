"""Keys of a mesh: a folder with the pair that its nodes share as servers, pairs of nodes, and a list.

::

    keys/server.key, keys/server.key_secret     the pair of every socket that others connect to
    keys/NODE.key, keys/NODE.key_secret         the pair of a node, with which it connects to others
    keys/allowed/NODE.key                       the list: public keys of the nodes that may come in

The files are certificates as czmq and pyzmq write them, with keys in Z85. A program of ZeroMQ's that only
connects needs the public key in ``server.key`` and a pair on the list.
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
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class ServerKeys(NamedTuple):
    """What a socket has that others connect to."""

    pair: Pair
    allows: Allowed


class Keys(NamedTuple):
    """What a node has, which listens and connects."""

    server: ServerKeys
    own: Pair


class KeyFolder(NamedTuple):
    """A folder of keys, made by ``dafka keys new``.

    ``node``: whose pair is used to connect to others; empty: that of the only node whose secret key is there.
    """

    path: str
    node: str = ""

    def load(self) -> Keys:
        """The keys of a node. Raises :class:`~dafka.security.errors.KeyFolderError`, which names the file."""
        folder = Path(self.path)
        return Keys(self.load_server(), read_pair(folder, self.node or self._only_node(folder)))

    def load_server(self) -> ServerKeys:
        """The keys of what only listens. Raises as :meth:`load`."""
        folder = Path(self.path)
        return ServerKeys(read_pair(folder, SERVER), Allowed(folder / ALLOWED))

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


class Allowed:
    """The public keys of those that may come in: those in a folder, read again every LOOK_SECONDS.

    Calling it says whether a key is on the list. If the folder cannot be read nobody is let in.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self._keys: dict[str, tuple[tuple[int, int], bytes | None]] = {}  # by file: its state, its key
        self._known: frozenset[bytes] = frozenset()
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

    def _look(self) -> None:
        self._look_at = self._clock() + LOOK_SECONDS
        before, self._keys = self._keys, {}
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    if entry.name.endswith(PUBLIC):
                        status = entry.stat()
                        state = status.st_mtime_ns, status.st_size
                        known = before.get(entry.name)
                        key = known[1] if known and known[0] == state else self._read(entry.path)
                        self._keys[entry.name] = state, key
        except OSError as error:
            self._tell(f"nobody is let in: the list {self._folder} cannot be read: {error.strerror}")
            self._keys = {}
        self._known = frozenset(key for _, key in self._keys.values() if key is not None)

    def _read(self, path: str) -> bytes | None:
        try:
            return read_public(Path(path))
        except KeyFolderError as error:
            self._tell(str(error))
            return None

    def _tell(self, what: str) -> None:
        if what not in self._told:
            self._told.add(what)
            log.warning("%s", what)


def nodes_in(folder: Path) -> Iterator[str]:
    """The nodes whose secret keys are in a folder, by name."""
    for file in sorted(folder.glob(f"*{SECRET}")):
        if file.name != SERVER + SECRET:
            yield file.name.removesuffix(SECRET)


def allowed_in(folder: Path) -> list[str]:
    """The nodes that may come in, by name."""
    return sorted(file.name.removesuffix(PUBLIC) for file in (folder / ALLOWED).glob(f"*{PUBLIC}"))


def new_keys(folder: Path, node: str) -> None:
    """Make a node's pair, and let it in; in a folder without keys make the servers' pair first.

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
        public = _make(folder, node)
        (folder / ALLOWED / f"{node}{PUBLIC}").write_bytes(public.read_bytes())
    except OSError as error:
        raise KeyFolderError(f"{folder}: {error.strerror}") from error


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


def _make(folder: Path, name: str) -> Path:
    from zmq.auth.certs import create_certificates

    public, secret = create_certificates(folder, name)
    os.chmod(secret, 0o600)
    return Path(public)


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
