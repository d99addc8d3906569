"""The configuration of an endpoint."""

from __future__ import annotations

import copy
import warnings
from typing import Any, Literal

from compat.broker._broker_conf import FILE, ConfigurationError, read
from dafka.overlay import Tls

_POLICIES = ("disconnect", "drop_newest", "drop_oldest")
_LEAF = (1, 1)
_WITH_ROUTING = (1, 2)


class BrokerOptions:
    """Options of an endpoint; see compat/README.md for the ones that change nothing here."""

    def __init__(self) -> None:
        self.disable_ssl = False
        """Plain TCP. Otherwise TLS, anonymous unless the configuration has a certificate."""
        self.disable_forwarding = False
        """What peers send is for this endpoint alone: it passes nothing on, from no peer to another."""
        self.ignore_broker_conf = False
        """Do not read the file ``broker.conf`` of the working directory, whose options go before these."""
        self.use_real_time = True


class Configuration:
    """Options, and files of PEM for TLS. With any of them both ends have to show a certificate.

    Raises :class:`ConfigurationError`, a ValueError, for a ``broker.conf`` that cannot be read as one.
    """

    def __init__(self, options: BrokerOptions | None = None) -> None:
        if options is not None and not isinstance(options, BrokerOptions):
            raise TypeError(f"a Configuration is made of BrokerOptions, not of {type(options).__name__}")
        self._options = BrokerOptions() if options is None else copy.copy(options)
        self._overflow = "wait"
        self._websocket_address = "127.0.0.1"
        self._websocket_port = 0
        if not self._options.ignore_broker_conf:
            self._read_file()
        self.openssl_cafile = ""
        self.openssl_capath = ""
        self.openssl_certificate = ""
        self.openssl_key = ""
        self.openssl_passphrase = ""
        self.max_threads = 0

    def _read_file(self) -> None:
        settings = read(FILE) or {}
        options = self._options
        take = _Taking(settings)
        options.disable_ssl = take("broker.disable-ssl", bool, options.disable_ssl)
        options.disable_forwarding = take("broker.disable-forwarding", bool, options.disable_forwarding)
        self._overflow = take("broker.peer-overflow-policy", str, self._overflow)
        self._websocket_address = take("broker.web-socket.address", str, self._websocket_address)
        self._websocket_port = take("broker.web-socket.port", int, self._websocket_port)
        if self._overflow not in ("wait", *_POLICIES):
            known = ", ".join(_POLICIES)
            text = f"{FILE}: broker.peer-overflow-policy is {self._overflow!r:.100}, not one of {known}"
            raise ConfigurationError(text)
        if settings:
            names = ", ".join(sorted(settings))
            warnings.warn(f"these options of {FILE} have no effect: {names:.500}", stacklevel=3)

    @property
    def endpoint_options(self) -> dict[str, Any]:
        """The arguments for an endpoint of the overlay."""
        # A node of protocol version 1 alone is a leaf for all nodes: they route nothing over it.
        versions = _LEAF if self._options.disable_forwarding else _WITH_ROUTING
        options: dict[str, Any] = {"tls": self._tls, "versions": versions, "overflow": self._overflow}
        if self._websocket_port:
            options["websocket"] = f"{self._websocket_address}:{self._websocket_port}"
        return options

    @property
    def _tls(self) -> Tls | Literal["anonymous", "plain"]:
        """The certificates of connections."""
        if self._options.disable_ssl:
            return "plain"
        files = (self.openssl_certificate, self.openssl_key, self.openssl_cafile, self.openssl_capath)
        if not any(files) and not self.openssl_passphrase:
            return "anonymous"
        certificate, key, cafile, capath = files
        return Tls(
            certfile=certificate,
            keyfile=key or None,
            password=self.openssl_passphrase or None,
            cafile=cafile or None,
            capath=capath or None,
        )


class _Taking:
    """Takes options out of what a file says."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings

    def __call__(self, name: str, kind: type, default: Any) -> Any:
        value = self._settings.pop(name, default)
        if type(value) is not kind:
            raise ConfigurationError(f"{FILE}: {name} is {value!r:.100}, not a {kind.__name__}")
        return value
