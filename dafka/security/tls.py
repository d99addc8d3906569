"""TLS: certificates and keys in PEM files, of the side that listens and the side that connects.

Options have kafka-python's names without their ``ssl_``, and Kafka's meanings. TLS 1.2 is the oldest version
that is spoken. Nothing here imports ``ssl``, which most brokers have no use for.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from dafka.security.errors import TlsError
from dafka.security.principals import parse_rules

if TYPE_CHECKING:
    from ssl import SSLContext

ClientAuth = Literal["none", "requested", "required"]
Path = str | os.PathLike[str]


@dataclass(frozen=True, kw_only=True)
class ServerTls:
    """The certificate of a server, and whose certificates it asks for.

    ``certfile``: its certificate and those that lead to a root, PEM. ``keyfile``: its key, PEM; None: it
    is in ``certfile``. ``password``: of an encrypted key. ``client_auth``: whether clients show a
    certificate, as Kafka's ``ssl.client.auth``; ``cafile``: the authorities that may sign it (PEM).
    ``ciphers``: an OpenSSL list, for TLS 1.2. ``principal_rules``: how a certificate names its user
    (``ssl.principal.mapping.rules``, :mod:`dafka.security.principals`).
    """

    certfile: Path
    keyfile: Path | None = None
    password: str | None = field(default=None, repr=False)
    cafile: Path | None = None
    client_auth: ClientAuth = "none"
    ciphers: str | None = None
    principal_rules: str = "DEFAULT"

    def __post_init__(self) -> None:
        if self.client_auth not in get_args(ClientAuth):
            raise TlsError(f"client_auth is one of {get_args(ClientAuth)}, not {self.client_auth!r}")
        if self.client_auth != "none" and self.cafile is None:
            raise TlsError(f"client_auth={self.client_auth!r} needs cafile: the clients' authority")
        parse_rules(self.principal_rules)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are read."""
        return tuple(one for one in (self.certfile, self.keyfile, self.cafile) if one is not None)


@dataclass(frozen=True, kw_only=True)
class ClientTls:
    """The authorities that a client trusts, and the certificate that it shows.

    ``cafile``: authorities that may sign the server's certificate (PEM); None: those that the system
    trusts. ``check_hostname``: whether it has to be for the host that was connected to. ``certfile``,
    ``keyfile``, ``password``: the client's own. ``crlfile``: revoked certificates (PEM), looked at for the
    server's own certificate. ``given``: used as it is, instead of all that.
    """

    cafile: Path | None = None
    certfile: Path | None = None
    keyfile: Path | None = None
    password: str | None = field(default=None, repr=False)
    crlfile: Path | None = None
    check_hostname: bool = True
    ciphers: str | None = None
    given: SSLContext | None = None


@dataclass(frozen=True, kw_only=True)
class PeerTls:
    """The certificate that each end of a connection between equals shows, and the authorities that both
    trust.

    ``certfile``: the certificate with its chain, PEM. ``keyfile``: its key (None: in ``certfile``).
    ``password``: of an encrypted key. ``cafile``, ``capath``: the authorities that sign the others'
    certificates, a file in PEM or a folder as OpenSSL has them. Host names are not checked: every holder of
    such a certificate is a peer.
    """

    certfile: Path
    keyfile: Path | None = None
    password: str | None = field(default=None, repr=False)
    cafile: Path | None = None
    capath: Path | None = None

    def __post_init__(self) -> None:
        if not self.certfile or not (self.cafile or self.capath):
            raise TlsError("TLS between peers needs a certificate, its key, and a CA that signs the others'")
