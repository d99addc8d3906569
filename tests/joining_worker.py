"""What execnet starts in the place of a worker that is forked elsewhere: see ``warm_workers.py``."""

import os
import signal
import socket
import sys

signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback: the worker hears of it itself

with socket.socket(socket.AF_UNIX) as connection:
    try:
        connection.connect(f"\0{sys.argv[1]}")
        socket.send_fds(connection, [b"x"], [0, 1, 2])
        begun = connection.recv(1)
    except OSError:
        begun = b""
    if begun:
        # Nobody else holds the worker's streams: who reads them hears when it ends.
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        connection.recv(1)  # returns when it ends
        sys.exit()
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
