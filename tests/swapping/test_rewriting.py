"""One file's imports before and after."""

# ruff: noqa: E501 (a pair is read best on one line)

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("libcst")

from dafka.swapping.rewriting import NotPythonError, rewrite

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
def test_undecidable_places_are_left_and_reported_with_their_line(source):
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
