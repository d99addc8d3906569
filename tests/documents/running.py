"""Running the code blocks of documents, each in an empty folder and in processes of its own."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import forking
import pytest
from documents.markdown import ROOT, Block, blocks
from ports import free_port

from dafka import Tower
from dafka.testing import TestBroker
from dafka.zper import ZperOptions

SECONDS = 250.0
BROKER = re.compile(r"\b(127\.0\.0\.1|localhost|kafka\.example):9092\b")
OVERLAY = re.compile(r"\b127\.0\.0\.1:999\d\b")
TOWER = ("tcp://127.0.0.1:5556", "tcp://127.0.0.1:5557")
ZPER = {
    role: f"tcp://127.0.0.1:{port}"
    for port, role in enumerate(("writer", "reader", "ack", "relay", "controller"), 5555)
}
ZPER_DOCUMENT = ROOT / "dafka" / "zper" / "README.md"  # two of these ports are those of a tower elsewhere
ZPER_COMMANDS = {
    "produce": "writer",
    "fetch": "reader",
    "offsets": "reader",
    "count": "reader",
    "acks": "ack",
    "relay": "relay",
    "nodes": "controller",
}
OPTIONAL = ("kcat",)  # programs that only some machines have
OPTIONAL_MODULES = {  # and what blocks that import it need
    "celery": ("celery",),
    "confluent_kafka.schema_registry.avro": ("confluent_kafka.schema_registry", "fastavro"),
    "fastapi": ("fastapi", "httpx"),
}

# So that a block finds its commands, whatever Python the tests run with.
_COMMANDS = {
    "dafka": "-m dafka.cli",
    "pytest": "-m pytest -p dafka.testing.plugin -c /dev/null --rootdir . "
    "-p _hypothesis_pytestplugin --hypothesis-profile ci",  # no plugin is loaded that is not named
    "python": "",
}


def _command(name: str, *arguments: str) -> list[str]:
    """What a command of a block stands for, as ``forking`` knows it."""
    return [sys.executable, *_COMMANDS[name].split(), *arguments]


def run(block: Block, folder: Path) -> None:
    """Run a block as its directives say; raises AssertionError with what it printed."""
    with ExitStack() as stack:
        _Run(block, folder, stack).run()


def _source(block: Block) -> str:
    """A block's code; of a difference what it makes."""
    if block.language != "diff":
        return block.text
    return "".join(line[1:] for line in block.text.splitlines(keepends=True) if not line.startswith("-"))


class _Run:
    def __init__(self, block: Block, folder: Path, stack: ExitStack) -> None:
        self._block = block
        self._folder = folder
        if block.told("run with a broker") is not None:
            broker = stack.enter_context(TestBroker(listen="127.0.0.1:0"))
            self._broker = broker.bootstrap_servers
        else:
            self._broker = f"127.0.0.1:{free_port()}"
        if block.told("run with a tower") is not None:
            tower = stack.enter_context(Tower())
            self._names = dict(zip(TOWER, tower.addresses, strict=True))
        else:
            self._names = {name: f"tcp://127.0.0.1:{free_port()}" for name in TOWER}
        for name in OVERLAY.findall(block.text):
            self._names.setdefault(name, f"127.0.0.1:{free_port()}")
        if block.document == ZPER_DOCUMENT:
            self._names = dict(zip(ZPER.values(), self._zper(stack), strict=True))

    def _zper(self, stack: ExitStack) -> list[str]:
        """The addresses of ZPER's servers, in the order of ZPER."""
        if self._block.told("run with ZPER") is None:
            return [f"tcp://127.0.0.1:{free_port()}" for _ in ZPER]
        broker = stack.enter_context(TestBroker(listen=self._broker, zper=ZperOptions()))
        return [broker.zper.addresses[role] for role in ZPER]

    def run(self) -> None:
        for other in blocks(self._block.document):
            if name := other.told("kept as"):
                (self._folder / name).write_text(self._here(_source(other)))
        run = {"python": self._python, "sh": self._shell, "console": self._console}[self._block.language]
        run()

    def _python(self) -> None:
        code = self._here(_behind(self._block))
        for name, needed in OPTIONAL_MODULES.items():
            if re.search(rf"^(from|import) {re.escape(name)}\b", code, re.MULTILINE):
                for module in needed:
                    pytest.importorskip(module, exc_type=ImportError)
        if self._block.told("run as a test") is not None:
            (self._folder / "test_block.py").write_text(code)
            self._execute(_command("pytest", "-q", "test_block.py"))
        else:
            (self._folder / "block.py").write_text(code)
            self._execute(_command("python", "block.py"), until=self._block.told("run until"))

    def _shell(self) -> None:
        commands = self._block.told("run instead") or self._block.text
        for name in OPTIONAL:
            if re.search(rf"^{name}\b", commands, re.MULTILINE) and shutil.which(name) is None:
                pytest.skip(f"{name} is not installed")
        script = (self._block.told("before") or "") + "\n" + commands
        self._execute(["bash", "-euo", "pipefail", "-c", self._here(script)], self._block.told("run until"))

    def _console(self) -> None:
        """Commands behind ``$ `` and what they print; one that goes on gets Ctrl-C then."""
        for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", self._block.text, re.MULTILINE):
            printed = self._execute(["bash", "-c", self._here(command)], until=self._here(expected))
            assert printed.startswith(self._here(expected)), printed

    def _here(self, code: str) -> str:
        """Code with the addresses and folders of this run."""
        code = BROKER.sub(self._broker, code)
        for name, here in self._names.items():
            code = code.replace(name, here)
        return re.sub(r"(?<![\w/.-])(\./)?(?=(scripts|examples|tests)/)", f"{shlex.quote(str(ROOT))}/", code)

    def _execute(self, command: list[str], until: str | None = None) -> str:
        process = forking.Popen(
            command,
            cwd=self._folder,
            env=self._environment(),
            stdin=subprocess.PIPE,  # open, and empty
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        printed: list[str] = []
        reader = threading.Thread(target=lambda: printed.extend(iter(lambda: process.stdout.read(1), "")))
        reader.start()
        try:
            ended = self._wait(process, printed, until)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            reader.join()
            process.stdin.close()
            process.stdout.close()
        assert ended, "".join(["does not end:\n", *printed])
        good = (0,) if until is None else (0, 130, -signal.SIGINT)
        assert process.returncode in good, "".join([f"status {process.returncode}:\n", *printed])
        return "".join(printed)

    def _wait(self, process: subprocess.Popen[str], printed: list[str], until: str | None) -> bool:
        deadline = time.monotonic() + SECONDS
        while until is not None and until not in "".join(printed) and process.poll() is None:
            assert time.monotonic() < deadline, "".join([f"has not printed {until!r}:\n", *printed])
            time.sleep(0.02)
        if until is not None:
            try:
                process.wait(0.5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(max(1.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            return False
        assert until is None or until in "".join(printed), "".join(["ended before:\n", *printed])
        return True

    def _environment(self) -> dict[str, str]:
        commands = self._folder / ".commands"
        commands.mkdir(exist_ok=True)
        for name, arguments in _COMMANDS.items():
            (commands / name).write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {arguments} "$@"\n')
            (commands / name).chmod(0o755)
        environment = {key: value for key, value in os.environ.items() if not key.startswith("DAFKA_")}
        return {
            **environment,
            **self._zper_clients(),
            "HOME": str(self._folder),
            "PATH": os.pathsep.join([str(commands), environment["PATH"]]),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
            "PYTHONUNBUFFERED": "1",
            "PYTHONWARNINGS": "ignore::DeprecationWarning",
        }

    def _zper_clients(self) -> dict[str, str]:
        """Variables with which ZPER's clients in the terminal go to the addresses of this run."""
        here = {role: self._names.get(address, address) for role, address in ZPER.items()}
        return {
            f"DAFKA_ZPER_{command.upper()}_ADDRESS": here[role] for command, role in ZPER_COMMANDS.items()
        }


def _behind(block: Block) -> str:
    """A block's code behind that of the blocks that it continues."""
    code = _source(block)
    if before := block.told("before"):
        code = textwrap.dedent(before) + "\n" + code
    if block.told("run after the block above") is not None:
        known = [one for one in blocks(block.document) if one.language == block.language]
        code = _behind(known[known.index(block) - 1]) + "\n" + code
    return code
