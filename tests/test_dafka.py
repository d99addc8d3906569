"""The package itself: its public names, and that they cost nothing until they are used."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

import dafka


def run(script):
    """Run the script in a fresh interpreter."""
    preamble = f"import sys\nsys.path[:0] = {sys.path!r}\n"
    subprocess.run([sys.executable, "-c", preamble + textwrap.dedent(script)], check=True, timeout=200)


@pytest.mark.parametrize("name", ["Broker", "Consumer", "Producer", "Record", "Store", "Tower"])
def test_each_public_name_is_there_and_listed(name):
    assert getattr(dafka, name).__name__ == name
    assert name in dafka.__all__
    assert name in dir(dafka)


def test_importing_the_package_loads_neither_gevent_nor_zmq():
    run("""
        import dafka
        assert not {"gevent", "zmq", "diskcache", "kafka"} & sys.modules.keys()
        import dafka.protocol.commands, dafka.roles.consumer
        assert not {"gevent", "zmq", "diskcache"} & sys.modules.keys()
    """)


def test_importing_the_facade_loads_neither_zmq_nor_asyncio():
    run("""
        import compat.kafka
        assert "kafka" in sys.modules
        assert not {"asyncio", "zmq"} & sys.modules.keys()
    """)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'dafka' has no attribute 'Zookeeper'"):
        _ = dafka.Zookeeper
    with pytest.raises(ImportError, match="Zookeeper"):
        from dafka import Zookeeper  # noqa: F401


@pytest.mark.parametrize("package", ["pyspark", "pyarrow"])
def test_spark_without_its_packages_names_the_extra_to_install(package):
    run(f"""
        sys.modules[{package!r}] = None
        try:
            import dafka.spark
        except ModuleNotFoundError as error:
            assert error.name == {package!r}
            assert str(error) == (
                f"dafka.spark runs on Apache Spark; {package} is missing in {{sys.executable}}: "
                "pip install 'dafka[spark]'. If Spark has started this interpreter, set PYSPARK_PYTHON "
                "to the one that is meant"
            )
        else:
            raise AssertionError("imported")
    """)
