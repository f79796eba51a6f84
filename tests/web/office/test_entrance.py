"""Getting into the back office: not before somebody was invited, by an invitation, with a second step, from the networks it is for."""

import html
import re
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import pytest
from msgspec.structs import replace
from tests.chained import actor_on
from tests.web.api.conftest import Service, ServiceFactory
from tests.web.console.conftest import Browser
from tests.web.office.conftest import add_staff, link_of, recovery_code, staff_in

from largesse.customers.access import AccessChanged
from largesse.customers.staff_roles import StaffMember, StaffRight
from largesse.db.pool import Database
from largesse.encryption.vault import Vault
from largesse.staff.service import MOST_STAFF
from largesse.staff.sign_in import staff_actor


def test_there_is_no_back_office_before_somebody_was_invited(start_service: ServiceFactory) -> None:
    service = start_service()
    browser = Browser(service)
    nowhere = browser.get("/no-such-page")
    number = f"/office/customers/{'9' * 5_000}"
    for path in ("/office", "/office/sign-in", "/office/assets/office.css", "/office/link/x", "/office/no", number):
        answer = browser.get(path)
        assert (answer.status_code, answer.headers["content-type"]) == (404, nowhere.headers["content-type"])
        assert answer.json()["detail"] == nowhere.json()["detail"]
        assert "set-cookie" not in answer.headers
    add_staff(service, "owner")
    assert browser.get("/office/sign-in").status_code == 200


def test_an_invitation_leads_to_a_password_and_a_second_step_before_anything_else(service: Service) -> None:
    staff_id = add_staff(service, "support", "new@largesse.example")
    service.sql("UPDATE staff SET totp = NULL, password = NULL WHERE id = $1 RETURNING 1", staff_id)
    browser, link = Browser(service), link_of(service, staff_id, "invitation")
    assert browser.submit(link, password="short").status_code == 422
    assert browser.post(link, password="a few good words").headers["location"] == "/office"
    assert browser.get("/office").headers["location"] == "/office/security"
    assert browser.get("/office/security").status_code == 200
    assert browser.get("/office/security/app").status_code == 200
    assert service.sql("SELECT last_signed_in_at IS NOT NULL FROM staff WHERE id = $1", staff_id)[0][0]


def test_the_networks_are_the_only_ones_it_is_for(start_service: ServiceFactory) -> None:
    service = start_service(office_networks=(ip_network("10.1.0.0/16"), ip_network("2001:db8::/32")))
    add_staff(service, "owner")
    for address, status in (
        ("10.1.255.255", 200),
        ("2001:db8::7", 200),
        ("10.2.0.0", 404),
        ("2001:db9::", 404),
        ("::ffff:10.2.0.1", 404),
    ):
        browser = Browser(service, host=address)
        for path in ("/office/sign-in", "/office/assets/office.css"):
            assert browser.get(path).status_code == status, (address, path)


def test_other_methods_are_answered_as_nothing(service: Service) -> None:
    add_staff(service, "owner")
    for path in ("/office", "/office/staff", "/office/sign-out"):
        assert service.client().request("PUT", path).status_code == 404, path


@pytest.mark.parametrize(
    ("change", "within", "beyond"),
    [
        ("seen_at = clock_now() - $1::interval", timedelta(minutes=29), timedelta(minutes=31)),
        ("ends_at = ends_at - $1::interval", timedelta(hours=11, minutes=58), timedelta(minutes=2)),
    ],
)
def test_a_session_ends_after_half_an_hour_without_a_request_and_after_twelve_hours(
    service: Service, change: str, within: timedelta, beyond: timedelta
) -> None:
    browser = staff_in(service, "owner")
    later = f"UPDATE staff_sessions SET {change} WHERE ended_at IS NULL RETURNING 1"
    service.sql(later, within)
    assert browser.get("/office").status_code == 200
    service.sql(later, beyond)
    assert browser.get("/office").headers["location"].startswith("/office/sign-in")


def test_a_change_asks_who_it_is_after_ten_minutes(service: Service) -> None:
    browser = staff_in(service, "owner")
    service.sql("UPDATE staff_sessions SET proved_at = clock_now() - interval '11 minutes' RETURNING 1")
    answer = browser.submit("/office/staff", email="x@largesse.example", role="auditor")
    assert answer.status_code == 200
    assert "Confirm it's you" in html.unescape(answer.text)
    assert service.sql("SELECT count(*) FROM staff WHERE email = 'x@largesse.example'")[0][0] == 0
    browser.page = answer
    code = recovery_code(service, add_staff(service, "owner"))
    done = browser.post("/office/staff", email="x@largesse.example", role="auditor", proof=code)
    assert "/office/link/" in done.text
    assert service.sql("SELECT role FROM staff WHERE email = 'x@largesse.example'")[0][0] == "auditor"


def test_tries_are_few_for_an_address_and_for_a_network(service: Service) -> None:
    add_staff(service, "owner")
    browser = Browser(service)
    browser.get("/office/sign-in")
    codes = [
        browser.post("/office/sign-in", email="Owner@Largesse.example", password=f"wrong {n}").status_code
        for n in range(12)
    ]
    assert codes == [403] * 10 + [429] * 2
    other = Browser(service)
    other.get("/office/sign-in")
    # An address that nobody has gets the same answers.
    codes = [other.post("/office/sign-in", email="nobody@example.com", password=str(n)).status_code for n in range(12)]
    assert codes == [403] * 10 + [429] * 2


def test_a_link_says_how_long_it_works_and_opening_it_uses_no_try_up(service: Service) -> None:
    browser = staff_in(service, "owner")
    invited = browser.submit("/office/staff", email="lent@largesse.example", role="support")
    assert "It works once, for 7 days" in invited.text
    [[staff_id]] = service.sql("SELECT id FROM staff WHERE email = 'lent@largesse.example'")
    browser.get(f"/office/staff/{staff_id}")
    assert "It works once, for 7 days" in browser.post(f"/office/staff/{staff_id}/reset").text, "they never signed in"
    link, scanner = link_of(service, staff_id, "invitation"), Browser(service)
    assert {scanner.get(link).status_code for _ in range(70)} == {200}
    assert scanner.submit(link, password="a few good words").status_code == 303
    browser.get(f"/office/staff/{staff_id}")
    assert "It works once, for an hour" in browser.post(f"/office/staff/{staff_id}/reset").text
    assert {scanner.get("/office/link/x").status_code for _ in range(70)} == {404, 429}, "guesses are counted"


def test_a_form_that_is_sent_twice_is_taken_once(service: Service) -> None:
    browser = staff_in(service, "owner")
    browser.get("/office/staff")
    first, second = (browser.post("/office/staff", email="twice@largesse.example", role="support") for _ in range(2))
    assert first.text == second.text
    links = service.sql(
        "SELECT count(*) FROM staff_links l JOIN staff m ON m.id = l.staff_id WHERE m.email = 'twice@largesse.example'"
    )
    assert links[0][0] == 1


def test_an_invitation_changes_nobody_who_is_there(service: Service) -> None:
    browser, form = staff_in(service, "owner"), {"email": "invited@largesse.example", "name": "", "role": "support"}
    assert "auditors change nothing" in browser.read("/office/staff")
    assert browser.post("/office/staff", **form).status_code == 200
    links = "SELECT hash, used_at FROM staff_links ORDER BY hash"
    before = [tuple(row) for row in service.sql(links)]
    browser.get("/office/staff")

    again = browser.post("/office/staff", **{**form, "role": "auditor"})

    assert (again.status_code, "is invited already, with the role Support" in again.text) == (422, True)
    assert [tuple(row) for row in service.sql(links)] == before
    assert service.sql("SELECT role FROM staff WHERE email = 'invited@largesse.example'")[0]["role"] == "support"
    there = browser.submit("/office/staff", **{**form, "email": "owner@largesse.example"})
    assert "owner@largesse.example is a member of staff already." in there.text


def test_the_last_owner_stays(service: Service) -> None:
    browser, own = staff_in(service, "owner"), add_staff(service, "owner")
    service.sql("UPDATE staff SET role = 'support' WHERE id <> $1 RETURNING 1", own)
    gone = add_staff(service, "owner", "gone@largesse.example")
    service.sql("UPDATE staff SET is_active = false WHERE id = $1 RETURNING 1", gone)
    for act, fields in (("deactivate", {}), ("role", {"role": "auditor"})):
        browser.get(f"/office/staff/{own}")
        assert browser.post(f"/office/staff/{own}/{act}", **fields).headers["location"] == "/office/staff"
        assert "needs an owner" in browser.read("/office/staff")
    assert tuple(service.sql("SELECT role, is_active FROM staff WHERE id = $1", own)[0]) == ("owner", True)
    other = add_staff(service, "owner", "other@largesse.example")
    assert browser.submit("/office/staff", f"/office/staff/{other}/role", role="support").status_code == 303
    last = service.sql("SELECT actor, act, subject FROM audit_events ORDER BY id DESC LIMIT 1")[0]
    assert tuple(last) == ("staff", "staff.role_changed", "other@largesse.example")


def test_who_is_deactivated_is_out_at_once(service: Service) -> None:
    owner = staff_in(service, "owner")
    for _ in range(2):  # the second time after another test, as it were, that took away what they sign in with
        support = staff_in(service, "support", "leaves@largesse.example")
        leaves = service.sql("SELECT id FROM staff WHERE email = 'leaves@largesse.example'")[0]["id"]
        owner.submit(f"/office/staff/{leaves}", f"/office/staff/{leaves}/deactivate")
        assert support.get("/office").headers["location"].startswith("/office/sign-in")
        known = service.sql("SELECT password IS NULL, is_active FROM staff WHERE id = $1", leaves)[0]
        assert tuple(known) == (True, False)


def test_the_others_stay_when_one_is_deactivated_or_reset(service: Service) -> None:
    owner, stays = staff_in(service, "owner"), staff_in(service, "auditor", "stays@largesse.example")
    ids = [add_staff(service, "support", f"{name}@largesse.example") for name in ("leaves", "reset", "waits")]
    links = [link_of(service, one, "invitation") for one in ids]
    others = "SELECT id, role, is_active, password, has_app FROM staff WHERE id <> ALL($1::int[]) ORDER BY id"
    before = service.sql(others, ids[:2])
    for one, act in zip(ids, ("deactivate", "reset"), strict=False):
        assert owner.submit(f"/office/staff/{one}", f"/office/staff/{one}/{act}").status_code in {200, 303}
    assert service.sql(others, ids[:2]) == before
    assert stays.get("/office").status_code == 200
    assert [Browser(service).get(link).status_code for link in links] == [404, 404, 200]


def test_a_reset_ends_sessions_and_the_second_step(service: Service) -> None:
    owner, support = staff_in(service, "owner"), staff_in(service, "support", "lost@largesse.example")
    lost = service.sql("SELECT id FROM staff WHERE email = 'lost@largesse.example'")[0]["id"]
    owner.submit(f"/office/staff/{lost}", f"/office/staff/{lost}/reset")
    assert support.get("/office").headers["location"].startswith("/office/sign-in")
    assert not service.sql("SELECT has_app FROM staff WHERE id = $1", lost)[0]["has_app"]


def test_after_a_reset_the_password_of_before_lets_nobody_in(service: Service) -> None:
    """Without the second step it would be enough to get in, and to set up a second step of one's own."""
    owner, lost = staff_in(service, "owner"), add_staff(service, "support", "stolen@largesse.example")
    service.sql("UPDATE staff SET totp = NULL WHERE id = $1 RETURNING 1", lost)
    Browser(service).submit(link_of(service, lost, "reset"), password="a few good words")
    known = {"email": "stolen@largesse.example", "password": "a few good words"}
    assert Browser(service).submit("/office/sign-in", **known).status_code == 303
    reset = owner.submit(f"/office/staff/{lost}", f"/office/staff/{lost}/reset")
    assert Browser(service).submit("/office/sign-in", **known).status_code == 403
    link = "/office/link/" + reset.text.partition("/office/link/")[2].partition('"')[0].partition("<")[0]
    assert Browser(service).submit(link, password="other good words").status_code == 303
    assert Browser(service).submit("/office/sign-in", **{**known, "password": "other good words"}).status_code == 303


def test_a_new_password_ends_the_other_sessions(service: Service) -> None:
    support, other = staff_in(service, "support", "chooses@largesse.example"), Browser(service)
    chooses = service.sql("SELECT id FROM staff WHERE email = 'chooses@largesse.example'")[0]["id"]
    assert (
        other.submit(link_of(service, chooses, "reset"), password="a few good words").headers["location"] == "/office"
    )
    assert support.get("/office").headers["location"].startswith("/office/sign-in")


def test_who_is_invited_again_starts_without_a_second_step(service: Service) -> None:
    owner, again = staff_in(service, "owner"), add_staff(service, "support", "again@largesse.example")
    service.sql("UPDATE staff SET is_active = false WHERE id = $1 RETURNING 1", again)
    invited = owner.submit("/office/staff", email="again@largesse.example", name="", role="auditor")
    assert "/office/link/" in invited.text
    now = service.sql("SELECT has_app, is_active, role FROM staff WHERE id = $1", again)[0]
    assert tuple(now) == (False, True, "auditor")


def test_nothing_is_changed_with_a_role_or_a_session_that_is_over(service: Service) -> None:
    staff_in(service, "finance", "stale@largesse.example")
    [found] = service.sql(
        "SELECT s.id AS session_id, m.id AS person_id FROM staff_sessions s JOIN staff m ON m.id = s.staff_id WHERE m.email LIKE 'stale@%'"
    )
    member = StaffMember(**found, email="stale@largesse.example", name="Stale", role="finance", is_proved=True)

    def is_refused(right: StaffRight, **changes: Any) -> bool:
        async def begin(database: Database, vault: Vault) -> None:
            acting = (await actor_on(database, vault)).acting
            async with staff_actor(database, replace(member, **changes), acting).transaction(right):
                pass

        try:
            service.on_pool(begin)
        except AccessChanged:
            return True
        return False

    assert not is_refused(StaffRight.MONEY)
    assert is_refused(StaffRight.CATALOGUE), "the role has no such right"
    assert is_refused(StaffRight.MONEY, role="owner"), "the role is another by now"
    assert is_refused(StaffRight.MONEY, person_id=0)
    service.sql("UPDATE staff_sessions SET ended_at = clock_now() WHERE id = $1 RETURNING 1", member.session_id)
    assert is_refused(StaffRight.MONEY)


def test_a_session_of_somebody_inactive_is_none_and_a_link_ends_at_its_time(service: Service) -> None:
    browser = staff_in(service, "support", "inactive@largesse.example")
    inactive = service.sql("UPDATE staff SET is_active = false WHERE email = 'inactive@largesse.example' RETURNING id")[
        0
    ]
    assert browser.get("/office").headers["location"].startswith("/office/sign-in")
    assert Browser(service).get(link_of(service, inactive["id"])).status_code == 404
    link = link_of(service, add_staff(service, "support", "late@largesse.example"), "invitation")
    assert Browser(service).get(link).status_code == 200
    service.sql("UPDATE staff_links SET ends_at = clock_now() WHERE used_at IS NULL RETURNING 1")
    assert Browser(service).get(link).status_code == 404


def test_there_are_at_most_200_people(service: Service) -> None:
    """Those who were deactivated leave room."""
    owner = staff_in(service, "owner")
    add = """
        INSERT INTO staff (email, email_key, name, role, is_active) SELECT n, n, 'x', 'support', $2
        FROM (SELECT $3 || generate_series(1, $1 - (SELECT count(*) FROM staff WHERE is_active AND $2))) AS new (n) RETURNING 1
    """
    service.sql(add, MOST_STAFF - 1, True, "active")
    service.sql(add, MOST_STAFF, False, "inactive")
    assert "/office/link/" in owner.submit("/office/staff", email="last@largesse.example", name="", role="support").text
    refused = owner.submit("/office/staff", email="more@largesse.example", name="", role="support")
    assert refused.status_code == 422
    assert "has reached its limit of 200 people" in refused.text
    service.sql(
        "DELETE FROM staff_links WHERE staff_id IN (SELECT id FROM staff WHERE email = 'last@largesse.example')"
    )
    service.sql("UPDATE staff SET is_active = false WHERE name = 'x' RETURNING 1")


def test_the_last_second_step_stays(service: Service) -> None:
    browser = staff_in(service, "support")
    assert browser.submit("/office/security", "/office/security/app/off").headers["location"] == "/office/security"
    assert service.sql("SELECT has_app FROM staff WHERE email = 'support@largesse.example'")[0][0]
    assert "A second step is required" in browser.read("/office/security")


def test_the_log_tells_of_staff_in_sentences(service: Service) -> None:
    browser = staff_in(service, "owner")
    assert "owner@largesse.example signed in" in browser.read("/office/audit?of=installation")
    assert "no customer of that key" in browser.read("/office/audit?of=nobody")


def test_the_log_says_roles_and_kinds_in_the_language_of_the_page(service: Service) -> None:
    browser = staff_in(service, "owner")
    changed = add_staff(service, "support", "changed@largesse.example")
    product = service.sql("SELECT id, key FROM products WHERE is_digital ORDER BY id")[0]
    browser.submit("/office/staff", f"/office/staff/{changed}/role", role="warehouse")
    browser.submit(f"/office/stock/{product['id']}", f"/office/stock/{product['id']}/warning", below="7")
    browser.headers = {"Accept-Language": "de"}

    browser.get("/office/audit?of=installation")

    assert "die Rolle von changed@largesse.example von Support zu Lager geändert" in browser.text
    assert f"die Bestandswarnung geändert: Geschenk {product['key']}" in browser.text


def test_settings_show_no_secret(service: Service) -> None:
    browser = staff_in(service, "owner")
    assert "LARGESSE_MASTER_KEY" in browser.read("/office/settings")
    assert service.settings.database_url not in browser.page.text
    assert service.settings.master_keys[0].hex() not in browser.page.text


def test_it_counts_what_waits_and_sees_processes(own_service: Service) -> None:
    owner = staff_in(own_service, "owner")
    owner.get("/office")
    assert re.search(r"Processes Well [1-9]\d* connections? to the database", owner.text)
    owner.says("No mail server is set: mail is held", "Nothing waits for you.")
    acme = own_service.ids["customers"]["acme"]
    account = own_service.ids["funding_accounts"]["gbp"]
    own_service.sql(
        "INSERT INTO top_ups (customer_id, environment, account_id, reference, amount_minor, requested_by, requested_at, expires_at)"
        " VALUES ($1, 'production', $2, 'RF18TEST', 100, $3, now(), now() + interval '1 day')"
        " RETURNING 1",
        acme,
        account,
        own_service.sql("SELECT min(id) FROM users WHERE customer_id = $1", acme)[0][0],
    )
    assert "1 top-up waits for its payment" in owner.read("/office")
    assert ">Show<" in owner.page.text


def test_pages_lead_to_the_guide_where_it_is_published(service: Service, start_service: ServiceFactory) -> None:
    published = staff_in(start_service(like=service, docs_url="https://docs.example.com"), "owner")
    published.get("/office/stock")
    assert "https://docs.example.com/docs/office.html" in published.links
    published.get("/office")
    assert "https://docs.example.com/docs/office.html" in published.links
