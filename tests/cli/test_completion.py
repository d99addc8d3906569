"""Completion of command lines, in the shells that are here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli.pseudo_terminal import PseudoTerminal
from cli.tools import DAFKA, environment, refused, run


def completed(*words: str) -> list[str]:
    """What bash is told when TAB is pressed behind these words."""
    line = {
        "_DAFKA_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("dafka", *words)),
        "COMP_CWORD": str(len(words)),
    }
    return [one.partition(",")[2] for one in run(**line).stdout.splitlines()]


def test_commands_and_options_are_completed() -> None:
    assert completed("ba") == ["backup"]
    assert completed("kafka", "gr") == ["groups"]
    assert "--metrics-port" in completed("broker", "--met")
    assert set(completed("broker", "--durability", "")) == {"process", "power"}


def test_names_of_commands_are_had_without_importing_them() -> None:
    program = (
        "import sys\nfrom dafka.cli import main\ntry:\n    main(prog_name='dafka')\nfinally:\n"
        "    assert 'dafka.cli.broker' not in sys.modules and 'dafka.cli.perf' not in sys.modules"
    )
    line = {"_DAFKA_COMPLETE": "bash_complete", "COMP_WORDS": "dafka ", "COMP_CWORD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(**line), capture_output=True, text=True, timeout=200
    )
    assert "plain,backup" in done.stdout and not done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_program_of_the_shell(shell: str) -> None:
    said = refused("completion", shell).stdout
    assert "_DAFKA_COMPLETE" in said and "dafka" in said
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=said, capture_output=True, text=True, timeout=200)
        assert checked.returncode == 0, checked.stderr


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH with the command dafka."""
    command = tmp_path / "dafka"
    command.write_text(f'#!/bin/sh\nexec {" ".join(DAFKA)} "$@"\n')
    command.chmod(0o755)
    return os.pathsep.join([str(tmp_path), os.environ["PATH"]])


SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(dafka completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -u -D; source <(dafka completion zsh)"),
    "fish": (["fish", "--no-config", "-i"], "dafka completion fish | source"),
}


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_what_is_typed(shell: str, path: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    command, source = SHELLS[shell]
    with PseudoTerminal(command, PATH=path, HOME=str(tmp_path), PS1="$ ") as terminal:
        terminal.press(f"{source} && echo rea''dy\n")
        terminal.wait(lambda shown: "\nready" in shown)
        terminal.press("dafka swap\t")
        terminal.wait("dafka swap-imports")
        terminal.press("\x15dafka kafka gr\t")
        terminal.wait("dafka kafka groups")
