"""The authorized operations that are reported to clients."""

from __future__ import annotations

import pytest
from kafka.protocol.admin import ACLOperation

from dafka.broker.server.answers.operations import Operation


@pytest.mark.parametrize("operation", Operation)
def test_operations_have_kafkas_numbers(operation: Operation):
    assert ACLOperation[operation.name] == operation
