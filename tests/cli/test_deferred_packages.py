"""Packages that run when they are needed, each time in a process that has not imported them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


UNWANTED = {
    "argparse",
    "asyncio",
    "dafka.broker.remote.remote",
    "dafka.broker.server.answers.configs",
    "dafka.broker.server.answers.transactions",
    "email",
    "importlib.metadata",
    "kafka.consumer",
    "kafka.net.manager",
    "kafka.producer",
    "kafka.protocol.admin.acl",
    "kafka.protocol.consumer.group",
    "kafka.protocol.producer.transaction",
    "ssl",
    "stringprep",
    "zmq",
}
DEFERRED = "import sys; from dafka.cli import deferred_packages; deferred_packages.defer(); "


def test_a_submodule_comes_without_the_clients():
    assert run(DEFERRED + "import kafka.errors; print('kafka.consumer' in sys.modules)") == "False\n"


def test_a_name_of_the_package_is_there_when_it_is_asked_for():
    program = "import kafka.errors; from kafka import KafkaConsumer, errors; print(KafkaConsumer.__module__)"
    assert run(DEFERRED + program) == "kafka.consumer.group\n"


@pytest.mark.parametrize("module", ["kafka.cluster", "kafka.net.manager", "kafka.admin.client"])
def test_any_module_of_it_can_be_the_first(module: str):
    said = run(DEFERRED + f"import {module}; import kafka; print(kafka.KafkaProducer.__module__)")
    assert said == "kafka.producer.kafka\n"


def test_the_package_is_afterwards_what_it_is_without_this():
    program = "import kafka; kafka.KafkaProducer; print(sorted(vars(kafka)), type(kafka), kafka.__version__)"
    assert run(DEFERRED + "import kafka.errors, kafka.protocol.consumer;" + program) == run(program)


def test_a_name_that_it_does_not_have_is_an_attribute_error():
    program = "import kafka\ntry: kafka.nonsense\nexcept AttributeError as error: print(error)"
    assert run(DEFERRED + program) == "module 'kafka' has no attribute 'nonsense'\n"


def test_an_imported_package_stays_as_it_is():
    program = "import kafka; before = vars(kafka).copy(); " + DEFERRED
    assert run(program + "print(sys.modules['kafka'] is kafka, vars(kafka) == before)") == "True True\n"


def test_the_broker_command_loads_no_clients():
    program = (
        "import sys; from dafka.cli import main; main(['broker', '--help'], standalone_mode=False);"
        "print([name for name in sys.modules if name.startswith(('kafka.net.', 'kafka.consumer'))])"
    )
    assert run(program).splitlines()[-1] == "[]"


def test_a_package_of_the_protocol_is_there_when_it_is_asked_for():
    program = (
        "import kafka.protocol.admin.topics; loaded = 'kafka.protocol.admin.acl' in sys.modules;"
        "from kafka.protocol import admin; from kafka.protocol.admin import ACLOperation;"
        "print(loaded, admin.CreateTopicsRequest is kafka.protocol.admin.topics.CreateTopicsRequest)"
    )
    assert run(DEFERRED + program) == "False True\n"


def test_crc32c_comes_without_its_package():
    program = (
        "from crc32c import crc32c; print(hex(crc32c(b'123456789')), 'importlib.metadata' in sys.modules)"
    )
    assert run(DEFERRED + program) == "0xe3069283 False\n"


def test_crc32c_has_the_rest_of_its_names():
    program = "from crc32c import crc32c; import crc32c as c; print(c.__version__ > '2', c.crc32c is crc32c)"
    assert run(DEFERRED + program) == "True True\n"


def test_a_module_that_is_not_a_package_stays_as_it_is(tmp_path: Path):
    (tmp_path / "crc32c.py").write_text("def crc32c(octets): return 7\n")  # as crc32c was before 2.5
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {DEFERRED}"
    assert run(program + "import crc32c; print(crc32c.crc32c(b''))") == "7\n"


def test_a_broker_starts_without_what_its_first_records_do_not_need():
    program = "from dafka.cli.broker import Broker; broker = Broker(listen='127.0.0.1:0').start();"
    loaded = set(run("import sys;" + program + "print(*sys.modules); broker.stop()").split())
    assert "dafka.broker.server.listener" in loaded
    assert loaded.isdisjoint(UNWANTED)
