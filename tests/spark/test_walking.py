"""The step of Spark in the walk-through of examples/secure: with the right password, and with a wrong one."""

from __future__ import annotations

import pytest
from broker.users import add
from documents.markdown import ROOT, blocks
from security.certificates import Authority

from compat.kafka import KafkaProducer
from dafka import Broker
from dafka.security import ServerTls

PAGE = ROOT / "examples" / "secure" / "README.md"
(STEP,) = [one for one in blocks(PAGE) if one.told("step in Spark") is not None]


@pytest.fixture
def address(tmp_path, monkeypatch):
    """A broker with alice's account that the driver reaches by TCP, too; files as the page has them."""
    monkeypatch.chdir(tmp_path)
    signed = Authority(tmp_path, "ca").sign("server", "localhost", "127.0.0.1")
    both = "PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0"
    with Broker(listen=both, tls=ServerTls(**signed._asdict())) as broker:
        add(broker, "alice", "right")
        with KafkaProducer(bootstrap_servers=broker.listeners["PLAINTEXT"]) as producer:
            producer.send("orders", b"one pizza").get(60)
        monkeypatch.setattr("dafka.broker.running.at", lambda _: None)
        monkeypatch.setattr("dafka.broker.running.brokers", lambda: [])
        yield broker.listeners["SASL_SSL"].replace("127.0.0.1", "localhost")


@pytest.mark.parametrize("password", ["right", "wrong"])
def test_orders_are_read_with_the_right_password_alone(spark, address, tmp_path, password):
    (tmp_path / "alice.password").write_text(f"{password}\n")
    code = STEP.text.replace("localhost:9093", address).replace('"ca.pem"', repr(str(tmp_path / "ca.pem")))
    if password == "right":
        names = {"spark": spark}
        exec(code, names)
        assert [bytes(row.value) for row in names["orders"].collect()] == [b"one pizza"]
        return
    code = code.replace(".load()", '.option("kafka.default.api.timeout.ms", "3000").load()')
    with pytest.raises(Exception, match="SaslAuthenticationFailedError") as refused:
        exec(code, {"spark": spark})
    assert "wrong" not in str(refused.value)
