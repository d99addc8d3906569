"""DescribeCluster."""

from __future__ import annotations

from broker.clients import Client
from broker.server.client import answered
from kafka.errors import MismatchedEndpointTypeError
from kafka.protocol.admin import DescribeClusterRequest


def test_controllers_have_no_endpoint(client: Client):
    response = answered(client, DescribeClusterRequest(endpoint_type=2))
    assert response.error_code == MismatchedEndpointTypeError.errno
