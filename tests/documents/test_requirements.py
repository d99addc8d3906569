"""What the project asks for can be had for its oldest Python: libraries drop Pythons sooner."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from configparser import ConfigParser
from contextlib import suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion

SETUP = ConfigParser()
SETUP.read(Path(__file__).parents[2] / "setup.cfg")
SIMPLE = "application/vnd.pypi.simple.v1+json"
TIMEOUT = 20.0


def oldest_python():
    """``3.10`` of ``>=3.10``."""
    (least,) = SpecifierSet(SETUP["options"]["python_requires"])
    assert least.operator == ">="
    return least.version


def requirements():
    """Those of the package and of all its extras, as far as they are for the oldest Python."""
    said = [SETUP["options"]["install_requires"], *SETUP["options.extras_require"].values()]
    lines = {line.strip() for text in said for line in text.splitlines() if line.strip()}
    environment = {"python_version": oldest_python(), "python_full_version": f"{oldest_python()}.0"}
    wanted = map(Requirement, sorted(lines))
    return [one for one in wanted if one.marker is None or one.marker.evaluate(environment)]


def is_for_it(file):
    """Whether the oldest Python installs a file; as with pip, if what it says of that makes no sense."""
    try:
        return oldest_python() in SpecifierSet(file["requires-python"] or "")
    except InvalidSpecifier:
        return True


def version_of(filename):
    """The version in a file of an index; None of what pip does not install."""
    with suppress(InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return (parse_wheel_filename if filename.endswith(".whl") else parse_sdist_filename)(filename)[1]
    return None


@pytest.fixture(scope="module")
def index():
    """What an index of packages says of one of them."""
    asked = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"],
        capture_output=True,
        text=True,
        check=False,
    )
    url = os.environ.get("PIP_INDEX_URL") or asked.stdout.strip() or "https://pypi.org/simple"

    def files_of(name):
        with urlopen(
            Request(f"{url.rstrip('/')}/{name}/", headers={"Accept": SIMPLE}), timeout=TIMEOUT
        ) as page:
            return json.load(page)["files"]

    try:
        files_of("pip")
    except (URLError, TimeoutError, ValueError) as error:
        pytest.skip(f"no index of packages answers in JSON: {error}")
    return files_of


def test_requirements_have_versions_for_the_oldest_python(index):
    wanted = requirements()
    assert {"gevent", "pyspark", "websockets"} <= {one.name for one in wanted}

    def versions(name):
        return {version_of(file["filename"]) for file in index(name) if is_for_it(file)} - {None}

    names = sorted({one.name for one in wanted})
    with ThreadPoolExecutor(8) as pool:
        there = dict(zip(names, pool.map(versions, names), strict=True))
    assert [str(one) for one in wanted if not any(one.specifier.filter(there[one.name]))] == []
