"""A headless Chromium, where there is one."""

from __future__ import annotations

import os
import shutil

import pytest

CHROMIUM = os.environ.get("DAFKA_TEST_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")


def launch(playwright):
    """A browser. Skips the test if there is none."""
    if CHROMIUM is None and not os.path.exists(playwright.chromium.executable_path):
        pytest.skip("there is no Chromium: apt-get install chromium, or playwright install chromium")
    return playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
