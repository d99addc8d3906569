"""Finding Java."""

from __future__ import annotations

import os

import pytest

from dafka.spark.java import JavaMissingError, find_java, java_version


@pytest.fixture
def javas(tmp_path, monkeypatch):
    """Makes homes of a Java that says to be of some version, and nothing else of Java is to be found."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr("dafka.spark.java._PLACES", (str(tmp_path / "jvm" / "*"),))

    def make(name, version):
        program = tmp_path / "jvm" / name / "bin" / "java"
        program.parent.mkdir(parents=True)
        said = f'openjdk version "{version}" 2024-01-01'
        program.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
        program.chmod(0o755)
        return str(program.parent.parent)

    return make


@pytest.mark.parametrize(("said", "version"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("25-ea", 25)])
def test_versions_are_read_as_java_says_them(javas, said, version):
    assert java_version(javas("some", said)) == version


def test_a_folder_without_java_has_no_version(tmp_path):
    assert java_version(str(tmp_path)) is None


def test_java_home_goes_first(javas, monkeypatch):
    first, _ = javas("a", "17.0.1"), javas("z", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", first)
    assert find_java() == first


def test_the_one_on_the_path_goes_before_those_in_usual_places(javas, monkeypatch):
    on_path, _ = javas("a", "17.0.1"), javas("z", "21.0.1")
    monkeypatch.setenv("PATH", os.path.join(on_path, "bin"))
    assert find_java() == on_path


def test_one_that_is_too_old_is_passed_over_and_named(javas, monkeypatch):
    old = javas("a", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", old)
    with pytest.raises(JavaMissingError, match=r"Java 17 or newer \(.* is Java 11") as caught:
        find_java()
    assert "apt-get install default-jre-headless" in str(caught.value)
    new = javas("b", "17.0.2")
    assert find_java() == new


def test_no_java_at_all_is_one_line(javas):
    with pytest.raises(JavaMissingError, match="Spark needs Java 17 or newer: install one"):
        find_java()
