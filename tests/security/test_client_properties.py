"""Kafka's client properties, and what of them is refused."""

from __future__ import annotations

import pickle

import pytest

from dafka.security import ClientSasl, ClientTls, SaslError, TlsError
from dafka.security.client_properties import ClientSecurity, client_security, read_properties
from dafka.security.sasl.token_files import TokenFile

MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule required"
JAAS = f'{MODULE} username="alice" password="s\\"e;cret";'
URL = "sasl.oauthbearer.token.endpoint.url"
TOKEN = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
LOGIN = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256"}


def test_security_properties_of_a_client():
    found = client_security({**LOGIN, "sasl.jaas.config": JAAS, "ssl.truststore.location": "ca.pem"})
    assert found.tls == ClientTls(cafile="ca.pem")
    assert found.sasl is not None
    assert found.sasl.options == {"sasl_plain_username": "alice", "sasl_plain_password": 's"e;cret'}
    assert "cret" not in repr(found)
    assert pickle.loads(pickle.dumps(found)) == found and hash(found) == hash(found)
    assert client_security({}) == ClientSecurity()


@pytest.mark.parametrize(
    "pairs", ["username=alice password=secret ;", "password='secret'\n username='alice';"]
)
def test_forms_of_jaas(pairs):
    found = client_security({**LOGIN, "sasl.jaas.config": f"{MODULE} {pairs}"}).sasl
    options = {"sasl_plain_username": "alice", "sasl_plain_password": "secret"}
    assert found == ClientSasl(mechanism="SCRAM-SHA-256", options=options)


def test_a_token_is_read_from_its_file(tmp_path):
    path = tmp_path / "a token"
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
    found = client_security(
        {**TOKEN, URL: path.as_uri(), "sasl.login.callback.handler.class": handler, "sasl.jaas.config": "any"}
    )
    assert found.sasl == ClientSasl(
        mechanism="OAUTHBEARER", options={"sasl_oauth_token_provider": TokenFile(str(path))}
    )
    assert pickle.loads(pickle.dumps(found)) == found


@pytest.mark.parametrize(
    ("properties", "error", "words"),
    [
        ({"security.protocol": "TLS"}, SaslError, "security.protocol='TLS'"),
        ({"security.protocol": "SASL_SSL"}, SaslError, "sasl.mechanism=None"),
        ({**LOGIN, "sasl.mechanism": "GSSAPI"}, SaslError, "'GSSAPI' is not one of"),
        ({**LOGIN, "sasl.jaas.config": "alice:secret"}, SaslError, "LoginModule"),
        ({**LOGIN, "sasl.jaas.config": JAAS.rstrip(";")}, SaslError, "LoginModule"),
        ({**LOGIN, "sasl.jaas.config": f"{MODULE} username=secret;"}, SaslError, "LoginModule"),
        (TOKEN, SaslError, f"{URL} is file:///PATH"),
        ({**TOKEN, URL: "https://one:secret@issuer.example"}, SaslError, f"{URL} is file:///PATH"),
        ({**TOKEN, URL: "file:///t", "sasl.login.callback.handler.class": "x"}, SaslError, "there is only"),
        ({"security.protocol": "SSL", "ssl.truststore.type": "JKS"}, TlsError, "ssl.truststore.type='JKS'"),
        (
            {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": "no"},
            TlsError,
            "https or nothing",
        ),
    ],
)
def test_errors_name_invalid_properties_and_no_secret(properties, error, words):
    with pytest.raises(error, match=words) as refused:
        client_security(properties)
    assert "secret" not in str(refused.value)


def test_a_file_of_properties(tmp_path):
    path = tmp_path / "client.properties"
    path.write_text(f"# login\n\nsecurity.protocol = SASL_SSL\nsasl.jaas.config={JAAS}\n")
    assert read_properties(str(path)) == {"security.protocol": "SASL_SSL", "sasl.jaas.config": JAAS}
    path.write_text("secret")
    with pytest.raises(ValueError, match=r"line 1: it is not name=value$"):
        read_properties(str(path))


def test_a_file_that_is_not_text_is_named_with_its_line(tmp_path):
    path = tmp_path / "client.properties"
    path.write_bytes(b"security.protocol=SSL\nssl.keystore.password=\xff\n")
    with pytest.raises(ValueError, match=r"client\.properties, line 2: it is not UTF-8"):
        read_properties(str(path))
