"""How a client reaches a secure broker, by the names that Kafka's Java clients have for it.

| property | meaning |
|---|---|
| `security.protocol` | PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL |
| `ssl.truststore.location` | who signs the broker's certificate; `ssl.truststore.type` is PEM |
| `ssl.keystore.location`, `ssl.key.password` | the client's key and certificate; `ssl.keystore.type` is PEM |
| `ssl.endpoint.identification.algorithm` | `https` (default), or nothing: the broker's name is not checked |
| `sasl.mechanism` | PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER |
| `sasl.jaas.config` | `...LoginModule required username="alice" password="secret";` |
| `sasl.oauthbearer.token.endpoint.url` | `file:///...` with the token of OAUTHBEARER, read at each login |
| `sasl.login.callback.handler.class` | `...OAuthBearerLoginCallbackHandler`, which reads that file in Java |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname

from dafka.security.errors import SaslError, TlsError
from dafka.security.sasl.options import ClientSasl
from dafka.security.sasl.steps import MECHANISMS, OAUTHBEARER
from dafka.security.tls import ClientTls

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
NAMES = (
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.mechanism",
    "sasl.oauthbearer.token.endpoint.url",
    "security.protocol",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.password",
    "ssl.keystore.location",
    "ssl.keystore.type",
    "ssl.truststore.location",
    "ssl.truststore.type",
)
"""The properties that are read."""

_PAIR = re.compile(r'\b(username|password)\s*=\s*(?:"((?:\\.|[^"\\])*)"|\'((?:\\.|[^\'\\])*)\'|([^\s;"\']+))')
_TOKEN_HANDLER = "OAuthBearerLoginCallbackHandler"
_MODULE = re.compile(r"\s*[\w.]+LoginModule\s+required\s.*;\s*", re.DOTALL)


class ClientSecurity(NamedTuple):
    """The security arguments of :func:`dafka.broker.connect`."""

    protocol: str = "PLAINTEXT"
    tls: ClientTls | None = None
    sasl: ClientSasl | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """As keywords."""
        return {"security_protocol": self.protocol, "tls": self.tls, "sasl": self.sasl}


def client_security(properties: Mapping[str, str]) -> ClientSecurity:
    """Settings from properties; those of NAMES are read. Raises :class:`TlsError` and :class:`SaslError`."""
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in PROTOCOLS:
        raise SaslError(f"security.protocol={protocol!r} is not one of {', '.join(PROTOCOLS)}")
    tls = _tls(properties) if protocol in ("SSL", "SASL_SSL") else None
    return ClientSecurity(protocol, tls, _sasl(properties) if protocol.startswith("SASL_") else None)


def read_properties(path: str) -> dict[str, str]:
    """A file of properties, ``name=value`` each, as Kafka's tools take with ``--command-config``.

    Raises OSError, and ValueError for an invalid line.
    """
    found = {}
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode().strip()
            except UnicodeDecodeError:
                raise ValueError(f"{path}, line {number}: it is not UTF-8") from None
            if not text or text[0] in "#!":
                continue
            name, equals, value = text.partition("=")
            if not equals:
                raise ValueError(f"{path}, line {number}: it is not name=value")
            found[name.strip()] = value.strip()
    return found


def _tls(properties: Mapping[str, str]) -> ClientTls:
    for store in ("ssl.truststore", "ssl.keystore"):
        kind = properties.get(f"{store}.type", "PEM")
        if kind.upper() != "PEM":
            raise TlsError(f"{store}.type={kind!r}: stores are PEM files here")
    algorithm = properties.get("ssl.endpoint.identification.algorithm", "https").lower()
    if algorithm not in ("", "https"):
        raise TlsError(f"ssl.endpoint.identification.algorithm={algorithm!r} is https or nothing")
    return ClientTls(
        cafile=properties.get("ssl.truststore.location"),
        certfile=properties.get("ssl.keystore.location"),
        password=properties.get("ssl.key.password"),
        check_hostname=bool(algorithm),
    )


def _sasl(properties: Mapping[str, str]) -> ClientSasl:
    mechanism = properties.get("sasl.mechanism")
    if mechanism not in MECHANISMS:
        raise SaslError(f"sasl.mechanism={mechanism!r} is not one of {', '.join(MECHANISMS)}")
    if mechanism == OAUTHBEARER:
        return ClientSasl(mechanism=mechanism, options={"sasl_oauth_token_provider": _token(properties)})
    config = properties.get("sasl.jaas.config", "")
    given = {found[1]: _unquoted(found) for found in _PAIR.finditer(config)}
    if not _MODULE.fullmatch(config) or set(given) != {"username", "password"}:
        form = '...LoginModule required username="..." password="...";'
        raise SaslError(f"sasl.jaas.config has the form {form}")  # it is not shown: there is a password in it
    return ClientSasl(
        mechanism=mechanism, options={f"sasl_plain_{name}": value for name, value in given.items()}
    )


def _token(properties: Mapping[str, str]) -> Any:
    from dafka.security.sasl.token_files import TokenFile  # brings kafka-python along

    name = "sasl.login.callback.handler.class"
    if not properties.get(name, _TOKEN_HANDLER).endswith(_TOKEN_HANDLER):
        raise SaslError(f"{name}={properties[name]!r}: there is only {_TOKEN_HANDLER}")
    where = urlsplit(properties.get("sasl.oauthbearer.token.endpoint.url", ""))
    if where.scheme != "file" or where.netloc or not where.path:  # it is not shown: it may hold a secret
        raise SaslError("sasl.oauthbearer.token.endpoint.url is file:///PATH, the file with the token")
    return TokenFile(url2pathname(where.path))


def _unquoted(found: re.Match[str]) -> str:
    quoted = next((text for text in found.groups()[1:3] if text is not None), None)
    return found[4] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
