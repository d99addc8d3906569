"""What is forked is a process as any other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import forking
import pytest
import zmq
from contexts import new_context


def python(*arguments, **options):
    return forking.run([sys.executable, *arguments], capture_output=True, text=True, timeout=200, **options)


def test_it_is_a_child_of_this_process_and_not_an_interpreter_of_its_own():
    with forking.Popen(
        [sys.executable, "-c", "import os, sys; print(os.getpid(), os.getppid(), 'kafka' in sys.modules)"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        said = process.stdout.read()
        assert os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT).si_pid == process.pid
    assert said == f"{process.pid} {os.getpid()} {sys.platform == 'linux'}\n"


def test_arguments_environment_folder_and_standard_streams_are_its_own(tmp_path):
    program = (
        "import os, sys; print(sys.argv, dict(os.environ), os.getcwd(), sys.stdin.read()); "
        "print('errors', file=sys.stderr); print(sys.path[0] == '', 'own' in sys.path)"
    )
    environment = {"A": "1", "PYTHONPATH": "own"}
    done = python("-c", program, "x", "-y", env=environment, cwd=tmp_path, input="in\nput")
    assert done.stdout == f"['-c', 'x', '-y'] {environment} {tmp_path} in\nput\nTrue True\n"
    assert (done.stderr, done.returncode) == ("errors\n", 0)


def test_a_folder_of_the_environment_is_where_it_was_started(tmp_path):
    program = "from dafka.broker.connecting import _STARTED_IN; print(_STARTED_IN)"
    assert python("-c", program, cwd=tmp_path).stdout == f"{tmp_path}\n"


@pytest.mark.parametrize("kind", ["file", "module", "package", "in one word"])
def test_files_and_modules_are_run_as_main(tmp_path, kind):
    place = tmp_path / "some" / "__main__.py" if kind == "package" else tmp_path / "some.py"
    place.parent.mkdir(exist_ok=True)
    place.write_text("import sys; print(__name__, __file__, sys.argv, sys.modules['__main__'].__name__)")
    command = {"file": [str(place)], "in one word": ["-msome"]}.get(kind, ["-m", "some"])
    done = python(*command, "x", env={"PYTHONPATH": str(tmp_path)})
    assert done.stdout == f"__main__ {place} {[str(place), 'x']} __main__\n"


@pytest.mark.parametrize(
    ("program", "code", "errors"),
    [
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit('said')", 1, "said\n"),
        ("import os; os._exit(3)", 3, ""),
        ("import atexit; atexit.register(print, 'x', flush=True); 1 / 0", 1, "Error: division by zero\n"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, ""),
        ("raise KeyboardInterrupt", -signal.SIGINT, "KeyboardInterrupt\n"),
        ("import sys; sys.stdout.close(); sys.exit(-1)", 255, ""),
        (
            "import atexit, threading; threading.Timer(0.1, atexit.register, [print, 'x']).start()",
            0,
            "",
        ),
    ],
)  # fmt: skip
def test_it_ends_as_a_program_does(program, code, errors):
    done = python("-c", program)
    assert done.returncode == code
    assert done.stderr.endswith(errors)
    assert "forking" not in done.stderr or "Interrupt" in errors
    assert done.stdout == ("x\n" if "atexit" in program else "")


def test_output_that_cannot_be_written_is_an_error_at_its_end():
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    command = [sys.executable, "-c", "print(1)"]
    with open("/dev/full", "w") as full:
        done = forking.run(command, stdout=full, stderr=subprocess.PIPE, text=True, env={})
    assert done.returncode == 120
    assert "No space left on device" in done.stderr


def test_buffers_of_files_and_sockets_are_written_at_its_end(tmp_path):
    program = (
        "import sys, zmq; file = open(sys.argv[1], 'w'); file.write('in a buffer'); "
        "socket = zmq.Context.instance().socket(zmq.PUSH); "
        "socket.connect(sys.argv[2]); socket.send(b'queued')"
    )
    with new_context() as context, context.socket(zmq.PULL) as socket:
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        assert python("-c", program, str(tmp_path / "file"), f"tcp://127.0.0.1:{port}").returncode == 0
        assert socket.recv() == b"queued"
    assert (tmp_path / "file").read_text() == "in a buffer"
    only = "import sys; file = open(sys.argv[1], 'w'); file.write('only')"
    assert python("-c", only, str(tmp_path / "file")).returncode == 0
    assert (tmp_path / "file").read_text() == "only"


def test_signals_reach_it_and_its_session_is_its_own():
    program = "import os, time; print(os.getsid(0), flush=True); time.sleep(1000)"
    for own in (False, True):
        with forking.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=own,
        ) as process:
            assert int(process.stdout.readline()) == (process.pid if own else os.getsid(0))
            process.send_signal(signal.SIGINT)
            assert process.wait(200) == -signal.SIGINT


def test_random_numbers_are_not_those_of_the_next_one():
    program = "import random, uuid; print(random.random(), uuid.uuid4())"
    assert len({python("-c", program).stdout for _ in range(3)}) == 3


def test_nothing_of_ours_stays_open_in_it():
    if not Path("/proc/self/fd").exists():
        pytest.skip("there is no /proc here")
    done = python("-c", "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))")
    assert done.stdout == "[0, 1, 2, 3]\n"  # the last is the listing


@pytest.mark.parametrize(
    "command",
    [[sys.executable, "-V"], ["/bin/echo", "x"], "echo x", [sys.executable, "-X", "dev", "-c", "0"]],
)
def test_other_commands_are_started_as_ever(command):
    assert forking.program_of(command) is None


def test_warnings_are_filtered_as_told():
    program = "import warnings; warnings.warn('deprecated', DeprecationWarning); warnings.warn('some')"
    assert python("-W", "ignore", "-c", program).stderr == ""
    assert "some" in python("-W", "ignore::DeprecationWarning", "-c", program).stderr
    assert python("-c", "import warnings; warnings.warn('x', ResourceWarning)").stderr == ""  # as ever
