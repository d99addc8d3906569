"""Where the schemas of records are: a schema registry as Confluent's, Karapace or Apicurio's."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from dafka.security.tls import ClientTls


@dataclass(frozen=True)
class SchemaRegistry:
    """A schema registry: ``ConsoleOptions(schema_registry=SchemaRegistry("http://127.0.0.1:8081"))``.

    ``user`` and ``password`` log in (basic authentication); they may stand in the address as well, as
    ``https://user:password@host``. ``tls``: the authorities that the console trusts, and the certificate it
    shows; None: those of this machine. Raises ValueError.
    """

    url: str
    user: str | None = None
    password: str = dataclasses.field(default="", repr=False)
    tls: ClientTls | None = None

    def __post_init__(self) -> None:
        if any(ord(one) <= 32 or ord(one) == 127 for one in self.url):
            raise ValueError("the address of a schema registry has a space or a control character in it")
        parts = urlsplit(self.url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        host = parts.hostname
        if parts.scheme not in ("http", "https") or not host or port == -1 or parts.query or parts.fragment:
            raise ValueError("the address of a schema registry is http://HOST:PORT or https://HOST:PORT")
        if self.tls is not None and parts.scheme != "https":
            raise ValueError("a schema registry that is reached by http:// shows no certificate")
        if parts.username is not None:
            if self.user is not None:
                raise ValueError("the user of a schema registry is in its address already")
            object.__setattr__(self, "user", unquote(parts.username))
            object.__setattr__(self, "password", unquote(parts.password or ""))
            url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
            object.__setattr__(self, "url", url)
