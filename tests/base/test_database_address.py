import re
from pathlib import Path

import pytest

from largesse.base.database_address import DatabaseAddress, address_at, for_programs
from largesse.base.errors import OperatorError
from largesse.base.settings import load_settings

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize(
    ("url", "address", "pooled"),
    [
        ("postgresql://a:b%40@db:6432/x?pgbouncer=true", "postgresql://a:b%40@db:6432/x", True),
        ("postgresql://db/x?sslmode=require&pgbouncer=true", "postgresql://db/x?sslmode=require", True),
        ("postgresql:///x?host=%2Ftmp%2Fs&port=5432", "postgresql:///x?host=%2Ftmp%2Fs&port=5432", False),
        ("postgresql://db/x?pgbouncer=false", "postgresql://db/x?pgbouncer=false", False),
        ("postgres://db/x", "postgres://db/x", False),
        ("postgresql:///x", "postgresql:///x", False),
        ("postgresql://me@:5433/x", "postgresql://me@:5433/x", False),
        ("postgresql://[::1]:5432/x", "postgresql://[::1]:5432/x", False),
        ("postgresql://db-1/x", "postgresql://db-1/x", False),
        ("postgresql://10.0.0.1/5432", "postgresql://10.0.0.1/5432", False),
    ],
)
def test_an_address_says_where_the_database_is_and_whether_it_is_pgbouncers(
    url: str, address: str, pooled: bool
) -> None:
    assert DatabaseAddress.parse(url) == DatabaseAddress((address,), pooled)


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        (
            "postgresql://a:b@10.0.0.1:5432,10.0.0.2:5433/x?target_session_attrs=read-write",
            (
                "postgresql://a:b@10.0.0.1:5432/x?target_session_attrs=read-write",
                "postgresql://a:b@10.0.0.2:5433/x?target_session_attrs=read-write",
            ),
        ),
        ("postgresql://db1,db2:5433/x", ("postgresql://db1/x", "postgresql://db2:5433/x")),
        ("postgresql://[::1],[::2]:5433/x", ("postgresql://[::1]/x", "postgresql://[::2]:5433/x")),
        (
            "postgresql://a@/x?host=/run/a,/run/b&port=5432,5433&sslmode=disable",
            (
                "postgresql://a@/x?sslmode=disable&host=%2Frun%2Fa&port=5432",
                "postgresql://a@/x?sslmode=disable&host=%2Frun%2Fb&port=5433",
            ),
        ),
        (
            "postgresql:///x?host=db1,db2&port=5433",
            ("postgresql:///x?host=db1&port=5433", "postgresql:///x?host=db2&port=5433"),
        ),
    ],
)
def test_each_of_several_hosts_has_its_own_port(url: str, hosts: tuple[str, ...]) -> None:
    assert DatabaseAddress.parse(url).hosts == hosts


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://secret:secret@10.0.0.1,10.0.0.2:5432,5432/x?target_session_attrs=read-write",
        "postgresql://db1,db2:5432,5432/x",
        "postgresql://5432/x",
        "postgresql://5432:5432/x",
        "postgresql:///x?host=db1,5432",
    ],
)
def test_a_number_is_no_host(url: str) -> None:
    with pytest.raises(OperatorError) as refused:
        load_settings({"LARGESSE_DATABASE_URL": url})
    assert str(refused.value) == (
        "LARGESSE_DATABASE_URL names a host that is only a number: give each host its own port, "
        "as in postgresql://user:password@first:5432,second:5432/database"
    )


@pytest.mark.parametrize(
    "url",
    [
        "mysql://db/x",
        "db/x",
        "postgresql://db:port/x",
        "postgresql://db:0/x",
        "postgresql://db:65536/x",
        "postgresql://:x/x",
        "postgresql://db1,,db2/x",
        "postgresql://db1,/x",
        "postgresql://[::1/x",
        "postgresql:///x?host=/a,/b,/c&port=1,2",
        "postgresql:///x?host=/a&port=a",
        "postgresql:///x?host=/a,",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"^must look like postgresql://user:password@host:5432/database$"):
        DatabaseAddress.parse(url)


@pytest.mark.parametrize("modes", ["sslmode=maybe", "sslmode=", "sslmode=require&sslmode=verify_full"])
def test_an_unknown_sslmode_is_refused(modes: str) -> None:
    assert DatabaseAddress.parse("postgresql://db/x?sslmode=verify-full").hosts == (
        "postgresql://db/x?sslmode=verify-full",
    )
    with pytest.raises(ValueError, match=r"^must have one of these in `sslmode=`: disable, allow"):
        DatabaseAddress.parse(f"postgresql://db/x?{modes}")


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://a:b%40@db:5432/x", "postgresql://a:b%40@db:5432/x?options=-crole%3Dread"),
        (
            "postgresql://a@db,db2:5433/x?sslmode=require&options=-cjit%3Doff",
            "postgresql://a@db,db2:5433/x?sslmode=require&options=-cjit%3Doff%20-crole%3Dread",
        ),
        (
            "postgresql:///x?host=%2Ftmp%2Fs&port=5432",
            "postgresql:///x?host=%2Ftmp%2Fs&port=5432&options=-crole%3Dread",
        ),
        ("postgresql://read:b@db/x", "postgresql://read:b@db/x"),  # who logs in as it is it
        ("postgresql://a:b@db:6432/x?pgbouncer=true", "postgresql://a:b@db:6432/x"),  # which takes no options
    ],
)
def test_programs_are_told_as_whom_to_act(url: str, told: str) -> None:
    assert for_programs(url, "read") == told


def test_the_owners_address_is_not_without_the_other() -> None:
    both = {
        "LARGESSE_DATABASE_URL": "postgresql://app@db/x",
        "LARGESSE_OWNER_DATABASE_URL": "postgresql://me:hidden@db/x",
    }
    assert load_settings(both).owner_database_url == both["LARGESSE_OWNER_DATABASE_URL"]
    assert "hidden" not in repr(load_settings(both))
    assert load_settings({"LARGESSE_DATABASE_URL": "postgresql://db/x"}).owner_database_url is None
    del both["LARGESSE_DATABASE_URL"]
    with pytest.raises(OperatorError, match="LARGESSE_OWNER_DATABASE_URL needs LARGESSE_DATABASE_URL"):
        load_settings(both)


def test_the_documents_give_addresses_that_can_be_read() -> None:
    found = [url for page in PAGES for url in re.findall(r"postgres(?:ql)?://[^\s`'\"|)]+", page.read_text("utf-8"))]
    assert len(found) > 5
    for url in found:
        if not url.endswith("://…"):
            DatabaseAddress.parse(url)


def test_an_address_keeps_its_password_to_itself() -> None:
    assert "hidden" not in repr(DatabaseAddress.parse("postgresql://a:hidden@db/x"))


@pytest.mark.parametrize(
    ("address", "host", "other"),
    [
        (
            "postgresql://me:a%40b@one:5432/largesse?sslmode=require",
            "two",
            "postgresql://me:a%40b@two:6432/largesse?sslmode=require",
        ),
        ("postgresql://one/largesse", "::1", "postgresql://[::1]:6432/largesse"),
        ("postgresql://me@/largesse?host=%2Frun%2Fpostgresql&port=5432", "two", "postgresql://me@two:6432/largesse"),
    ],
)
def test_the_same_database_on_another_server(address: str, host: str, other: str) -> None:
    assert address_at(address, host, 6432) == other
