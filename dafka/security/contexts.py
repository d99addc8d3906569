"""Contexts of the standard library's ssl, from options."""

from __future__ import annotations

import os
import ssl

from dafka.security.errors import TlsError
from dafka.security.tls import ClientTls, Path, PeerTls, ServerTls

_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}

# The ciphers that libbroker offers without a certificate, and that OpenSSL takes only at security level 0.
_ANONYMOUS = "AECDH-AES256-SHA@SECLEVEL=0"
_ANONYMOUS_CURVE = "secp384r1"
_PEERS = "HIGH:!aNULL:!MD5"


def of_server(options: ServerTls) -> ssl.SSLContext:
    """For accepted sockets. Raises :class:`TlsError`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _set(context, options.certfile, options.keyfile, options.password, options.ciphers)
    if options.cafile is not None:
        _trust(context, options.cafile)
    context.verify_mode = _CLIENT_AUTH[options.client_auth]
    return context


def of_client(options: ClientTls) -> ssl.SSLContext:
    """For sockets that connect. Raises :class:`TlsError`."""
    if options.given is not None:
        return options.given
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = options.check_hostname
    _set(context, options.certfile, options.keyfile, options.password, options.ciphers)
    if options.cafile is None:
        context.load_default_certs()
    else:
        _trust(context, options.cafile)
    if options.crlfile is not None:
        _trust(context, options.crlfile, "crlfile")
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    return context


def of_peers(options: PeerTls | None) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """For the side that connects, and for the one that accepts. Raises :class:`TlsError`.

    None: encrypted, but neither side proves who it is, as with libbroker.
    """
    return _of_peer(ssl.PROTOCOL_TLS_CLIENT, options), _of_peer(ssl.PROTOCOL_TLS_SERVER, options)


def _of_peer(side: int, options: PeerTls | None) -> ssl.SSLContext:
    context = ssl.SSLContext(side)
    context.check_hostname = False
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    if options is None:
        context.verify_mode = ssl.CERT_NONE
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(_ANONYMOUS)
        context.set_ecdh_curve(_ANONYMOUS_CURVE)
        return context
    context.verify_mode = ssl.CERT_REQUIRED
    _set(context, options.certfile, options.keyfile, options.password, _PEERS)
    if options.cafile is not None:
        _trust(context, options.cafile)
    if options.capath is not None:
        if not os.path.isdir(options.capath):
            raise TlsError(f"capath={os.fspath(options.capath)!r} is not a folder")
        context.load_verify_locations(capath=options.capath)
    return context


def _set(
    context: ssl.SSLContext,
    certfile: Path | None,
    keyfile: Path | None,
    password: str | None,
    ciphers: str | None,
) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ciphers is not None:
        try:
            context.set_ciphers(ciphers)
        except ssl.SSLError as error:
            raise TlsError(f"ciphers={ciphers!r}: {_words(error)}") from error
    if certfile is None:
        if keyfile is not None:
            raise TlsError(f"keyfile={os.fspath(keyfile)!r} needs certfile: the certificate that it is for")
        return
    for option, path in (("certfile", certfile), ("keyfile", keyfile)):
        _check_readable(option, path)
    try:
        # Without a password OpenSSL would ask for one at the terminal.
        context.load_cert_chain(certfile, keyfile, password=password if password is not None else "")
    except (ssl.SSLError, OSError) as error:
        what = f"certfile={os.fspath(certfile)!r}"
        if keyfile is not None:
            what += f", keyfile={os.fspath(keyfile)!r}"
        words = _words(error)
        if isinstance(error, ssl.SSLError) and _is_encrypted(keyfile or certfile):
            words = "the key is encrypted, and the password is wrong or missing"
        raise TlsError(f"{what}: {words}") from error


def _trust(context: ssl.SSLContext, path: Path, option: str = "cafile") -> None:
    _check_readable(option, path)
    try:
        context.load_verify_locations(cafile=path)
    except (ssl.SSLError, OSError) as error:
        raise TlsError(
            f"{option}={os.fspath(path)!r} has no certificates in PEM form: {_words(error)}"
        ) from error


def _check_readable(option: str, path: Path | None) -> None:
    if path is None:
        return
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise TlsError(f"{option}={os.fspath(path)!r} cannot be read: {error.strerror}") from error


def _is_encrypted(path: Path) -> bool:
    with open(path, "rb") as file:
        return b"ENCRYPTED" in file.read(1 << 20)


def _words(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    if reason == "KEY_VALUES_MISMATCH":
        return "the key is not that of the certificate"
    if reason in (None, "NO_START_LINE"):  # "PEM lib" has no reason
        return "there is no certificate or key in PEM form in it"
    return str(reason).replace("_", " ").lower()
