"""The People page: invite, give a role, take away, at once."""

import asyncio
import re
from html import unescape

import asyncpg
import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.waiting import until
from tests.web.api.conftest import Service, held
from tests.web.console.conftest import Browser, user_id

PASSWORD = "four plain words here"


def invite(admin: Browser, email: str, name: str = "", role: str = "member") -> str:
    """The path of the link that the page shows for who was invited."""
    answer = admin.submit("/app/people", email=email, name=name, role=role)
    assert answer.status_code == 200, answer.text
    [link] = set(re.findall(r"https://gifts\.example(/app/link/[\w-]+)", answer.text))
    return link


def take_up(service: Service, link: str) -> Browser:
    browser = Browser(service)
    assert browser.submit(link, password=PASSWORD).status_code == 303
    return browser


def test_somebody_is_invited_comes_in_and_is_removed_at_once(service: Service, ada: Browser) -> None:
    eve = take_up(service, invite(ada, "eve@acme.example", "Eve", "viewer"))
    assert eve.get("/app").status_code == 200
    assert eve.get("/app/people").status_code == 403
    assert "Eve eve@acme.example" in ada.read("/app/people")
    eve_id = user_id(service, "eve@acme.example")
    assert ada.post(f"/app/people/{eve_id}/role", role="admin").status_code == 303
    assert "The role of Eve is now Administrator." in ada.read("/app/people")
    assert "The role of Eve is now Administrator." not in ada.read("/app/people"), "said once"
    assert eve.get("/app/people").status_code == 200, "the role holds from the next request on"
    assert "Remove Eve?" in ada.read(f"/app/people/{eve_id}/remove")
    assert ada.post(f"/app/people/{eve_id}/remove").status_code == 303
    assert eve.get("/app").status_code == 303
    assert "Eve was removed" in ada.read("/app/people")
    # Invited anew, she is asked to come in anew.
    link = invite(ada, "eve@acme.example")
    assert take_up(service, link).get("/app").status_code == 200


def test_a_role_is_changed_in_a_search(service: Service, ada: Browser) -> None:
    take_up(service, invite(ada, "sue@acme.example", "Sue & Co"))
    ada.get("/app/people?q=Sue+%26+Co")
    path = unescape(
        re.findall(rf'action="(/app/people/{user_id(service, "sue@acme.example")}/role[^"]*)"', ada.page.text)[0]
    )
    assert ada.post(path, role="viewer").headers["location"] == "/app/people?q=Sue+%26+Co"


def test_an_invitation_that_has_expired_is_none(service: Service, ada: Browser) -> None:
    invite(ada, "late@acme.example", "Late")
    ada.sees("/app/people?q=late", "Invited")
    service.sql(
        "UPDATE sign_in_links SET ends_at = clock_now() WHERE user_id = $1", user_id(service, "late@acme.example")
    )
    assert "No open invitation" in ada.read("/app/people?q=late")


def test_a_new_link_ends_the_one_before(service: Service, ada: Browser) -> None:
    first = invite(ada, "fay@acme.example")
    answer = ada.submit("/app/people", f"/app/people/{user_id(service, 'fay@acme.example')}/invitation")
    [second] = set(re.findall(r"https://gifts\.example(/app/link/[\w-]+)", answer.text))
    assert Browser(service).get(first).status_code == 404
    assert Browser(service).get(second).status_code == 200


@pytest.mark.skipif(IS_DISTRIBUTED, reason="who waits for whom is on the nodes")
async def test_a_link_that_is_used_while_its_member_is_removed_locks_the_member_first(
    service: Service, ada: Browser
) -> None:
    """The other order ends one of both as a deadlock."""
    link = invite(ada, "max@acme.example")
    max_id = user_id(service, "max@acme.example")
    ada.get(f"/app/people/{max_id}/remove")
    guest = Browser(service)
    guest.get(link)
    # The first waits for this transaction, the second for the first.
    waits = """
        SELECT count(*) = $1 FROM pg_locks WHERE NOT granted AND (pg_backend_pid() = ANY(pg_blocking_pids(pid))
            OR locktype = 'tuple' AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
    """
    connection = await asyncpg.connect(service.database_url)
    async with connection.transaction():
        await connection.execute("SELECT FROM users WHERE id = $1 FOR UPDATE", max_id)
        removed = asyncio.create_task(asyncio.to_thread(ada.post, f"/app/people/{max_id}/remove"))
        await until(lambda: connection.fetchval(waits, 1), 20)
        used = asyncio.create_task(asyncio.to_thread(guest.post, link, password=PASSWORD))
        await until(lambda: connection.fetchval(waits, 2), 20)
    assert ((await removed).status_code, (await used).status_code) == (303, 404)
    await connection.close()


@pytest.mark.skipif(IS_DISTRIBUTED, reason="a cluster holds a locked row of customers for everybody")
def test_somebody_is_removed_while_they_wait_for_their_customer(service: Service, ada: Browser) -> None:
    """Whoever saves something holds their membership and may wait for the row of the customer: a removal that waited for both could deadlock."""
    take_up(service, invite(ada, "eva@acme.example"))
    with held(service, "SELECT FROM customers WHERE key = 'acme' FOR NO KEY UPDATE"):
        assert ada.submit(f"/app/people/{user_id(service, 'eva@acme.example')}/remove").status_code == 303


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"email": ""}, "email"),
        ({"email": "no address"}, "email"),
        ({"email": "x" * 300 + "@acme.example"}, "email"),
        ({"name": "x" * 101}, "name"),
        ({"role": "owner"}, "role"),
        ({"email": "ada@acme.example"}, "email"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field_and_what_was_typed_stays(
    ada: Browser, fields: dict[str, str], wrong: str
) -> None:
    ada.get("/app/people")
    typed = {"email": "new@acme.example", "name": "Somebody", "role": "member", **fields}
    answer = ada.post("/app/people", **typed)
    assert answer.status_code == 422
    assert re.findall(r'id="(\w+)-error"', answer.text) == [wrong]
    if len(typed["name"]) < 100 and wrong != "name":
        assert 'value="Somebody"' in answer.text


def test_nobody_is_invited_at_an_address_that_looks_mistyped_before_a_second_press(ada: Browser) -> None:
    ada.page = ada.submit("/app/people", email="lee@gmail.con", name="Lee", role="viewer")
    assert ada.page.status_code == 422
    ada.says("Did you mean lee@gmail.com? If yours is right, press the button again.")
    assert '<input type="hidden" name="sure_email" value="lee@gmail.con">' in ada.page.text
    assert "lee@gmail.con" not in ada.read("/app/people")
    typed = {"email": "lee@gmail.con", "name": "Lee", "role": "viewer"}
    assert ada.submit("/app/people", **typed, sure_email="lee@gmail.con").status_code == 200
    assert "lee@gmail.con" in ada.read("/app/people")


def test_there_is_always_an_administrator(service: Service, gil: Browser) -> None:
    gil_id = user_id(service, "gil@globex.example")
    for act, fields in (("role", {"role": "viewer", "sure": "yes"}), ("remove", {})):
        gil.submit("/app/people", f"/app/people/{gil_id}/{act}", **fields)
        assert "Make somebody else an administrator first" in gil.read("/app/people")
    assert service.sql("SELECT role, is_active FROM users WHERE id = $1", gil_id)[0] == ("admin", True)


def test_people_are_listed_by_page_and_those_removed_apart(service: Service, gil: Browser) -> None:
    assert "Removed people" not in gil.read("/app/people"), "nobody was removed"
    service.sql(
        """
        INSERT INTO users (customer_id, email, name, role, is_active)
        SELECT customer_id, 'p' || n || '@globex.example', 'Person ' || lpad(n::text, 3, '0'), 'member', n <= 100
        FROM users, generate_series(1, 160) AS n WHERE email = 'gil@globex.example'
        """
    )
    for path, wanted in (("/app/people", range(1, 101)), ("/app/people?state=removed", range(101, 161))):
        seen: list[str] = []
        next_page: list[str] = [path]
        while next_page:
            page = gil.get(unescape(next_page[0]))
            assert page.text.count("<tr>") <= 51
            seen += re.findall(r"<small>(p\d+)@globex.example</small>", page.text)
            next_page = re.findall(r'href="([^"]+)" rel="next"', page.text)
        assert seen == [f"p{n}" for n in wanted], "all of them, once"
    assert "Removed people (60)" in gil.text
    found = gil.get("/app/people?q=PERSON+150").text
    assert re.findall(r"<small>(p\d+)@globex.example</small>", found) == ["p150"], "a search finds both"
    assert "Nobody is found" in gil.read("/app/people?q=%25")
    service.sql("DELETE FROM users WHERE name LIKE 'Person %'")


def test_an_administrator_who_gives_up_that_role_is_asked_first(service: Service, ada: Browser) -> None:
    service.sql(
        "UPDATE users SET role = 'admin', is_active = true WHERE email IN ('ada@acme.example', 'cem@acme.example')"
    )
    own, other = (user_id(service, email) for email in ("ada@acme.example", "cem@acme.example"))
    asked = ada.submit("/app/people", f"/app/people/{own}/role", role="viewer")
    assert asked.headers["location"] == f"/app/people/{own}/role?role=viewer"
    ada.sees(asked.headers["location"], "Change your own role?", "Your role becomes Viewer")
    role_of = "SELECT role FROM users WHERE id = $1"
    assert service.sql(role_of, own)[0][0] == "admin"
    for query in ("", "?role=admin", "?role=owner"):
        assert ada.get(f"/app/people/{own}/role{query}").headers["location"] == "/app/people"
    assert ada.get(f"/app/people/{other}/role?role=viewer").headers["location"] == "/app/people"
    ada.get(f"/app/people/{own}/role?role=viewer")
    assert ada.post(f"/app/people/{own}/role", role="viewer", sure="yes").headers["location"] == "/app"
    assert service.sql(role_of, own)[0][0] == "viewer"
    assert "is now Viewer" in ada.get("/app").text
    service.sql("UPDATE users SET role = 'admin' WHERE id = $1", own)
    service.sql("UPDATE users SET role = 'member' WHERE id = $1", other)
    others = "UPDATE users SET role = 'member' WHERE role = 'admin' AND id <> $1 AND customer_id = (SELECT customer_id FROM users WHERE id = $1)"
    service.sql(others, own)
    refused = ada.submit("/app/people", f"/app/people/{own}/role", role="viewer", sure="yes")
    assert refused.status_code == 303
    assert service.sql(role_of, own)[0][0] == "admin", "the last one stays"
