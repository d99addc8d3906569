"""kafka-python's package without its clients, each time in a process that has not imported it."""

from __future__ import annotations

import subprocess
import sys


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


DEFERRED = "import sys; from dafka.cli import kafka_package; kafka_package.defer(); "


def test_a_submodule_comes_without_the_clients():
    assert run(DEFERRED + "import kafka.errors; print('kafka.consumer' in sys.modules)") == "False\n"


def test_a_name_of_the_package_is_there_when_it_is_asked_for():
    program = "import kafka.errors; from kafka import KafkaConsumer, errors; print(KafkaConsumer.__module__)"
    assert run(DEFERRED + program) == "kafka.consumer.group\n"


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
        "print([name for name in sys.modules if name.startswith(('kafka.net', 'kafka.consumer'))])"
    )
    assert run(program).splitlines()[-1] == "[]"
