"""Tests follow the code file by file, and large folders have a reason, as dafka/README.md says."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from documents.markdown import ROOT, links

HOUSE = ROOT / "dafka" / "README.md"
MODULES = 15  # of a folder without a reason
LINES = 450  # of a file without a reason
LONG = {"compat/kafka/consumer/group.py": "kafka-python's class: thirty methods, each with what it raises"}
TOP_LEVEL = {
    *(".ci", ".github", ".gitignore", "CHANGELOG.md", "LICENSE", "MANIFEST.in", "README.md"),
    *("pyproject.toml", "setup.cfg", "compat", "dafka", "examples", "scripts", "tests"),
}

VALUES = "an interface, and the plain values of its calls"
NO_TEST = {
    "limits.py": "constants, each of which is tested where it holds",
    "errors.py": "classes of errors, each of which is tested where it is raised",
    "compat/broker/_values/valued.py": "what the classes of values share, each of which is tested",
    "compat/kafka/consumer/_membership.py": "an interface",
    "dafka/broker/interface/access.py": VALUES,
    "dafka/broker/interface/admin.py": VALUES,
    "dafka/broker/interface/features.py": VALUES,
    "dafka/broker/interface/consumer_groups.py": VALUES,
    "dafka/broker/interface/front_end.py": "an interface",
    "dafka/broker/interface/groups.py": VALUES,
    "dafka/broker/interface/streams_groups.py": VALUES,
    "dafka/broker/interface/outcome.py": "a plain value",
    "dafka/broker/interface/positions.py": VALUES,
    "dafka/broker/interface/quotas.py": VALUES,
    "dafka/broker/interface/records.py": VALUES,
    "dafka/broker/interface/share.py": VALUES,
    "dafka/broker/interface/topics.py": VALUES,
    "dafka/broker/interface/transactions.py": VALUES,
    "dafka/broker/server/context.py": "plain values",
    "dafka/__main__.py": "a call of the command",
    "dafka/cli/__main__.py": "a call of the command",
    "dafka/commit/rows.py": "the name of a type",
    "dafka/hub/clock.py": "two functions of the system; tests/testing/test_clock.py gives a broker others",
    "dafka/mesh/node.py": "an interface",
    "dafka/mesh/retention.py": "names of another package",
    "dafka/roles/outputs.py": "plain values",
    "dafka/security/sasl/steps.py": "plain values",
}
"""Modules, or modules of a name, in which there is nothing to test."""

ELSEWHERE = {
    "compat/kafka/__main__.py": "tests/compat/test_install.py",
    "compat/kafka/admin/_requests.py": "tests/compat/admin/test_client.py",
    "compat/kafka/consumer/_arguments.py": "tests/compat/test_bad_input.py",
    "compat/kafka/consumer/_in_group.py": "tests/compat/consumer/test_group_member.py",
    "dafka/broker/codec/acls.py": "tests/broker/server/answers/test_access.py",
    "dafka/broker/embedded/calls.py": "tests/broker/embedded/test_broker.py",
    "dafka/broker/remote/access.py": "tests/cli/test_user.py",
    "dafka/broker/remote/authenticating.py": "tests/broker/server/test_authentication.py",
    "dafka/broker/remote/quotas.py": "tests/cli/test_quota.py",
    "dafka/broker/remote/share.py": "tests/broker/share/test_calls.py",
    "dafka/broker/remote/share_standings.py": "tests/broker/share/test_progress.py",
    "dafka/broker/server/answers/share.py": "tests/broker/share/test_calls.py",
    "dafka/console/green_http.py": "tests/console/networks/test_scraping.py",
    "dafka/cli/kafka/any_records.py": "tests/cli/kafka/test_topics.py",
    "dafka/cli/kafka/copying.py": "tests/cli/kafka/test_topics.py",
    "dafka/cli/kafka/read_topics.py": "tests/cli/kafka/test_consume.py",
    "dafka/broker/looking/groups.py": "tests/cli/kafka/test_groups.py",
    "dafka/migrating/copying.py": "tests/cli/test_migrate.py",
    "dafka/migrating/groups.py": "tests/cli/test_migrate.py",
    "dafka/migrating/migration.py": "tests/cli/test_migrate.py",
    "dafka/migrating/servers.py": "tests/cli/test_migrate.py",
    "dafka/migrating/signals.py": "tests/cli/test_migrate.py",
    "dafka/migrating/topics.py": "tests/cli/test_migrate.py",
    "dafka/migrating/verification.py": "tests/cli/test_migrate.py",
    "dafka/swapping/expressions.py": "tests/swapping/test_rewriting.py",
    "dafka/swapping/files.py": "tests/cli/test_swap_imports.py",
    "dafka/mesh/libzmq.py": "tests/mesh/test_transport.py",
    "dafka/mesh/store_node.py": "tests/mesh/test_lanes.py",
    "dafka/mesh/zmtp.py": "tests/mesh/test_transport.py",
    "dafka/protocol/batch_stamps.py": "tests/protocol/test_batch_records.py",
    "dafka/protocol/batch_stretch.py": "tests/protocol/test_batch_reader.py",
    "dafka/protocol/commands.py": "tests/protocol/test_framing.py",
    "dafka/spark/pipelines/archive.py": "tests/spark/pipelines/test_archive_replay.py",
    "dafka/spark/pipelines/replay.py": "tests/spark/pipelines/test_archive_replay.py",
}
"""Modules that are tested together with another one, or with a whole interface."""

BY_BEHAVIOUR = {
    "dafka/backup": "folders that are written to, killed, damaged and restored meanwhile, tests/backup",
    "dafka/broker/server/rights": "every API with and without each right, tests/broker/server/rights",
    "dafka/broker/positions": "histories of a partition beside a model, tests/broker/positions",
    "dafka/broker/share": "calls of members and histories beside a model, tests/broker/share",
    "dafka/cli/overlay": "commands as a user starts them, tests/cli/overlay",
    "dafka/cli/zper": "commands as a user starts them, tests/cli/zper",
    "dafka/console": "requests on real sockets and people's steps in a browser, tests/console",
    "dafka/overlay": "recorded sessions, vectors and a simulation, tests/overlay",
    "dafka/sockets": "patterns of sockets beside libzmq's, tests/sockets",
    "dafka/zmtp": "the protocol's steps beside libzmq's, tests/zmtp",
    "dafka/zper": "the sections of the specification, tests/zper",
    "scripts": "commands as a user starts them, tests/scripts",
}
"""Packages whose tests are named after what the whole package does; some have tests of modules as well."""


@cache
def modules() -> tuple[str, ...]:
    """Every module of the code, except for those that make a folder a package."""
    found = (path for top in ("compat", "dafka", "scripts") for path in (ROOT / top).rglob("*.py"))
    return tuple(sorted(str(path.relative_to(ROOT)) for path in found if path.name != "__init__.py"))


def own_test(module: str) -> Path:
    """Of dafka/log/space.py tests/log/test_space.py, of compat/kafka/_calls.py tests/compat/test_calls.py."""
    path = Path(module)
    match path.parts[:-1]:
        case ("dafka", *above):
            pass
        case ("compat", "kafka", *further):
            above = ["compat", *further]
        case (*above,):
            pass
    return ROOT.joinpath(
        "tests", *[folder.lstrip("_") for folder in above], f"test_{path.stem.lstrip('_')}.py"
    )


def test_a_module_has_a_test_file_of_its_name_or_a_reason():
    excused = {*NO_TEST, *ELSEWHERE}
    missing = [
        module
        for module in modules()
        if not own_test(module).exists()
        and not {module, Path(module).name} & excused
        and not any(module.startswith(f"{folder}/") for folder in BY_BEHAVIOUR)
    ]
    assert missing == []


@pytest.mark.parametrize("module", [one for one in {**NO_TEST, **ELSEWHERE} if "/" in one])
def test_an_excused_module_exists_and_has_no_test_file_of_its_name(module: str):
    assert module in modules()
    assert not own_test(module).exists()


@pytest.mark.parametrize("file", sorted(set(ELSEWHERE.values())))
def test_files_that_test_other_modules_as_well_exist(file: str):
    assert (ROOT / file).is_file()


@pytest.mark.parametrize("folder", BY_BEHAVIOUR)
def test_packages_with_tests_by_behaviour_exist_and_have_tests(folder: str):
    tests = ROOT / "tests" / folder.removeprefix("dafka/")
    assert (ROOT / folder).is_dir()
    assert list(tests.rglob("test_*.py"))


def test_large_folders_have_a_reason():
    code = (path for top in ("compat", "dafka", "examples", "scripts") for path in (ROOT / top).rglob("*.py"))
    sizes = Counter(path.parent for path in code if path.name != "__init__.py")
    reasons = re.search(r"^## Large folders\n.*", HOUSE.read_text(), re.MULTILINE | re.DOTALL)[0]
    explained = {
        (HOUSE.parent / link).resolve() for link in links(HOUSE) if f"- [{link}]({link}): " in reasons
    }
    assert {folder for folder, count in sizes.items() if count > MODULES} == explained


def test_a_large_folder_of_tests_is_that_of_a_folder_of_the_code():
    sizes = Counter(path.parent for path in (ROOT / "tests").rglob("*.py") if path.name != "__init__.py")
    large = [folder.relative_to(ROOT / "tests") for folder, count in sizes.items() if count > MODULES]
    assert [
        str(folder)
        for folder in large
        if not (ROOT / "dafka" / folder).is_dir()
        and not (folder.parts[0] == "compat" and (ROOT / "compat/kafka" / Path(*folder.parts[1:])).is_dir())
    ] == []


def test_files_are_short_or_have_a_reason():
    long = {
        str(path.relative_to(ROOT))
        for top in ("compat", "dafka", "examples", "scripts", "tests")
        for path in (ROOT / top).rglob("*.py")
        if len(path.read_text().splitlines()) > LINES
    }
    assert long == LONG.keys()


def test_names_of_tests_begin_with_their_subject():
    """A test is named by a statement: test_a_late_member_is_fenced, not test_who_is_late_is_fenced."""
    words = "what|who|whose|whoever|whatever|where|that|of|none"
    clause = re.compile(rf"^ *def (test_(?:{words})_\w+)", re.MULTILINE)
    files = (ROOT / "tests").rglob("test_*.py")
    assert [name for file in files for name in clause.findall(file.read_text())] == []


def test_nothing_else_is_kept_at_the_top_level():
    """Tools leave folders behind, and a commit of everything takes them along."""
    kept = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if kept.returncode:
        pytest.skip("this is no clone")
    assert {path.split("/")[0] for path in kept.stdout.splitlines()} == TOP_LEVEL
