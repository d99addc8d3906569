"""Settings of an endpoint, as users give them to a node and as nodes compare them to share one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from math import inf
from typing import Any, NamedTuple

from dafka.hub.waits import interval_of
from dafka.mesh import limits
from dafka.mesh.address import TowerLike, check_address, new_address, tower_addresses
from dafka.protocol.framing import Framing
from dafka.security.keys import KeyFolder, check_keys

TRANSPORTS = ("libzmq", "zmtp")
TRANSPORT = "zmtp"

_HOST = re.compile(r"[A-Za-z0-9._:%\-\[\]]*")


class EndpointOptions(NamedTuple):
    """Settings of an endpoint; nodes with equal settings share one.

    ``towers``: pairs of (address nodes publish to, address nodes subscribe from). ``bind``: the interface
    that peers connect to; ``*`` listens on all. Times in seconds. ``high_water_mark``: messages that a socket
    queues for one peer before it drops. ``advertise``: the host that peers are told to connect to; empty: the
    one bound, or with ``*`` the address that the tower sees. ``transport``: carries records and commands,
    ``"libzmq"`` or ``"zmtp"``, our own; peers cannot tell which. ``keys``: a folder of keys, by which nodes
    know each other, and what they say is encrypted (CURVE); None: everybody is believed.
    """

    towers: tuple[tuple[str, str], ...]
    bind: str = "127.0.0.1"
    framing: Framing = Framing.LIBDAFKA
    beacon_interval: float = 1.0
    beacon_timeout: float = 4.0
    high_water_mark: int = limits.HIGH_WATER_MARK
    advertise: str = ""
    transport: str = TRANSPORT
    keys: KeyFolder | None = None

    @property
    def host(self) -> bytes:
        """The host that beacons say; empty where the tower fills in what it sees."""
        if self.advertise:
            return self.advertise.encode()
        return b"" if self.bind in ("*", "0.0.0.0") else self.bind.encode()

    def new_address(self) -> bytes:
        """An address for a node or a producer; with keys it belongs to the node's key.

        Raises :class:`~dafka.security.KeyFolderError`.
        """
        return new_address() if self.keys is None else self.keys.address().encode()

    def own_address(self, address: str) -> bytes:
        """One given by a user. Raises :class:`InvalidAddressError`, and with keys KeyFolderError for one that
        does not belong to the node's key."""
        octets = check_address(address)
        if self.keys is not None:
            self.keys.check_address(address)
        return octets


def node_options(node: object, tower: TowerLike, settings: Mapping[str, Any]) -> EndpointOptions:
    """:func:`mesh_options` for the keywords that a user gave to ``node``. TypeError for an unknown one."""
    known = [name for name in EndpointOptions._fields if name != "towers"]
    for name in settings:
        if name not in known:
            near = get_close_matches(name, known, 1)
            meant = f". Did you mean {near[0]!r}?" if near else f"; those of the mesh are {', '.join(known)}"
            raise TypeError(f"{type(node).__name__}() got an unexpected keyword argument {name!r}{meant}")
    return mesh_options(tower, **settings)


def mesh_options(
    tower: TowerLike = None,
    *,
    bind: str = "127.0.0.1",
    framing: Framing | str = Framing.LIBDAFKA,
    beacon_interval: float = 1.0,
    beacon_timeout: float = 4.0,
    high_water_mark: int = limits.HIGH_WATER_MARK,
    advertise: str = "",
    transport: str | None = None,
    keys: KeyFolder | None = None,
) -> EndpointOptions:
    """The options of an endpoint as users give them to a node; see :class:`EndpointOptions`.

    ``tower``: a :class:`dafka.Tower`, a pair of addresses, or a list of these for several towers at once:
    nodes meet through any of them. None is where the C daemon listens. Raises
    :class:`InvalidAddressError`, and ValueError for any other value that cannot be.
    """
    beacon_interval = interval_of(beacon_interval, "beacon_interval", above=True)
    beacon_timeout = interval_of(beacon_timeout, "beacon_timeout", above=True, most=inf)
    if not beacon_interval < beacon_timeout:
        raise ValueError(
            f"beacon_interval is above 0 and below beacon_timeout, not {beacon_interval!r} s "
            f"with a timeout of {beacon_timeout!r} s"
        )
    if not isinstance(high_water_mark, int) or not 0 < high_water_mark < 2**31:
        raise ValueError(
            f"high_water_mark is a number of messages from 1 to 2147483647, not {high_water_mark!r}"
        )
    if not isinstance(advertise, str) or not _HOST.fullmatch(advertise):
        raise ValueError(f"advertise is the name or address of a host, not {advertise!r}")
    try:
        framing = Framing(framing)
    except ValueError:
        known = " or ".join(repr(one.value) for one in Framing)
        raise ValueError(f"framing is {known}, not {framing!r}") from None
    if transport not in (None, *TRANSPORTS):
        raise ValueError(f"transport is {' or '.join(map(repr, TRANSPORTS))}, not {transport!r}")
    check_keys(keys)
    if keys is not None and (transport or TRANSPORT) != "zmtp":
        raise ValueError("keys need the transport 'zmtp'")
    return EndpointOptions(
        tower_addresses(tower),
        bind,
        framing,
        beacon_interval,
        beacon_timeout,
        high_water_mark,
        advertise,
        transport or TRANSPORT,
        keys,
    )
