"""A server's certificate that changes while the server runs."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dafka.security.errors import TlsError
from dafka.security.principals import ANONYMOUS, USER, mapped, parse_rules, subject
from dafka.security.tls import Path, ServerTls

if TYPE_CHECKING:
    from ssl import SSLContext

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Whether files have changed is looked at this often, when somebody connects."""


class Renewed:
    """The context of a server whose files may change while it runs: new connections get the new certificate.

    Files that cannot be used are logged, once, and the certificate from before stays.
    """

    def __init__(self, options: ServerTls) -> None:
        self._options = options
        self._rules = parse_rules(options.principal_rules)
        self._state = self._look()
        self._context = self._read()
        self._next_look = time.monotonic() + LOOK_SECONDS

    @property
    def context(self) -> SSLContext:
        """For the next connection."""
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            self.renew()
        return self._context

    def principal(self, certificate: Mapping[str, Any] | None, octets: bytes | None = None) -> str:
        """The principal of a certificate of ``getpeercert()``, whose octets these are.

        Raises :class:`TlsError` if no rule fits.
        """
        if not certificate:
            return ANONYMOUS
        name = subject(certificate, octets or b"")
        known = mapped(self._rules, name)
        if not known:
            raise TlsError(
                f"no rule says who {name!r} is (principal_rules={self._options.principal_rules!r})"
            )
        return f"{USER}:{known}"

    def renew(self) -> None:
        """Read the files again if they have changed."""
        state = self._look()
        if state == self._state:
            return
        self._state = state
        try:
            self._context = self._read()
            log.info("the certificate in %s is in use from now on", self._options.certfile)
        except TlsError as error:
            log.error("the certificate from before stays in use: %s", error)

    def _read(self) -> SSLContext:
        from dafka.security.contexts import of_server  # brings ssl along

        return of_server(self._options)

    def _look(self) -> list[tuple[int, int, int] | None]:
        return [_identity(path) for path in self._options.files]


def _identity(path: Path) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
