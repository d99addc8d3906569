"""What the tests of groups share."""

from __future__ import annotations

import pytest
from broker.groups.clocked import Table


@pytest.fixture
def table() -> Table:
    """A group without members."""
    return Table()
