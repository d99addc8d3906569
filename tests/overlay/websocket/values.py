"""Any value of the overlay, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from dafka.overlay.values import (
    Address,
    Count,
    Enum,
    Port,
    Set,
    Subnet,
    Table,
    Timespan,
    Timestamp,
    order_key,
)

int64 = st.integers(-(2**63), 2**63 - 1)
octet_strings = st.binary(max_size=40).map(lambda octets: octets.decode("utf-8", "surrogateescape"))
strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | octet_strings
addresses = st.binary(min_size=16, max_size=16).map(Address) | st.ip_addresses(v=4).map(
    lambda ip: Address.of(str(ip))
)


def _subnet(address: Address, bits: int) -> Subnet:
    network = int.from_bytes(address, "big") >> (128 - bits) << (128 - bits)
    return Subnet(Address(network.to_bytes(16, "big")), bits)


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(0, 2**64 - 1).map(Count),
    int64,
    st.floats(),
    strings,
    addresses,
    st.builds(_subnet, addresses, st.integers(0, 128)),
    st.builds(Port, st.integers(0, 65535), st.integers(0, 3)),
    int64.map(Timestamp),
    int64.map(Timespan),
    strings.map(Enum),
)

values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(tuple),
        st.lists(inner, max_size=4, unique_by=order_key).map(Set),
        st.lists(st.tuples(inner, inner), max_size=4, unique_by=lambda entry: order_key(entry[0])).map(Table),
    ),
    max_leaves=20,
)
