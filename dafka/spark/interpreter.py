"""Checks that the Python of Spark's workers has the packages that they need.

Spark takes PYSPARK_PYTHON, or else the ``python3`` of PATH, which may be another one than that of the
program: then a worker would fail in the middle of a query, for want of packages that the program has.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import lru_cache
from typing import Any

from dafka.protocol.errors import DafkaError

# The packages that a worker imports, of the extra 'spark' and of dafka's requirements; Spark brings PySpark.
_PACKAGES = ("dafka", "pyarrow", "kafka", "gevent", "diskcache", "crc32c")
_LOOK = (
    "import sys; from importlib.util import find_spec\n"
    "print(*[name for name in sys.argv[1:] if find_spec(name) is None])"
)
_SECONDS = 30.0  # an interpreter may take to list its packages
_VARIABLE = "PYSPARK_PYTHON"


class InterpreterError(DafkaError, ModuleNotFoundError):
    """The Python of Spark's workers lacks packages that the format ``dafka`` needs."""


def check_workers(spark: Any) -> None:
    """Raise InterpreterError if the workers' Python on this machine is known to lack what they need."""
    try:
        context = spark.sparkContext
        executable, shipped = context.pythonExec, tuple(context._python_includes or ())
    except Exception:  # with Spark Connect the server chooses the workers' Python
        return
    if executable != sys.executable:
        _check(executable, tuple(_shipped_paths(shipped)), os.environ.get("PYTHONPATH", ""))


def _shipped_paths(names: tuple[str, ...]) -> list[str]:
    """Where packages are that the program gave Spark for its workers (``addPyFile``, ``--py-files``)."""
    from pyspark import SparkFiles

    return [os.path.join(SparkFiles.getRootDirectory(), name) for name in names]


@lru_cache(maxsize=8)
def _check(executable: str, shipped: tuple[str, ...], path: str) -> None:
    found = shutil.which(executable)
    if found is None:
        return  # such as ./environment/bin/python, which is unpacked on each executor
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(one for one in (*shipped, path) if one))
    try:
        said = subprocess.run(
            [found, "-c", _LOOK, *_PACKAGES],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            env=environment,
            cwd="/",  # the program's folder is not on the path of a worker
        )
    except (OSError, subprocess.TimeoutExpired):
        return  # Spark will report the error
    missing = said.stdout.split()
    if said.returncode == 0 and missing:
        raise InterpreterError(
            f"Spark starts its Python workers with {found} ({_origin(executable)}), which lacks "
            f"{', '.join(missing)}; this program runs in {sys.executable}. Before Spark starts, set "
            f"{_VARIABLE}={sys.executable}, or run: {found} -m pip install 'dafka[spark]'",
            name=missing[0],
        )


def _origin(executable: str) -> str:
    if os.environ.get(_VARIABLE) == executable:
        return f"{_VARIABLE} says so"
    return (
        f"{executable} of PATH, as {_VARIABLE} is not set"
        if _VARIABLE not in os.environ
        else "Spark's choice"
    )
