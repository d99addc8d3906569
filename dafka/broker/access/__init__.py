"""The accounts that the broker keeps."""

from __future__ import annotations
