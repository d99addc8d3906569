"""scripts/swap_imports: files before and after."""

# ruff: noqa: E501 (a pair is read best on one line)

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("libcst")

from scripts.swapping.rewriting import NotPythonError, rewrite

ROOT = Path(__file__).resolve().parents[2]

# What swaps and comes back as it was.
PAIRS = {
    "import kafka": "from compat import kafka",
    "import kafka as k": "import compat.kafka as k",
    "import kafka as kafka": "import compat.kafka as kafka",
    "import kafka.errors": "import compat.kafka.errors, compat.kafka as kafka",
    "import kafka.errors as errors": "import compat.kafka.errors as errors",
    "import json, kafka, sys": "import json, compat.kafka as kafka, sys",
    "import kafka, json": "import compat.kafka as kafka, json",
    "import kafka.errors, kafka.structs": "import compat.kafka.errors, compat.kafka.structs, compat.kafka as kafka",
    "import a, kafka.errors as e, kafka.structs": "import a, compat.kafka.errors as e, compat.kafka.structs, "
    "compat.kafka as kafka",
    "import kafka; kafka.KafkaProducer()": "from compat import kafka; kafka.KafkaProducer()",
    "import kafka  # the client": "from compat import kafka  # the client",
    "from kafka import KafkaProducer": "from compat.kafka import KafkaProducer",
    "from kafka import KafkaProducer as P, KafkaConsumer": "from compat.kafka import KafkaProducer as P, "
    "KafkaConsumer",
    "from kafka import *": "from compat.kafka import *",
    "from kafka import (  # noqa\n    A,  # first\n    B,\n)": "from compat.kafka import (  # noqa\n    A,  # first\n"
    "    B,\n)",
    "from kafka import A, \\\n    B": "from compat.kafka import A, \\\n    B",
    "from kafka.coordinator.assignors.range import R": "from compat.kafka.coordinator.assignors.range import R",
    "from  kafka . errors  import  KafkaError": "from  compat.kafka . errors  import  KafkaError",
    "def f():\n\tfrom kafka import X\n\treturn X": "def f():\n\tfrom compat.kafka import X\n\treturn X",
    "try:\n    import kafka\nexcept ImportError:\n    kafka = None": "try:\n    from compat import kafka\n"
    "except ImportError:\n    kafka = None",
    "if TYPE_CHECKING:\n    from kafka.structs import T\ndef f(x: 'T'): ...": "if TYPE_CHECKING:\n"
    "    from compat.kafka.structs import T\ndef f(x: 'T'): ...",
    "def f():\n    global kafka\n    import kafka": "def f():\n    global kafka\n    from compat import kafka",
    "class C:\n    import kafka.errors; x = 1": "class C:\n    import compat.kafka.errors, compat.kafka as kafka; "
    "x = 1",
    # names in strings
    '@mock.patch("kafka.KafkaProducer")\ndef f(): ...': '@mock.patch("compat.kafka.KafkaProducer")\ndef f(): ...',
    "with patch('kafka.producer.KafkaProducer.send') as send: ...": "with patch("
    "'compat.kafka.producer.KafkaProducer.send') as send: ...",
    "unittest.mock.patch(target='kafka.KafkaConsumer', autospec=True)": "unittest.mock.patch("
    "target='compat.kafka.KafkaConsumer', autospec=True)",
    "mocker.patch(r'kafka.X', new=1)": "mocker.patch(r'compat.kafka.X', new=1)",
    "patch.multiple('kafka.errors', A=1)": "patch.multiple('compat.kafka.errors', A=1)",
    "patch.dict('kafka.KafkaConsumer.DEFAULT_CONFIG', {'kafka': 1})": "patch.dict("
    "'compat.kafka.KafkaConsumer.DEFAULT_CONFIG', {'kafka': 1})",
    "patch.dict('sys.modules', {'kafka': None, 'kafka.errors': x, 'json': y})": "patch.dict('sys.modules', "
    "{'compat.kafka': None, 'compat.kafka.errors': x, 'json': y})",
    "patch.dict(sys.modules, values={'kafka': fake})": "patch.dict(sys.modules, values={'compat.kafka': fake})",
    "monkeypatch.setattr('kafka.KafkaProducer', Fake)": "monkeypatch.setattr('compat.kafka.KafkaProducer', Fake)",
    "monkeypatch.delattr('kafka.KafkaProducer.send')": "monkeypatch.delattr('compat.kafka.KafkaProducer.send')",
    "monkeypatch.setitem(sys.modules, 'kafka', fake)": "monkeypatch.setitem(sys.modules, 'compat.kafka', fake)",
    "importlib.import_module('kafka')": "importlib.import_module('compat.kafka')",
    "import_module('kafka.errors')": "import_module('compat.kafka.errors')",
    "import_module(name='.errors', package='kafka')": "import_module(name='.errors', package='compat.kafka')",
    "import_module('.errors', 'kafka')": "import_module('.errors', 'compat.kafka')",
    "import_module(f'kafka.{part}')": "import_module(f'compat.kafka.{part}')",
    "import_module('kafka.' + part)": "import_module('compat.kafka.' + part)",
    "import_module('kafka.%s' % part)": "import_module('compat.kafka.%s' % part)",
    "import_module('kafka.{}'.format(part))": "import_module('compat.kafka.{}'.format(part))",
    "patch('kafka.' 'KafkaProducer')": "patch('compat.kafka.' 'KafkaProducer')",
    "importlib.util.find_spec('kafka')": "importlib.util.find_spec('compat.kafka')",
    "k = pytest.importorskip('kafka', minversion='2')": "k = pytest.importorskip('compat.kafka', minversion='2')",
    "pkgutil.resolve_name('kafka:KafkaProducer')": "pkgutil.resolve_name('compat.kafka:KafkaProducer')",
    "__import__('kafka.errors', fromlist=['KafkaError'])": "__import__('compat.kafka.errors', "
    "fromlist=['KafkaError'])",
    "sys.modules['kafka'] = fake": "sys.modules['compat.kafka'] = fake",
    "'kafka' in sys.modules": "'compat.kafka' in sys.modules",
    "sys.modules.pop('kafka.errors', None)": "sys.modules.pop('compat.kafka.errors', None)",
}

# What is somebody else's, or already done.
UNTOUCHED = [
    "from compat import kafka",
    "import compat.kafka as kafka",
    "import compat.kafka.errors, compat.kafka as kafka",
    "from compat.kafka.errors import KafkaError",
    "from . import kafka",
    "from .kafka import KafkaProducer",
    "from ..kafka.errors import X",
    "from app import kafka",
    "from app.kafka import KafkaProducer",
    "import app.kafka",
    "import kafkaesque, aiokafka",
    "from kafka_utils import x",
    "patch('app.kafka.KafkaProducer')",
    "patch('app.producer.kafka.KafkaProducer')",
    "patch('kafka')",
    "patch.object(kafka, 'KafkaProducer')",
    "setattr(config, 'kafka', 1)",
    "topic = 'kafka.events'; name = 'kafka'",
    "'''kafka.errors is a module.'''",
    "config = {'kafka': {'kafka.servers': 1}}",
    "import_module('app.' + 'kafka')",
    "import_module(b'kafka')",
    "def f(x: 'kafka.KafkaProducer') -> 'kafka.errors.KafkaError': ...",
    "from kafka_ import kafka",
    "# import kafka\nx = 1",
]

# What is left and reported: source -> the line and a word of the report.
LEFT = {
    "\nimport_module('kafka' + suffix)": (2, "computed"),
    "import_module(f'kafka{x}')": (1, "computed"),
    "x = 1\nBACKEND = 'kafka.KafkaProducer'": (2, "may name a module"),
    "load('kafka.errors.KafkaError')": (1, "may name a module"),
    "__import__('kafka')": (1, "__import__"),
    "__import__('kafka.errors')": (1, "__import__"),
    "logging.getLogger('kafka').setLevel(30)": (1, "logger"),
    "logging.getLogger('kafka.conn')": (1, "logger"),
    "import compat\nimport kafka.errors": (2, "compat"),
    "def f(compat): ...\nimport kafka.errors, os": (2, "compat"),
    "from . import compat\nimport kafka.errors": (2, "compat"),
}


def swapped(source: str, **options: object) -> str:
    return rewrite(source.encode(), **options).source.decode()


@pytest.mark.parametrize("before", PAIRS)
def test_swapped_and_swapped_back(before):
    after = PAIRS[before]
    done = rewrite(before.encode())
    assert done.source.decode() == after
    assert not done.notes
    assert swapped(after) == after
    back = rewrite(after.encode(), back=True)
    assert back.source.decode() == before
    assert not back.notes


@pytest.mark.parametrize("source", UNTOUCHED)
def test_names_of_other_packages_are_left_silently(source):
    encoded = source.encode()
    done = rewrite(encoded)
    assert done.source is encoded
    assert done.notes == []


@pytest.mark.parametrize("source", LEFT)
def test_what_cannot_be_decided_is_left_and_reported_with_its_line(source):
    line, word = LEFT[source]
    done = rewrite(source.encode())
    assert done.source.decode() == source
    (note,) = done.notes
    assert note.line == line
    assert word in note.text


BACK_ONLY = {
    "import compat.kafka\ncompat.kafka.KafkaProducer(compat.kafka.errors.X)": "import kafka\n"
    "kafka.KafkaProducer(kafka.errors.X)",
    "from compat import kafka as k": "import kafka as k",
    "import compat.kafka.errors\ntry: ...\nexcept (compat.kafka.errors.KafkaError): ...": "import kafka.errors\n"
    "try: ...\nexcept (kafka.errors.KafkaError): ...",
}


@pytest.mark.parametrize("before", BACK_ONLY)
def test_back_from_what_people_write_by_hand(before):
    assert swapped(before, back=True) == BACK_ONLY[before]


@pytest.mark.parametrize(
    "source", ["from compat import kafka, other", "import compat.kafka\nimport compat.x\ncompat.x.y()"]
)
def test_back_leaves_and_reports_what_shares_a_statement_or_a_name(source):
    done = rewrite(source.encode(), back=True)
    assert done.source.decode() == source
    assert len(done.notes) == 1


@pytest.mark.parametrize(
    "source",
    [
        b"import kafka\r\n\r\nx = 1\r\n",
        b"\xef\xbb\xbfimport kafka\n",
        b"# coding: latin-1\nimport kafka\nx = '\xe4'\n",
        b"import kafka",
        b"if 1:\n\timport kafka\n",
        b"import kafka\n\x0c\nx = 1\n",
    ],
)
def test_encodings_and_line_ends_stay(source):
    done = rewrite(source).source
    assert done == source.replace(b"import kafka", b"from compat import kafka")
    assert rewrite(done, back=True).source == source


def test_a_source_that_is_not_python_is_an_error_with_its_line():
    with pytest.raises(NotPythonError) as caught:
        rewrite(b"import kafka\nprint 'x'\n")
    assert caught.value.line == 2
    assert rewrite(b"print 'x'\n").notes == []  # nothing about kafka in it, so nobody looks


def test_names_stay_bound_to_what_they_were_bound_to():
    source = "import json, kafka\nimport kafka.errors\nimport kafka.structs as s\nfrom kafka import KafkaProducer as P\n"
    theirs: dict[str, object] = {}
    ours: dict[str, object] = {}
    exec(source, theirs)
    exec(swapped(source), ours)
    assert theirs.keys() - {"compat"} == ours.keys() - {"compat"}
    assert ours["kafka"].__name__ == "compat.kafka"
    assert ours["kafka"].errors is theirs["kafka"].errors
    assert ours["s"] is theirs["s"]
    assert ours["P"] is ours["kafka"].KafkaProducer


STATEMENTS = st.lists(st.sampled_from([*PAIRS, *UNTOUCHED[4:], *LEFT]), max_size=6)
# "compat" in one of them is what makes another one undecidable, which would not come back the same.
NEUTRAL = STATEMENTS.map(lambda lines: [line for line in lines if "compat" not in line])


@given(NEUTRAL)
def test_any_file_comes_back_as_it_was_and_a_second_swap_does_nothing(statements):
    source = "\n".join(statements) + "\n"
    there = swapped(source)
    ast.parse(there)
    assert swapped(there) == there
    assert swapped(there, back=True) == source
    assert swapped(source, back=True) == source


# ------------------------------------------------------------------------------------------ the command


@pytest.fixture
def tree(tmp_path):
    """A code base: 40 files that import kafka among other things, and some that do not."""
    package = tmp_path / "app"
    package.mkdir()
    (package / "__init__.py").touch()
    for number in range(40):
        (package / f"m{number}.py").write_text(f"import kafka\n\nX = {number}\n")
    (package / "plain.py").write_text("import json\n")
    (package / "stub.pyi").write_text("from kafka import KafkaProducer\n")
    return tmp_path


def run(*arguments: object, expect: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "swapping", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == expect, done.stderr
    return done


def contents(tree: Path) -> dict[str, str]:
    return {str(path.relative_to(tree)): path.read_text() for path in sorted(tree.rglob("*.py*"))}


def test_a_code_base_is_swapped_and_swapped_back(tree):
    before = contents(tree)
    assert "41 of 43 files changed" in run(tree).stderr
    assert contents(tree)["app/m7.py"] == "from compat import kafka\n\nX = 7\n"
    assert "0 of 43 files changed" in run(tree).stderr
    assert "41 of 43 files changed" in run("--back", tree).stderr
    assert contents(tree) == before


def test_check_and_diff_write_nothing(tree):
    before = contents(tree)
    assert "app/m3.py would change" in run("--check", tree, expect=1).stdout
    diff = run("--diff", tree / "app" / "m3.py").stdout
    assert "-import kafka\n+from compat import kafka\n" in diff
    assert contents(tree) == before
    run(tree)
    run("--check", tree)
    assert run("--diff", tree).stdout == ""


def test_what_is_left_is_reported_with_file_and_line(tree):
    (tree / "app" / "dynamic.py").write_text("import json\nNAME = 'kafka.KafkaProducer'\n")
    done = run(tree)
    assert f"{tree}/app/dynamic.py:2: left: the string 'kafka.KafkaProducer'" in done.stderr
    assert "1 places left" in done.stderr


def test_a_file_that_is_not_python_is_reported_and_the_others_are_swapped(tree):
    (tree / "app" / "old.py").write_text("import kafka\nprint kafka\n")
    done = run(tree, expect=2)
    assert f"{tree}/app/old.py:2: not Python" in done.stderr
    assert contents(tree)["app/m0.py"].startswith("from compat import kafka")


@pytest.mark.parametrize("place", ["kafka.py", "kafka/__init__.py", "src/kafka.py", "compat.py"])
def test_a_module_of_ones_own_under_that_name_is_not_kafka_python(tree, place):
    own = tree / place
    own.parent.mkdir(exist_ok=True)
    own.write_text("")
    before = contents(tree)
    done = run(tree)
    assert f"{tree}/app/m0.py:1: left: the module {Path(place).parts[-1].split('.')[0]!r}" in done.stderr or (
        f"{tree}/app/m0.py:1: left: the module 'kafka' is {own} here" in done.stderr
    )
    assert contents(tree) == before


def test_a_module_inside_a_package_is_not_in_the_way(tree):
    (tree / "app" / "kafka.py").write_text("from kafka import KafkaProducer\n")
    (tree / "docker" / "kafka").mkdir(parents=True)
    run(tree)
    assert contents(tree)["app/kafka.py"] == "from compat.kafka import KafkaProducer\n"


def test_a_kafka_below_packages_without_init_files_is_not_in_the_way(tree):
    own = tree / "src" / "space" / "instrumentation" / "kafka"
    own.mkdir(parents=True)
    (own / "__init__.py").write_text("import kafka\n")
    run(tree)
    assert (own / "__init__.py").read_text() == "from compat import kafka\n"


def test_environments_and_hidden_folders_are_left(tree):
    for folder in (".tox", "env", "lib/site-packages", "node_modules"):
        (tree / folder).mkdir(parents=True)
        (tree / folder / "x.py").write_text("import kafka\n")
    (tree / "env" / "pyvenv.cfg").touch()
    assert "41 of 43 files changed" in run(tree).stderr


def test_a_missing_path_is_an_error():
    assert "no such file" in run("/no/such/folder", expect=2).stderr


@pytest.mark.parametrize("jobs", ["0", "-1", "many", "65"])
def test_an_invalid_number_of_processes_is_an_error(tree, jobs):
    assert "a number from 1 to 64" in run("--jobs", jobs, tree, expect=2).stderr


def test_it_ends_quietly_when_the_reader_of_the_differences_has_gone(tmp_path):
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text("import kafka\n" * 5000)  # more than a pipe holds
    process = subprocess.Popen(
        [sys.executable, ROOT / "scripts" / "swapping", "--diff", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline().startswith("--- ")
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == 1


@pytest.mark.skipif(os.name == "nt", reason="a shell script")
def test_the_script_runs_where_it_is_called(tree):
    done = subprocess.run(
        [ROOT / "scripts" / "swap_imports", "app"],
        cwd=tree,
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert "41 of 43 files changed" in done.stderr
