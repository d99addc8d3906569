"""A headless Chromium, where there is one."""

from __future__ import annotations

import os
import shutil

import pytest

CHROMIUM = os.environ.get("DAFKA_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",  # nobody looks: drawing in software takes most of the processor time
    "--disable-software-rasterizer",
    "--in-process-gpu",
    "--process-per-site",  # all pages are the console's
    "--renderer-process-limit=1",
]


def launch(playwright):
    """A browser. Skips the test if there is none."""
    if CHROMIUM is None and not os.path.exists(playwright.chromium.executable_path):
        pytest.skip("there is no Chromium: apt-get install chromium, or playwright install chromium")
    return playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
