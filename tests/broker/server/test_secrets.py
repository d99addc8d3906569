"""Passwords and tokens are never in logs, errors, metrics or the text of objects."""

from __future__ import annotations

import base64
import logging
from pathlib import Path
from typing import Any

import kafka
import pytest
from broker.users import add
from kafka.errors import KafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider
from security.sasl.keys import Signer
from timing import until

import compat.kafka
from dafka import Broker
from dafka.security import OAuthTokens, ServerSasl
from dafka.security.sasl.steps import MECHANISMS

RIGHT, WRONG = "correct-horse-battery", "staple-of-mallory"
SECONDS = 100


class Tokens(AbstractTokenProvider):
    def __init__(self, token: str) -> None:
        self._token = token

    def token(self) -> str:
        return self._token


@pytest.mark.parametrize("library", [kafka, compat.kafka], ids=["kafka-python", "the facade"])
def test_no_secret_is_told(
    library: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    signer = Signer(tmp_path)
    good, strange = signer.token(aud="kafka"), signer.token(aud="other")
    sasl = ServerSasl(
        mechanisms=MECHANISMS, failure_delay=0, tokens=OAuthTokens(jwks=signer.jwks, audience=("kafka",))
    )
    told: list[object] = [sasl]
    with Broker(listen="SASL_PLAINTEXT://127.0.0.1:0", sasl=sasl) as broker:
        add(broker, "alice", RIGHT)
        monkeypatch.setattr("dafka.broker.running.at", lambda _: None)  # the facade shall use TCP
        monkeypatch.setattr("dafka.broker.running.brokers", lambda: [])
        settings = {"bootstrap_servers": broker.bootstrap_servers, "security_protocol": "SASL_PLAINTEXT"}

        def log_in(mechanism: str, secret: str, seconds: float) -> None:
            login: dict[str, Any] = {"sasl_plain_username": "alice", "sasl_plain_password": secret}
            if mechanism == "OAUTHBEARER":
                login = {"sasl_oauth_token_provider": Tokens(secret)}
            login |= {"sasl_mechanism": mechanism, "bootstrap_timeout_ms": int(1000 * seconds)}
            producer = library.KafkaProducer(**settings, **login)
            producer.send("t", b"v").get(seconds)
            told.extend([producer, producer.metrics()])
            producer.close()

        def is_refused(mechanism: str, secret: str) -> bool:
            """A busy machine may need several attempts until the broker has said so."""
            with pytest.raises(KafkaError) as error:
                log_in(mechanism, secret, 0.3)
            told.extend([error.value, error.value.__cause__])
            return f"by {mechanism} failed" in caplog.text

        for mechanism in MECHANISMS:
            right, wrong = (good, strange) if mechanism == "OAUTHBEARER" else (RIGHT, WRONG)
            log_in(mechanism, right, SECONDS)
            until(lambda one=mechanism, secret=wrong: is_refused(one, secret))
        told += [broker, broker.metrics(), broker.discarded]
    # kafka-python itself shows at DEBUG what it sends
    told += [one.getMessage() for one in caplog.records if one.name.split(".")[0] in ("dafka", "compat")]
    secrets = [RIGHT, WRONG, good, strange]
    secrets += [base64.b64encode(one.encode()).decode() for one in secrets]
    everything = "\n".join(f"{one} {one!r}" for one in told)
    assert "authentication of user 'alice' by SCRAM-SHA-256 failed" in everything
    assert [one for one in secrets if one in everything] == []
