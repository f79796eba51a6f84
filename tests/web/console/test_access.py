"""What somebody may do is read again when their form has come whole, and held by each transaction that writes for them."""

import ast
import asyncio
import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import asyncpg
import pytest
from msgspec.structs import replace
from tests.distributed import SOMEBODY_WAITS, WAITING
from tests.waiting import until
from tests.web.api.conftest import RICH_WORLD, Service, on_database
from tests.web.console.conftest import Browser, signed_in
from tests.web.console.sending import begin, quote_in, ready
from tests.web.console.test_routes import path_of

import largesse.web.console
from largesse.customers.access import LOCK_USER
from largesse.web.console.page_routes import Access, PageRoute
from largesse.web.console.routes import ROUTES

ADA = "ada@acme.example"
# What takes access away, and what gives it back.
REMOVALS = {
    "session": (
        "UPDATE sessions SET ended_at = clock_now() WHERE ended_at IS NULL AND user_id = $1",
        "UPDATE sessions SET ended_at = NULL WHERE user_id = $1",
    ),
    "membership": (
        "UPDATE users SET is_active = false WHERE id = $1",
        "UPDATE users SET is_active = true WHERE id = $1",
    ),
    "role": ("UPDATE users SET role = 'viewer' WHERE id = $1", "UPDATE users SET role = 'admin' WHERE id = $1"),
}
# A second administrator: the first one may be demoted.
WORLD = RICH_WORLD.replace(
    "      - {email: bob@", "      - {email: eve@acme.example, name: Eve, role: admin}\n      - {email: bob@", 1
)


@pytest.fixture(scope="module")
def ada(service: Service) -> Browser:
    return signed_in(service, ADA)


@pytest.fixture
def ada_id(service: Service) -> Iterator[int]:
    user_id: int = service.sql("SELECT id FROM users WHERE email = $1", ADA)[0][0]
    yield user_id
    for _, restored in REMOVALS.values():
        service.sql(restored, user_id)


def all_that_counts(service: Service) -> tuple[Any, ...]:
    acts = service.sql("SELECT count(*) FROM audit_events WHERE act <> 'person.signed_in'")[0][0]
    people = service.sql("SELECT array_agg((email, role, is_active) ORDER BY id) FROM users")[0][0]
    sessions = service.sql("SELECT count(*) FROM sessions WHERE ended_at IS NULL")[0][0]
    drafts = service.sql("SELECT count(*), max(changed_at) FROM drafts")[0]
    return (*service.state(), acts, people, sessions, tuple(drafts))


def post_in_two(
    browser: Browser, route: PageRoute, path: str, fields: dict[str, str], between: Callable[[], object]
) -> tuple[int, str]:
    """Posts a form whose body follows once the service waits for it, and `between` was called; status and place of the answer."""
    at = urlsplit(browser.service.url)
    body, media_type = urlencode(fields).encode(), "application/x-www-form-urlencoded"
    if route.takes_files:
        part = '--x\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n'
        body = ("".join(part.format(*field) for field in fields.items()) + "--x--\r\n").encode()
        media_type = "multipart/form-data; boundary=x"
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {at.netloc}\r\nX-Forwarded-For: {browser.host}\r\n"
        f"Cookie: {'; '.join('='.join(one) for one in browser.cookies.items())}\r\nContent-Type: {media_type}\r\n"
        f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n"
    )
    assert at.hostname is not None
    with socket.create_connection((at.hostname, at.port or 80), timeout=30) as connection:
        connection.sendall(head.encode())
        assert b" 100 " in connection.recv(1000), route.path
        between()
        connection.sendall(body)
        answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode("utf-8", "replace")
    location = re.search(r"\r\nlocation: (\S*)", answer, re.IGNORECASE)
    return int(answer.split(" ", 2)[1]), location[1] if location else ""


@pytest.mark.parametrize("every", [3, pytest.param(1, marks=pytest.mark.slow)], ids=["some", "all"])
@pytest.mark.parametrize("removed", REMOVALS)
def test_no_form_is_taken_whose_sender_lost_access_while_it_was_on_its_way(
    service: Service, ada: Browser, ada_id: int, removed: str, every: int
) -> None:
    """With `every` 3, each form meets one of the three removals."""
    remove, restore = REMOVALS[removed]
    expected = {"session": (401, ""), "membership": (303, "/app/customers"), "role": (403, "")}[removed]
    tried = 0
    draft = begin(ada, service).rpartition("/")[2]
    for number, route in enumerate(ROUTES, list(REMOVALS).index(removed)):
        is_kept = (removed == "membership" and not route.is_of_customer) or (
            removed == "role" and "viewer" in route.roles
        )
        if number % every or route.method == "GET" or route.who is Access.ANYONE or is_kept:
            continue
        ada.get("/app")
        fields = {"token": ada.token, "role": "admin", "name": "x"}
        before = all_that_counts(service)
        path = path_of(replace(route, path=route.path.replace("{draft}", draft)))
        answer = post_in_two(ada, route, path, fields, lambda: service.sql(remove, ada_id))
        service.sql(restore, ada_id)
        assert answer == expected, route.path
        assert all_that_counts(service) == before, route.path
        tried += 1
    assert tried > 40 / every


def forms(service: Service, ada: Browser) -> dict[str, tuple[str, dict[str, str]]]:
    """A path and fields of forms that each change something of another kind, ready to be taken."""
    ids = service.ids
    path = ready(ada, service)
    ada.get(f"{path}/review")
    place = quote_in(ada)
    eve = service.sql("SELECT id FROM users WHERE email = 'eve@acme.example'")[0][0]
    bot = str(ids["service_accounts"]["hr-bot"])
    accounts = {"from": str(ids["funding_accounts"]["gbp"]), "to": str(ids["funding_accounts"]["team"])}
    return {
        "key": ("/app/keys", {"name": "late", "service_account": bot, "scope": "read", "networks": ""}),
        "invitation": ("/app/people", {"email": "late@acme.example", "name": "", "role": "admin"}),
        "role": (f"/app/people/{eve}/role", {"role": "viewer"}),
        "removal": (f"/app/people/{eve}/remove", {}),
        "account": ("/app/funding/accounts", {"name": "Late", "currency": "GBP"}),
        "transfer": ("/app/funding/transfers", {**accounts, "amount": "5"}),
        "top-up": ("/app/funding/top-ups", {"account": accounts["to"], "amount": "5"}),
        "limit": (f"/app/service-accounts/{bot}/limit", {"currency": "GBP", "largest_order": "5", "daily": ""}),
        "webhook": ("/app/webhooks", {"target_url": "https://hooks.example/largesse", "event": "order.created"}),
        "mode": ("/app/environment", {"environment": "staging"}),
        "sessions": ("/app/security/sessions/end", {}),
        "preferences": ("/app/security/preferences", {"language": "fr", "zone": ""}),
        "order": (f"{path}/place", {"quote": place}),
        "draft": (f"{path}/drop", {}),
    }  # fmt: skip


LOCKS = {
    "session": "SELECT FROM sessions WHERE user_id = $1 AND ended_at IS NULL FOR UPDATE",
    "membership": "SELECT FROM users WHERE id = $1 FOR UPDATE",
    "role": "SELECT FROM users WHERE id = $1 FOR UPDATE",
}


@pytest.mark.parametrize("removed", REMOVALS)
def test_no_transaction_writes_for_somebody_who_lost_access_before_it_began(
    service: Service, ada: Browser, ada_id: int, removed: str
) -> None:
    """The handler is at work already: its transaction waits for what takes the access away."""
    for name, (path, fields) in forms(service, ada).items():
        ada.get("/app")
        service.sql("UPDATE sessions SET seen_at = clock_now()")
        before = all_that_counts(service)
        post = partial(ada.post, path, **fields)
        answer = on_database(service.database_url, partial(lose, user_id=ada_id, removed=removed, send=post))
        service.sql(REMOVALS[removed][1], ada_id)
        assert answer.status_code in {303, 401, 403, 409}, name
        assert answer.headers.get("location", "/app/customers") == "/app/customers", name
        assert all_that_counts(service) == before, name


async def lose(connection: asyncpg.Connection, *, user_id: int, removed: str, send: Callable[[], Any]) -> Any:
    """Sends while the sender's access is locked, and takes that away once somebody waits for it.

    A wait ends after three seconds. On a machine that stood still for so long nobody is seen waiting, and it is sent again.
    """
    async with connection.transaction():
        await connection.execute(LOCKS[removed], user_id)
        await connection.execute(LOCK_USER, user_id)
        sending = asyncio.create_task(asyncio.to_thread(send))
        while not await connection.fetchval(SOMEBODY_WAITS):
            if sending.done():
                answer = await sending
                assert answer.status_code == 503, f"answered without holding anything: {answer.text}"
                sending = asyncio.create_task(asyncio.to_thread(send))
            await asyncio.sleep(0.005)
        await connection.execute(REMOVALS[removed][0], user_id)
    return await sending


def test_an_export_is_kept_in_the_audit_log_for_nobody_who_is_gone(service: Service, ada: Browser, ada_id: int) -> None:
    before = all_that_counts(service)
    take = partial(lose, user_id=ada_id, removed="session", send=partial(ada.get, "/app/people.csv"))
    answer = on_database(service.database_url, take)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/app/sign-in")
    service.sql(REMOVALS["session"][1], ada_id)
    assert all_that_counts(service) == before


@pytest.mark.slow
def test_two_administrators_who_demote_each_other_at_once_do_not_wait_for_each_other(service: Service) -> None:
    browsers = [signed_in(service, email) for email in (ADA, "eve@acme.example")]
    ids = [service.sql("SELECT id FROM users WHERE email = $1", one)[0][0] for one in (ADA, "eve@acme.example")]
    for _ in range(5):
        for browser in browsers:
            browser.get("/app")
        with ThreadPoolExecutor(2) as pool:
            posts = [
                pool.submit(browser.post, f"/app/people/{other}/role", role="member")
                for browser, other in zip(browsers, reversed(ids), strict=True)
            ]
        assert {post.result().status_code for post in posts} <= {303, 403, 409}
        roles = [service.sql("SELECT role FROM users WHERE id = $1", one)[0][0] for one in ids]
        assert sorted(roles) == ["admin", "member"]
        service.sql("UPDATE users SET role = 'admin' WHERE id = ANY($1)", ids)


def test_two_administrators_who_assign_accounts_to_each_other_at_once_both_succeed(service: Service) -> None:
    browsers = [signed_in(service, email) for email in (ADA, "eve@acme.example")]
    ids = [service.sql("SELECT id FROM users WHERE email = $1", one)[0][0] for one in (ADA, "eve@acme.example")]

    async def assign(connection: asyncpg.Connection) -> list[int]:
        async with connection.transaction():  # each holds their own membership, and waits for the other's
            await connection.fetch("SELECT FROM users WHERE id = ANY($1) FOR SHARE", ids)
            posts = [
                asyncio.create_task(asyncio.to_thread(browser.submit, "/app", f"/app/people/{other}/accounts"))
                for browser, other in zip(browsers, reversed(ids), strict=True)
            ]
            await until(lambda: asyncio.to_thread(service.sql, f"SELECT WHERE ({WAITING}) = 2"))
        return [post.status_code for post in await asyncio.gather(*posts)]

    assert on_database(service.database_url, assign) == [303, 303]


def test_sessions_of_one_person_that_end_each_other_do_not_wait_for_each_other(service: Service) -> None:
    for _ in range(5):
        browsers = [signed_in(service, "gil@globex.example") for _ in range(2)]
        for browser in browsers:
            browser.get("/app")
        with ThreadPoolExecutor(2) as pool:
            posts = [pool.submit(browser.post, "/app/security/sessions/end") for browser in browsers]
        assert sorted(post.result().status_code for post in posts) == [303, 401]


def test_handlers_write_in_no_other_way() -> None:
    """`context.database` only reads. The pool itself is for forms, notices and allowances, and for operations that begin their own transactions."""
    here = Path(largesse.web.console.__file__).parent
    found = [
        f"{path.relative_to(here)}: {ast.unparse(node)}"
        for path in sorted(here.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr == "database"
        if ast.unparse(node.value).endswith(("services", "users"))
    ]
    assert sorted(set(found)) == [
        "approvals.py: context.services.database",  # sends what was approved
        "context.py: self.services.database",
        "context.py: self.users.database",  # to read
        "guard.py: self._users.database",  # forms that were posted, and notices
        "guard.py: services.database",
        "send/preview.py: services.database",  # allowances
        "send/review.py: services.database",  # asks for approval
    ]


def test_what_reads_cannot_write(service: Service) -> None:
    from largesse.db.pool import Database, ReadOnly
    from largesse.db.scope import LOOKUP, for_customer

    async def write(database: Database, _: Any) -> None:
        for scope in (LOOKUP, for_customer(1, "production")):
            with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
                await ReadOnly(database).execute(scope, "UPDATE users SET name = name")
            assert await ReadOnly(database).fetchval(scope, "SELECT 1") == 1

    service.on_pool(write)
