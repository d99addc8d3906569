"""Small disks that are really filled, where the machine lets this user mount one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A file system of that size at ``folder``; skips the test where none can be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=700", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("this user may mount no file system (a tmpfs)")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True, capture_output=True)


def fill(folder: Path, left: int = 0) -> Path:
    """Fill the disk of ``folder`` up to ``left`` octets; the file that takes the space."""
    path = folder / "filling"
    with open(path, "wb", buffering=0) as file:
        while (free := shutil.disk_usage(folder).free - left) > 0:
            try:
                os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), min(free, 2**20))
            except OSError:
                break
    return path
