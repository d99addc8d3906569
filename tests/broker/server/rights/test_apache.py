"""The same matrix against Apache Kafka with its StandardAuthorizer: DAFKA_TEST_APACHE_KAFKA=1.

All of its clients, and the node itself, are User:ANONYMOUS there: the client whose rights are taken away
connects from another address, and rules are for that address.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from broker.server.client import WireClient
from broker.server.rights.test_matrix import Scene, all_rights
from broker.server.rights.test_matrix import (
    test_an_entry_that_several_filters_of_a_deletion_take_is_in_the_answer_to_each as test_an_entry_that_several_filters_of_a_deletion_take_is_in_the_answer_to_each,  # noqa: E501
)
from broker.server.rights.test_matrix import (
    test_with_all_rights_nothing_is_refused as test_with_all_rights_nothing_is_refused,
)
from broker.server.rights.test_matrix import (
    test_without_a_right_the_answer_is_what_the_table_says as test_without_a_right_the_answer_is_what_the_table_says,  # noqa: E501
)

from dafka.security.acls.terms import AclFilter, Permission

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("DAFKA_TEST_APACHE_KAFKA"),
        reason="starts Apache Kafka; set DAFKA_TEST_APACHE_KAFKA=1",
    ),
    pytest.mark.xdist_group("apache"),
]

ROOT = Path(__file__).resolve().parents[4]
OWNER, CLIENT = "127.0.0.1", "127.0.0.2"
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",  # until there are some
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


class ApacheScene(Scene):
    def settle(self, denied: int) -> None:
        """The node's broker hears of them a little after its controller."""
        ends = time.monotonic() + 20
        wanted = AclFilter(permission=Permission.DENY)
        while len(self.client.call("describe_acls", wanted)) != denied:
            assert time.monotonic() < ends
            time.sleep(0.005)


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    settings = [f"--set={key}={value}" for key, value in SETTINGS.items()]
    command = [str(ROOT / "scripts" / "apache_kafka"), "run", *settings]
    with subprocess.Popen(
        command,
        env={**os.environ, "PYTHON": sys.executable},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        address = process.stdout.readline().strip()
        if not address:
            pytest.skip("Apache Kafka cannot be had here")
        try:
            node = SimpleNamespace(bootstrap_servers=address)
            yield ApacheScene(node, CLIENT, all_rights(OWNER))
        finally:
            process.stdin.close()


@pytest.fixture
def wire(scene: Scene) -> Iterator[WireClient]:
    with WireClient(scene.broker, CLIENT) as connected:
        yield connected
