"""Options of TLS: which make sense together."""

from __future__ import annotations

import pytest

from dafka.security import ServerTls, TlsError


def test_passwords_are_not_in_what_is_printed():
    assert "secret" not in repr(ServerTls(certfile="a.pem", password="secret"))


def test_clients_certificates_need_an_authority():
    with pytest.raises(TlsError, match="client_auth='required' needs cafile"):
        ServerTls(certfile="a.pem", client_auth="required")


def test_only_kafkas_words_say_whether_clients_show_a_certificate():
    with pytest.raises(TlsError, match=r"'requested', 'required'.*not 'maybe'"):
        ServerTls(certfile="a.pem", cafile="b.pem", client_auth="maybe")
