"""How often passwords may be tried: a bounded number of wrong ones within a minute.

They are counted by the address they come from, and by the address and the account. So somebody who guesses
the password of an account elsewhere does not keep its owner out, and somebody who tries one password with
many accounts is stopped as well. An attempt counts before its outcome is known, so that a thousand at the
same moment do not get around it.
"""

from __future__ import annotations

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

from dafka.console import limits
from dafka.console.errors import TooManyError

_Key = tuple[str, str | None]


class Attempts:
    """``clock`` in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun: OrderedDict[_Key, tuple[float, int]] = OrderedDict()  # when a minute began, and how many

    def begin(self, address: str, user: str) -> None:
        """Somebody tries a password. Raises TooManyError."""
        now = self._clock()
        bounds = self._bounds(address, user)
        for key, most in bounds.items():
            since, count = self._begun.get(key, (now, 0))
            if count >= most and now - since < limits.ATTEMPT_SECONDS:
                left = limits.ATTEMPT_SECONDS - (now - since)
                raise TooManyError(f"too many wrong passwords: try again in {left:.0f} s")
        for key in bounds:
            since, count = self._begun.pop(key, (now, 0))
            self._begun[key] = (since, count + 1) if now - since < limits.ATTEMPT_SECONDS else (now, 1)
        while len(self._begun) > limits.ATTEMPTS_KNOWN:
            self._begun.popitem(last=False)

    def succeed(self, address: str, user: str) -> None:
        """The password was right, or it was not the password that was refused."""
        for key in self._bounds(address, user):
            if key in self._begun:
                since, count = self._begun[key]
                self._begun[key] = since, max(count - 1, 0)

    def _bounds(self, address: str, user: str) -> dict[_Key, int]:
        place = _place(address)
        return {(place, None): limits.ATTEMPTS_OF_ADDRESS, (place, user): limits.ATTEMPTS_OF_ACCOUNT}


def _place(address: str) -> str:
    """Where an address is: one host has a whole network of 2**64 addresses of version 6."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((int(found), 64), strict=False))
    return str(found)
