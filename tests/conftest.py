"""What holds for all tests."""

from __future__ import annotations

from hypothesis import settings

# A deadline for each example would measure what else the machine is doing.
settings.register_profile("dafka", deadline=None)
settings.load_profile("dafka")
