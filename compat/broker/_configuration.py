"""What an endpoint is configured with."""

from __future__ import annotations

import os
import warnings
from typing import Literal

from dafka.overlay import Tls

_FILE = "broker.conf"


class BrokerOptions:
    """Options of an endpoint; see compat/README.md for the ones that change nothing here."""

    def __init__(self) -> None:
        self.disable_ssl = False
        """Plain TCP. Otherwise TLS, anonymous unless the configuration has a certificate."""
        self.disable_forwarding = False
        self.ignore_broker_conf = False
        self.use_real_time = True


class Configuration:
    """Options, and files of PEM for TLS. With any of them both ends have to show a certificate."""

    def __init__(self, options: BrokerOptions | None = None) -> None:
        if options is not None and not isinstance(options, BrokerOptions):
            raise TypeError(f"a Configuration is made of BrokerOptions, not of {type(options).__name__}")
        self._options = BrokerOptions() if options is None else options
        if self._options.disable_forwarding:
            warnings.warn("disable_forwarding has no effect: messages never go round here", stacklevel=2)
        if not self._options.ignore_broker_conf and os.path.exists(_FILE):
            warnings.warn(f"{_FILE} in this folder is not read; ignore_broker_conf says so", stacklevel=2)
        self.openssl_cafile = ""
        self.openssl_capath = ""
        self.openssl_certificate = ""
        self.openssl_key = ""
        self.openssl_passphrase = ""
        self.max_threads = 0

    @property
    def _tls(self) -> Tls | Literal["anonymous", "plain"]:
        """What connections are secured with."""
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
