"""The options of access control lists."""

from __future__ import annotations

import pytest

from dafka.security import AclError, ServerAcls
from dafka.security.acls.options import parse_super_users


def test_super_users_are_principals():
    assert ServerAcls(super_users="User:admin").super_users == ("User:admin",)
    assert ServerAcls(super_users=[" User:a", "User:CN=b,O=c "]).super_users == ("User:a", "User:CN=b,O=c")
    for wrong in ("admin", "User:", ["User:a", ""], [7]):
        with pytest.raises(AclError, match="is not a principal"):
            ServerAcls(super_users=wrong)


def test_super_users_have_semicolons_between_them():
    assert parse_super_users("User:a; User:CN=b,O=c ;") == ("User:a", "User:CN=b,O=c")
    assert parse_super_users("") == ()
