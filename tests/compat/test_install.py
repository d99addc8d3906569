"""compat.kafka.install() and "python -m compat.kafka": kafka answered by the facade."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from dafka import Broker

ROOT = Path(__file__).resolve().parents[2]


def python(*arguments: object, expect: int = 0, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("DAFKA_EMBEDDED", None)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment,
        cwd=cwd,
    )
    assert done.returncode == expect, done.stderr
    return done


def run(code: str) -> str:
    done = python("-c", textwrap.dedent(code))
    assert done.stderr == ""
    return done.stdout


def test_kafka_has_our_clients_and_its_own_everything_else():
    run(
        """
        import compat.kafka
        compat.kafka.install()

        import kafka, kafka.errors
        from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
        from kafka.admin import KafkaAdminClient as A, NewTopic
        from kafka.admin.client import KafkaAdminClient as AC
        from kafka.consumer import KafkaConsumer as C
        from kafka.consumer.group import KafkaConsumer as CG
        from kafka.producer import KafkaProducer as P
        from kafka.producer.kafka import KafkaProducer as PK
        assert A is AC is KafkaAdminClient is compat.kafka.KafkaAdminClient
        assert C is CG is KafkaConsumer is kafka.KafkaConsumer is compat.kafka.KafkaConsumer
        assert P is PK is KafkaProducer is compat.kafka.KafkaProducer
        assert kafka.__name__ == "kafka" and kafka.__file__ != compat.kafka.__file__
        assert kafka.errors.KafkaError.__module__ == "kafka.errors"
        assert TopicPartition is compat.kafka.TopicPartition
        """
    )


def test_names_imported_before_are_replaced_and_restored():
    run(
        """
        import sys, types
        app = types.ModuleType("app")
        sys.modules["app"] = app
        exec("from kafka import KafkaProducer as P, KafkaConsumer, TopicPartition", app.__dict__)
        import kafka
        theirs = kafka.KafkaProducer, kafka.KafkaConsumer, kafka.KafkaAdminClient
        before = dict(vars(kafka))

        import compat.kafka
        from compat.kafka import KafkaProducer
        compat.kafka.install()
        compat.kafka.install()
        assert kafka.KafkaProducer is app.P is KafkaProducer
        assert app.KafkaConsumer is compat.kafka.KafkaConsumer
        from compat.kafka.admin.client import _TheirAdminClient
        assert _TheirAdminClient is theirs[2]

        compat.kafka.uninstall()
        assert (kafka.KafkaProducer, kafka.KafkaConsumer, kafka.KafkaAdminClient) == theirs
        assert dict(vars(kafka)) == before
        assert app.P is theirs[0] and app.KafkaConsumer is theirs[1]
        assert compat.kafka.KafkaProducer is KafkaProducer
        compat.kafka.uninstall()
        """
    )


def test_a_name_that_was_changed_meanwhile_is_not_put_back():
    run(
        """
        import compat.kafka, kafka
        compat.kafka.install()
        kafka.KafkaProducer = None
        compat.kafka.uninstall()
        assert kafka.KafkaProducer is None
        """
    )


def test_classes_derived_before_are_an_error_that_names_them_and_nothing_is_changed():
    run(
        """
        import kafka
        theirs = kafka.KafkaConsumer

        class Derived(kafka.KafkaProducer):
            pass

        import compat.kafka
        from compat.kafka._install import InstallError
        try:
            compat.kafka.install()
        except InstallError as error:
            assert "__main__.Derived" in str(error), error
        else:
            raise SystemExit("no error")
        assert kafka.KafkaConsumer is theirs
        """
    )


def test_classes_derived_afterwards_are_ours_and_mocks_find_them():
    run(
        """
        import compat.kafka
        compat.kafka.install()
        from unittest import mock
        import kafka

        class Derived(kafka.KafkaProducer):
            pass

        assert issubclass(Derived, compat.kafka.KafkaProducer)
        with mock.patch("kafka.KafkaProducer") as fake:
            assert kafka.KafkaProducer is fake
        assert kafka.KafkaProducer is compat.kafka.KafkaProducer
        """
    )


def test_lazy_modules_and_objects_are_not_woken_up():
    run(
        """
        import importlib.util, sys, types

        class Lazy:
            def __getattribute__(self, name):
                raise RuntimeError(name)

        app = types.ModuleType("app")
        app.settings = Lazy()
        sys.modules["app"] = app
        sys.modules["lazy"] = Lazy()
        spec = importlib.util.find_spec("this")
        spec.loader = importlib.util.LazyLoader(spec.loader)
        sys.modules["this"] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)  # importing it would print a poem

        import compat.kafka
        compat.kafka.install()
        compat.kafka.uninstall()
        del sys.modules["lazy"], sys.modules["this"]
        """
    )


APP = """
    import sys
    from kafka import KafkaConsumer, KafkaProducer
    from kafka.admin import KafkaAdminClient, NewTopic
    from kafka.errors import KafkaError
    import sibling

    def main():
        servers = "kafka.example.org:9092"
        KafkaAdminClient(bootstrap_servers=servers).create_topics([NewTopic("t", 1, 1)])
        with KafkaProducer(bootstrap_servers=servers) as producer:
            for word in sys.argv[1:]:
                producer.send("t", word.encode())
        consumer = KafkaConsumer("t", bootstrap_servers=servers, auto_offset_reset="earliest",
                                 consumer_timeout_ms=3000)
        print(__name__, sibling.NAME, sys.argv, [record.value for record in consumer])

    if __name__ == "__main__":
        main()
        sys.exit(3)
"""


@pytest.fixture
def app(tmp_path):
    """A folder with a program that knows nothing of this facade."""
    folder = tmp_path / "app"
    folder.mkdir()
    (folder / "sibling.py").write_text("NAME = 'sibling'\n")
    (folder / "main.py").write_text(textwrap.dedent(APP))
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").write_text("from kafka import KafkaProducer\n")
    (package / "__main__.py").write_text(
        "from . import KafkaProducer\nprint(__package__, __spec__.name, KafkaProducer.__module__)\n"
    )
    return folder


def test_a_program_is_run_as_it_is(app, tmp_path):
    done = python(
        "-m", "compat.kafka", "--embedded", tmp_path / "data", app / "main.py", "a", "-m", "--b", expect=3
    )
    assert done.stderr == ""
    argv = [str(app / "main.py"), "a", "-m", "--b"]
    assert done.stdout == f"__main__ sibling {argv} {[b'a', b'-m', b'--b']}\n"
    assert (tmp_path / "data").is_dir()


def test_a_module_is_run_as_it_is(app):
    done = python("-m", "compat.kafka", "-m", "package", cwd=app)
    assert done.stdout == "package package.__main__ compat.kafka.producer.kafka\n"
    done = python("-m", "compat.kafka", f"--embedded={app / 'data'}", "-m", "main", "x", cwd=app, expect=3)
    assert "[b'x']" in done.stdout


def test_code_and_folders_are_run_too(app):
    code = "import sys, kafka; print(sys.argv, kafka.KafkaConsumer.__module__)"
    done = python("-m", "compat.kafka", "-c", code, "x")
    assert done.stdout == "['-c', 'x'] compat.kafka.consumer.group\n"
    (app / "__main__.py").write_text("import kafka; print(kafka.KafkaConsumer.__module__)\n")
    assert python("-m", "compat.kafka", app).stdout == "compat.kafka.consumer.group\n"


def test_a_traceback_names_the_programs_file_and_line(app):
    (app / "broken.py").write_text("import kafka\n\nraise ValueError('x')\n")
    done = python("-m", "compat.kafka", app / "broken.py", expect=1)
    assert f'File "{app / "broken.py"}", line 3' in done.stderr
    assert done.stderr.endswith("ValueError: x\n")


def test_threads_and_exit_handlers_find_the_programs_globals(app):
    (app / "late.py").write_text(
        "import atexit, threading, time\nNAME = 'there'\natexit.register(lambda: print('exit', NAME))\n"
        "threading.Thread(target=lambda: (time.sleep(0.2), print('thread', NAME))).start()\n"
    )
    assert python("-m", "compat.kafka", app / "late.py").stdout == "thread there\nexit there\n"


WRONG = [
    ([], "no program"),
    (["--nonsense", "x.py"], "--nonsense"),
    (["-m"], "-m needs a value"),
    (["--embedded"], "--embedded needs a value"),
    (["--embedded=", "x.py"], "--embedded needs a folder"),
    (["--embedded", "/proc/none", "x.py"], "--embedded /proc/none: the folder /proc/none for"),
    (["--embedded", __file__, "x.py"], "is not a folder"),
    (["--embedded", os.path.dirname(__file__), "x.py"], "is not a log: it holds"),
    (["no/such/file.py"], "no/such/file.py"),
    (["no/such/file.zip"], "can't open file 'no/such/file.zip'"),
    ([os.path.dirname(__file__)], "can't find '__main__' module"),
    (["-m", "no_such_module"], "no_such_module"),
    (["-m", "no_such_package.module"], "no_such_package.module"),
]

# A process for each of them would take most of its time to start.
ONE_AFTER_ANOTHER = """
import contextlib, io, json, runpy, sys
outcomes = []
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["compat.kafka", *arguments]
    said, status = io.StringIO(), 0
    with contextlib.redirect_stderr(said):
        try:
            runpy.run_module("compat.kafka", run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            status = ended.code
    outcomes.append((status, said.getvalue()))
print(json.dumps(outcomes))
"""


def test_wrong_command_lines_are_explained():
    done = python("-c", ONE_AFTER_ANOTHER, json.dumps([arguments for arguments, _ in WRONG]))
    outcomes = json.loads(done.stdout)
    for (arguments, words), (status, said) in zip(WRONG, outcomes, strict=True):
        assert status == 2, arguments
        assert said.startswith("python -m compat.kafka: "), arguments
        assert words in said, arguments


def test_a_program_that_is_not_there_ends_with_one_line():
    done = python("-m", "compat.kafka", "no/such/file.py", expect=2)
    assert (
        done.stderr
        == "python -m compat.kafka: can't open file 'no/such/file.py': No such file or directory\n"
    )


def test_a_folder_that_is_in_use_is_an_error_before_the_program_runs(app, tmp_path):
    with Broker(tmp_path / "data"):
        done = python("-m", "compat.kafka", "--embedded", tmp_path / "data", app / "main.py", expect=2)
    assert f"is open in process {os.getpid()}" in done.stderr
    assert done.stderr.count("\n") == 1


def test_help():
    assert "usage: python -m compat.kafka" in python("-m", "compat.kafka", "--help").stdout
