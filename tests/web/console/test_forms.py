"""Each form is one of ours, and is taken once."""

import html
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from tests.distributed import IS_DISTRIBUTED
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, SignIn, signed_in

from largesse.base.i18n.languages import LANGUAGES
from largesse.customers import form_posts
from largesse.web.console.form import Form


def environment_of(service: Service, browser: Browser) -> str:
    browser.get("/app")
    return "staging" if "Leave test mode" in browser.text else "production"


def test_the_environment_is_switched_and_colours_the_page(service: Service, ada: Browser) -> None:
    assert environment_of(service, ada) == "production"
    assert ada.post("/app/environment", environment="staging").status_code == 303
    assert environment_of(service, ada) == "staging"
    assert "Test mode: nothing is sent or charged." in ada.text


@pytest.mark.parametrize("token", ["", "x", "0" * 40, "ä" * 40, "0" * 24])
def test_a_form_without_a_token_of_ours_changes_nothing(service: Service, ada: Browser, token: str) -> None:
    answer = ada.submit("/app", "/app/environment", token=token, environment="staging")
    assert answer.status_code == 403
    assert environment_of(service, ada) == "production"


def test_the_token_of_somebody_else_is_none(service: Service, ada: Browser, gil: Browser) -> None:
    gil.get("/app")
    assert ada.submit("/app", "/app/environment", token=gil.token, environment="staging").status_code == 403
    assert environment_of(service, ada) == "production"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_another_site_sends_changes_nothing(service: Service, ada: Browser, site: str) -> None:
    ada.get("/app")
    ada.headers["Sec-Fetch-Site"] = site
    assert ada.post("/app/environment", environment="staging").status_code == 403
    del ada.headers["Sec-Fetch-Site"]
    assert environment_of(service, ada) == "production"


def test_a_login_form_of_another_site_signs_nobody_in(service: Service) -> None:
    attacker, victim = Browser(service), Browser(service)
    attacker.get("/app/sign-in")
    answer = victim.submit("/app/sign-in", token=attacker.token, email="a@b.example", password="x")
    assert answer.status_code == 403
    assert "__Host-app-session" not in victim.cookies


def test_a_form_sent_often_at_once_is_taken_once(service: Service, ada: Browser) -> None:
    ada.get("/app")
    before = service.sql("SELECT count(*) FROM form_posts")[0][0]
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: ada.post("/app/environment", environment="staging"), range(20)))
    assert {answer.status_code for answer in answers} == {303}
    assert {answer.headers["location"] for answer in answers} == {"/app"}
    assert service.sql("SELECT count(*) FROM form_posts")[0][0] == before + 1


def test_a_token_is_only_repeated_where_it_was_sent_first(service: Service, ada: Browser) -> None:
    ada.get("/app")
    token = ada.token
    assert ada.post("/app/environment", token=token, environment="production").status_code == 303
    assert ada.post("/app/environment?again", token=token, environment="production").status_code == 303, "a repeat"
    elsewhere = ada.post("/app/sign-out", token=token)
    assert elsewhere.status_code == 403
    assert "Nothing was changed" in elsewhere.text


def test_a_form_that_is_wrong_may_be_sent_again(service: Service, ada: Browser) -> None:
    ada.get("/app")
    token = ada.token
    assert ada.post("/app/customers", token=token, user="999999").status_code == 404
    own = service.sql("SELECT id FROM users WHERE email = 'ada@acme.example'")[0]["id"]
    assert ada.post("/app/customers", token=token, user=str(own)).status_code == 303


def test_a_form_whose_process_ended_is_not_said_to_have_changed_nothing(
    service: Service, ada: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(form_posts, "_WAIT_S", 1.5)
    monkeypatch.setattr(service.app.services.timeouts, "_patience_s", 0.5)
    ada.get("/app")
    ada.post("/app/environment", environment="production")
    service.sql("UPDATE form_posts SET answer = NULL")
    answer = ada.post("/app/environment", environment="production")
    assert answer.status_code == 409
    assert "Not confirmed yet" in answer.text
    assert "Check in a moment whether it is done" in answer.text
    assert "Nothing was changed" not in answer.text


# The server ends the session of whoever commits a top-up: to the service, the connection breaks and no answer comes.
LOST_COMMIT = """
CREATE FUNCTION lose_commit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER lose_commit AFTER INSERT ON top_ups
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lose_commit()
"""


@pytest.mark.skipif(IS_DISTRIBUTED, reason="a cluster's nodes take no such trigger")
def test_a_form_whose_commit_got_no_answer_is_not_said_to_have_changed_nothing(
    own_service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, account = signed_in(own_service, "ada@acme.example"), own_service.ids["funding_accounts"]["gbp"]
    own_service.run(lambda connection: connection.execute(LOST_COMMIT))
    ada.get("/app/funding")
    token = ada.token
    ada.page = ada.post("/app/funding/top-ups", token=token, account=str(account), amount="100")
    assert ada.page.status_code == 503
    ada.says("Not confirmed yet", "See whether it is done")
    assert "Nothing was changed" not in ada.text
    assert "/app/funding" in ada.links
    # The same form again is not carried out: perhaps it was.
    monkeypatch.setattr(form_posts, "_WAIT_S", 0.0)
    own_service.sql("DROP TRIGGER lose_commit ON top_ups")
    assert ada.post("/app/funding/top-ups", token=token, account=str(account), amount="100").status_code == 409
    assert ada.submit("/app/funding", "/app/funding/top-ups", account=str(account), amount="100").status_code == 303
    assert own_service.sql("SELECT count(*) FROM top_ups")[0][0] == 1


def test_a_page_that_cannot_be_read_is_offered_again(own_service: Service) -> None:
    ada = signed_in(own_service, "ada@acme.example")
    for table, path in (("approval_requests", "/app/approvals"), ("sessions", "/app/funding?month=2026-01")):
        own_service.sql(f"ALTER TABLE {table} RENAME TO out_of_reach")
        assert ada.get(path).status_code == 500
        ada.says("Something is not working", "Try again")
        assert path in ada.links, "whether anybody is signed in is not known"
        assert "Nothing was changed" not in ada.text
        own_service.sql(f"ALTER TABLE out_of_reach RENAME TO {table}")


# The COMMIT of a top-up gets no answer until the test has released it.
SLOW_COMMIT = """
CREATE TABLE released (id int);
CREATE FUNCTION await_test() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
AS $$ BEGIN WHILE NOT EXISTS (SELECT FROM public.released) LOOP PERFORM pg_sleep(0.05); END LOOP; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER await_test AFTER INSERT ON top_ups
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION await_test()
"""


@pytest.mark.skipif(IS_DISTRIBUTED, reason="a cluster's nodes take no such trigger")
def test_a_form_that_timed_out_during_its_commit_is_not_carried_out_again(
    own_service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada, account = signed_in(own_service, "ada@acme.example"), own_service.ids["funding_accounts"]["gbp"]
    own_service.run(lambda connection: connection.execute(SLOW_COMMIT))
    ada.get("/app/funding")
    token = ada.token
    with monkeypatch.context() as patched:
        patched.setattr(own_service.app.services.timeouts, "_patience_s", 1.0)
        ada.page = ada.post("/app/funding/top-ups", token=token, account=str(account), amount="100")
    assert ada.page.status_code == 503
    ada.says("Not confirmed yet", "See whether it is done")
    own_service.sql("INSERT INTO released VALUES (1)")
    own_service.sql("DROP TRIGGER await_test ON top_ups")  # waits for the COMMIT
    monkeypatch.setattr(form_posts, "_WAIT_S", 0.0)
    assert ada.post("/app/funding/top-ups", token=token, account=str(account), amount="100").status_code == 409
    assert own_service.sql("SELECT count(*) FROM top_ups")[0][0] <= 1


def test_a_lost_session_is_said_and_nothing_is_changed(service: Service, ada: Browser) -> None:
    ada.get("/app")
    service.sql("UPDATE sessions SET ended_at = clock_now() WHERE ended_at IS NULL")
    answer = ada.post("/app/environment", environment="staging")
    assert answer.status_code == 401
    assert "Nothing was changed" in answer.text


@pytest.mark.parametrize("idle", ["12 hours", "15 days"])
def test_a_session_ends_when_it_is_idle_or_old(service: Service, ada: Browser, idle: str) -> None:
    service.sql("UPDATE clock SET ahead_by = ahead_by + $1::text::interval", idle)
    try:
        assert ada.get("/app").status_code == 303
    finally:
        service.sql("UPDATE clock SET ahead_by = '0'")


def test_a_form_of_another_mode_or_company_is_refused_with_a_page_that_says_so(
    service: Service, ada: Browser, sign_in: SignIn
) -> None:
    """Two tabs: in one, the pages were changed to something else after the other one had opened its form."""
    ada.get("/app/keys")
    old = ada.token
    account = str(service.sql("SELECT id FROM service_accounts WHERE key = 'hr-bot'")[0][0])
    key = {"name": "of test mode", "service_account": account, "scope": "read", "networks": ""}
    assert ada.submit("/app", "/app/environment", environment="staging").status_code == 303
    refused = ada.post("/app/keys", token=old, **key)
    assert refused.status_code == 409
    assert "In another tab you switched the company" in refused.text
    assert 'type="hidden" name="name" value="of test mode"' in refused.text, "what was typed can be sent from here"
    assert service.sql("SELECT count(*) FROM api_keys WHERE key = 'of test mode'")[0][0] == 0
    ada.submit("/app", "/app/environment", environment="production")
    assert ada.post("/app/keys", token=old, **key).status_code == 200, "back where the page was opened"
    gil = sign_in("gil@globex.example")
    other = service.sql(
        "INSERT INTO users (customer_id, email, name, role, person_id) SELECT 1, u.email, 'Gil', 'admin', u.person_id "
        "FROM users u WHERE u.email = 'gil@globex.example' RETURNING id"
    )[0][0]
    gil.get("/app/people")
    old = gil.token
    assert gil.submit("/app/customers", user=str(other)).status_code == 303
    refused = gil.post("/app/people", token=old, email="late@acme.example", name="", role="admin")
    assert refused.status_code == 409
    assert service.sql("SELECT count(*) FROM users WHERE email = 'late@acme.example'")[0][0] == 0
    assert gil.post("/app/sign-out", token=old).status_code == 303, "what is about no company is taken"


@pytest.mark.parametrize(
    ("page", "form", "field"),
    [
        ("/app/orders?state=waiting", "/app/orders/views?state=waiting", "name"),
        ("/app/service-accounts/1", "/app/service-accounts/1/limit", "largest_order"),
        ("/app/branding", "/app/branding/logo", "file"),
    ],
)
def test_links_of_a_page_that_refuses_a_form_lead_to_pages(ada: Browser, page: str, form: str, field: str) -> None:
    ada.get("/app/service-accounts/1")
    ada.post("/app/service-accounts/1/limit", currency="GBP", largest_order="100", daily="")
    ada.page = ada.submit(page, form, **{field: "x" * 100}, currency="GBP")
    assert ada.page.status_code == 422
    links = {html.unescape(link) for link in ada.links if link.startswith("/app/")}
    assert any("?" in link for link in links)
    assert {link for link in links if ada.get(link).status_code == 404} == set()


def test_a_day_ends_with_its_last_hour_where_clocks_go_back_at_midnight() -> None:
    form = Form({"day": "2026-10-29"}, say=str)
    assert form.end_of_day("day", ZoneInfo("Africa/Cairo")) == datetime(2026, 10, 29, 21, 59, 59, tzinfo=UTC)
    assert form.end_of_day("day", ZoneInfo("Europe/Berlin")) == datetime(2026, 10, 29, 22, 59, 59, tzinfo=UTC)


def test_numbers_are_read_without_the_invisible_marks_that_programs_copy_along() -> None:
    form = Form({"gifts": "\u202d2,500\u202c", "days": "\ufeff7 "}, str)
    assert (form.number("gifts"), form.number("days")) == (2500, 7)


def test_an_address_in_full_width_letters_is_not_one() -> None:
    form = Form({"email": "\uff41da@example.com", "fine": "ada@\uff45xample.com"}, say=str)
    assert (form.email("email"), form.email("fine"), list(form.errors)) == ("", "ada@example.com", ["email"])
    form = Form({"email": "ada", "fine": "Ada <ada@example.com>"}, say=str)
    assert (form.email("email"), form.email("fine")) == ("", "ada@example.com")
    assert form.errors == {"email": "The @ is missing, as in name@example.com."}


def test_a_new_address_that_looks_mistyped_is_questioned_once() -> None:
    def read(**fields: str) -> tuple[str, dict[str, str]]:
        form = Form({"email": "Ada@gmial.com", **fields}, _said)
        return form.email("email", is_new=True), form.errors

    assert read() == (
        "",
        {"email": "This looks mistyped. Did you mean Ada@gmail.com? If yours is right, press the button again."},
    )
    assert read(sure_email="Ada@gmial.com") == ("Ada@gmial.com", {})
    assert read(sure_email="bo@gmial.com")[0] == "", "that was about another address"
    assert read(email="ada@gmail.com") == ("ada@gmail.com", {})
    assert read(email="ada@mail.com") == ("ada@mail.com", {}), "a domain that exists"
    known = Form({"email": "Ada@gmial.com"}, _said)
    assert (known.email("email"), known.errors) == ("Ada@gmial.com", {}), "somebody signs in with it"


BERLIN = ZoneInfo("Europe/Berlin")


def _said(text: str, **values: object) -> str:
    return text % values


@pytest.mark.parametrize(
    ("tag", "typed"),
    [
        ("de", "31.12.2026, 14.30 Uhr"),
        ("de", "31. Dezember 2026 um 14:30 Uhr"),
        ("fr", "31/12/2026 14 h 30"),
        ("fr", "31 déc. 2026 à 14h30"),
        ("en", "31 December 2026 at 2:30 pm"),
        ("en", "12/31/2026 2:30 p.m."),
        ("en", "2026-12-31 14:30:00"),
        ("en", "2026-12-31T14:30"),
        ("de", "Donnerstag, 31. Dezember 2026 um 14:30 Uhr"),
        ("de", "Do., 31.12.2026, 14.30 Uhr"),
        ("fr", "jeudi 31 décembre 2026 à 14 h 30"),
        ("en", "Thu, 12/31/2026 2:30 p.m."),
        ("en", "2026年12月31日(木) 14:30"),
    ],
)
def test_a_time_is_read_as_people_type_it_without_a_picker(tag: str, typed: str) -> None:
    form = Form({"at": typed}, str, LANGUAGES[tag])
    assert form.time("at", BERLIN) == datetime(2026, 12, 31, 13, 30, tzinfo=UTC)
    assert not form.errors


@pytest.mark.parametrize("typed", ["31.12.2026", "14:30", "31.12.2026 25:00", "31.02.2026 14:30", "31.12.2026 13 pm"])
def test_what_is_no_time_is_refused_by_name(typed: str) -> None:
    form = Form({"at": typed}, _said)
    assert form.time("at", BERLIN) is None
    assert f"“{typed}” cannot be read" in form.errors["at"]


def test_a_day_that_the_language_leaves_open_is_refused_with_both() -> None:
    days = {tag: Form({"day": "03/04/2026"}, _said, LANGUAGES[tag]) for tag in LANGUAGES}
    assert days["de"].day("day") == days["fr"].day("day") == date(2026, 4, 3)
    assert days["en"].day("day") is None
    assert "3 April 2026 or 4 March 2026" in days["en"].errors["day"]
    fine = Form({"day": "31.12.2026", "american": "12/31/2026", "with_time": "2026-12-31 14:30"}, _said)
    assert (fine.day("day"), fine.day("american"), fine.day("with_time")) == (date(2026, 12, 31),) * 2 + (None,)


def test_a_date_on_another_weekday_than_the_typed_one_is_refused() -> None:
    said = {tag: Form({"day": "Fri 31/12/2026"}, _said, LANGUAGES[tag]) for tag in ("en", "fr")}
    assert said["en"].day("day") is said["fr"].day("day") is None
    assert said["en"].errors["day"] == "31 December 2026 is a Thursday. Type the date that you mean."
    assert "31 décembre 2026 is a jeudi" in said["fr"].errors["day"]  # this `say` does not translate
    tuesday = Form({"french": "mar. 5 janvier 2027", "spring": "Mar 14, 2027"}, _said)
    assert (tuesday.day("french"), tuesday.day("spring")) == (date(2027, 1, 5), date(2027, 3, 14))


def test_numbers_are_read_in_digits_of_any_script() -> None:
    form = Form(
        {"gifts": "\N{FULLWIDTH DIGIT ONE}\N{FULLWIDTH DIGIT ZERO}", "days": "\N{ARABIC-INDIC DIGIT SEVEN}"}, str
    )
    assert (form.number("gifts"), form.number("days")) == (10, 7)
