"""The operations that are reported to clients."""

from __future__ import annotations

import pytest
from kafka.protocol.admin import ACLOperation

from dafka.broker.server.answers.operations import Operation


@pytest.mark.parametrize("operation", Operation)
def test_their_numbers_are_kafkas(operation: Operation):
    assert ACLOperation[operation.name] == operation
