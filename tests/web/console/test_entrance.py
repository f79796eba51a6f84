"""Signing in: by password and by links, and what is refused at the door."""

import re
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import pytest
from tests.web.api.conftest import Service
from tests.web.console.conftest import Browser, SignIn, link_for

PASSWORD = "four plain words here"


def choose_password(service: Service, email: str, password: str = PASSWORD) -> Browser:
    """Takes an invitation of that user up, with a password."""
    browser, link = Browser(service), link_for(service, email, "invitation")
    assert browser.submit(link, password=password).headers["location"] == "/app"
    return browser


def enter(browser: Browser, email: str, password: str, **more: str) -> int:
    browser.page = browser.submit("/app/sign-in", email=email, password=password, **more)
    return browser.page.status_code


@pytest.fixture(scope="module")
def ada(service: Service) -> str:
    """The address of somebody with a password."""
    choose_password(service, "ada@acme.example")
    return "ada@acme.example"


def test_with_a_password_one_gets_in_and_out(service: Service, browser: Browser, ada: str) -> None:
    assert enter(browser, f"Ada <{ada.upper()}>", PASSWORD) == 303
    assert "Acme Ltd" in browser.read("/app")
    [user] = [u for u in service.client("hr").get("/users").json() if u["email"] == ada]
    assert user["lastLoginDate"] is not None
    cookie = dict(browser.cookies)
    assert browser.post("/app/sign-out").headers["location"] == "/app/sign-in"
    browser.cookies = cookie
    assert browser.get("/app").status_code == 303, "the session itself has ended"


def test_the_session_is_never_one_there_was_before(service: Service, browser: Browser, ada: str) -> None:
    """Whoever plants a cookie gains nothing: signing in makes another."""
    planted = "A" * 43
    browser.cookies = {"__Host-app-session": planted}
    enter(browser, ada, PASSWORD)
    assert browser.cookies["__Host-app-session"] != planted
    assert Browser(service, cookies={"__Host-app-session": planted}).get("/app").status_code == 303
    first = browser.cookies["__Host-app-session"]
    link = link_for(service, ada)
    browser.submit(link)
    assert browser.cookies["__Host-app-session"] != first


def test_cookies_are_for_no_script_and_no_other_site(service: Service, ada: str) -> None:
    browser = Browser(service)
    page = browser.get("/app/sign-in")
    answer = browser.post("/app/sign-in", email=ada, password=PASSWORD)
    for response in (page, answer):
        cookies = response.headers.get_list("set-cookie")
        assert cookies
        for cookie in cookies:
            assert re.match(r"__Host-app-\w+=", cookie), "no subdomain may set one"
            for said in ("HttpOnly", "Secure", "SameSite=lax", "Path=/;"):
                assert said in cookie


def test_an_unknown_address_is_answered_as_a_wrong_password(service: Service, ada: str) -> None:
    def shown(email: str) -> tuple[int, str]:
        browser = Browser(service)
        status = enter(browser, email, "password is not correct")
        return status, browser.text.replace(email, "")

    assert shown(ada) == shown("nobody@acme.example")
    assert shown(ada)[0] == 403


def test_guesses_are_counted_whether_or_not_the_address_is_known(service: Service) -> None:
    victim = "gil@globex.example"
    choose_password(service, victim)
    for email in (victim, "nobody@globex.example"):
        # Each from a network of its own: it is the address that is guessed at.
        statuses = [enter(Browser(service), email, "password is not correct") for _ in range(12)]
        assert statuses == [403] * 10 + [429] * 2, email
        assert enter(Browser(service), email, PASSWORD) == 429, "now not even the right one is tried"
    service.sql("DELETE FROM sign_in_allowances")
    assert enter(Browser(service), victim, PASSWORD) == 303


def test_who_guesses_at_many_is_counted_too(service: Service) -> None:
    browser = Browser(service)
    assert enter(browser, "guess1@acme.example", "no") == 403
    service.sql("UPDATE sign_in_allowances SET remaining = 0, counted_at = clock_now()")
    assert enter(browser, "guess2@acme.example", "no") == 429
    assert "Wait a moment Too many attempts. Wait 1 minute and try again. Sign in" in browser.text
    assert 0 < int(browser.page.headers["retry-after"]) <= 15
    assert enter(Browser(service), "guess2@acme.example", "no") == 403


@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.example/",
        "//evil.example/app/",
        "/app//evil.example",
        "/app/..//evil.example",
        "/app/\\evil.example",
        "/application",
        "javascript:alert(1)",
        "/app/\r\nSet-Cookie: a=b",
        "/app/" + "a" * 1_000,
    ],
)
def test_nobody_is_sent_elsewhere(browser: Browser, elsewhere: str) -> None:
    from largesse.web.console.context import own_path

    assert own_path(elsewhere, "/app") == "/app"


@pytest.mark.parametrize(
    ("typed", "page"), [("/app/", "/app"), ("/app/orders/", "/app/orders"), ("/app/x//", "/app/x")]
)
def test_an_address_with_a_slash_at_its_end_leads_to_its_page(browser: Browser, typed: str, page: str) -> None:
    answer = browser.get(typed)
    assert (answer.status_code, answer.headers["location"]) == (303, page)


def test_no_form_sends_anybody_elsewhere(service: Service, ada: str) -> None:
    for elsewhere in ("https://evil.example/", "//evil.example", "/app//evil.example", "/app/\\evil.example"):
        browser = Browser(service)
        assert "evil" not in re.sub(
            r'name="next" value="[^"]*"', "", browser.get(f"/app/sign-in?next={elsewhere}").text
        )
        assert enter(browser, ada, PASSWORD, next=elsewhere) == 303
        assert browser.page.headers["location"] == "/app"
        browser.get(f"/app/prove?next={elsewhere}")
        assert browser.post("/app/prove", proof=PASSWORD, next=elsewhere).headers["location"] == "/app"


def test_one_goes_on_to_the_page_that_was_asked_for(browser: Browser, ada: str) -> None:
    asked = browser.get("/app/nothing-yet?since=2026-01-01")
    assert asked.status_code == 404
    assert enter(browser, ada, PASSWORD, next="/app/customers?a=b") == 303
    assert browser.page.headers["location"] == "/app/customers?a=b"


def test_tabs_that_a_browser_opens_at_once_after_the_session_ended_all_lead_on(service: Service, ada: str) -> None:
    """Each of them shows the form to sign in, before it has the cookies that the others got."""
    browser = Browser(service)
    enter(browser, ada, PASSWORD)
    service.sql("UPDATE sessions SET ended_at = clock_now() WHERE ended_at IS NULL")
    browser.cookies = {"__Host-app-session": browser.cookies["__Host-app-session"]}
    before, tokens = dict(browser.cookies), []
    for _ in range(2):
        kept, browser.cookies = browser.cookies, dict(before)
        browser.get("/app/sign-in?next=/app/orders")
        tokens.append(browser.token)
        browser.cookies = kept | browser.cookies
    typed = {"email": ada, "password": PASSWORD, "next": "/app/orders"}
    assert browser.post("/app/sign-in", token=tokens[0], **typed).headers["location"] == "/app/orders"
    assert browser.get("/app/sign-in?next=/app/orders").headers["location"] == "/app/orders", "reloaded"
    assert browser.get("/app/sign-in?next=//elsewhere.example").headers["location"] == "/app"


def test_a_link_lets_in_once_whoever_is_quicker(service: Service) -> None:
    link = link_for(service, "cem@acme.example")
    browsers = [Browser(service) for _ in range(8)]
    for browser in browsers:
        assert browser.get(link).status_code == 200, "looking uses nothing up"
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda browser: browser.post(link).status_code, browsers))
    assert sorted(statuses) == [303] + [404] * 7
    assert Browser(service).get(link).status_code == 404


def test_an_invitation_is_taken_up_once(service: Service) -> None:
    service.sql("UPDATE users SET is_active = true WHERE email = 'bob@acme.example'")
    link = link_for(service, "bob@acme.example", "invitation")
    thief, bob = Browser(service), Browser(service)
    bob.get(link)
    thief.get(link)
    assert bob.post(link, password=PASSWORD).status_code == 303
    assert thief.post(link, password="another password").status_code == 404
    assert enter(Browser(service), "bob@acme.example", "another password") == 403


@pytest.mark.slow
def test_an_invitation_to_another_customer_gives_nobody_ones_password(service: Service, ada: str) -> None:
    """Whoever invites an address must not become its owner elsewhere."""
    service.sql(
        "INSERT INTO users (customer_id, email, name, role) VALUES ($1, $2, 'Ada', 'member')",
        service.ids["customers"]["initech"],
        ada,
    )

    async def invite(connection) -> str:
        from largesse.customers.sign_in_links import new_link

        user_id = await connection.fetchval(
            "SELECT id FROM users WHERE email = $1 AND customer_id = $2", ada, service.ids["customers"]["initech"]
        )
        return await new_link(connection, "invitation", user_id=user_id)

    from tests.web.api.conftest import on_database

    link = f"/app/link/{on_database(service.database_url, invite)}"
    inviter = Browser(service)
    assert "Accept the invitation" in inviter.read(link)
    assert inviter.post(link, password="a password of mine").status_code == 403
    assert enter(Browser(service), ada, PASSWORD) == 303
    # She herself accepts, and chooses between both from now on.
    own = Browser(service)
    assert own.submit(link, password=PASSWORD).status_code == 303
    assert "Initech" in own.read("/app")
    assert "Acme Ltd" in own.read("/app/customers")
    acme = service.sql("SELECT id FROM users WHERE email = $1 ORDER BY id", ada)[0]["id"]
    assert own.post("/app/customers", user=str(acme)).headers["location"] == "/app"
    assert "Acme Ltd" in own.read("/app")
    strangers = service.sql("SELECT id FROM users WHERE email = 'gil@globex.example'")[0]["id"]
    for user in (str(strangers), "0", "-1", "x", "9" * 30):
        assert own.post("/app/customers", user=user).status_code == 404
        own.get("/app")


@pytest.mark.parametrize(
    "typed", ["j\u00f6rg@b\u00fccher.example", "jo\u0308rg@bu\u0308cher.example", "J\u00d6RG@xn--bcher-kva.example"]
)
def test_an_international_address_gets_in_however_a_browser_sends_it(service: Service, typed: str) -> None:
    """Chromium posts the domain of an e-mail field in its `xn--` form."""
    email = "j\u00f6rg@b\u00fccher.example"
    if not service.sql("SELECT FROM users WHERE email = $1", email):
        service.sql("INSERT INTO users (customer_id, email, name, role) VALUES (1, $1, 'J', 'member')", email)
        choose_password(service, email)
    assert enter(Browser(service), typed, PASSWORD) == 303
    assert enter(Browser(service), typed, "another password") == 403


@pytest.mark.parametrize("password", ["short", "dora@acme.example", "aaaaaaaaaaaa", "Password123", "x" * 201])
def test_a_password_that_is_too_easy_is_refused_beside_its_field(service: Service, password: str) -> None:
    service.sql(
        """INSERT INTO users (customer_id, email, name, role) VALUES ($1, 'dora@acme.example', 'Dora', 'member')
        ON CONFLICT DO NOTHING""",
        service.ids["customers"]["acme"],
    )
    browser, link = Browser(service), link_for(service, "dora@acme.example", "invitation")
    answer = browser.submit(link, password=password)
    assert answer.status_code == 422
    assert 'id="password-error"' in answer.text
    assert password not in answer.text.replace("dora@acme.example", "")
    assert browser.get(link).status_code == 200, "the invitation holds"


def test_a_link_leads_to_its_page_in_whichever_company_and_mode_it_is(service: Service, sign_in: SignIn) -> None:
    """A mail of one company is opened while the pages show another, or before one is chosen."""
    gil, acme = sign_in("gil@globex.example"), str(service.ids["customers"]["acme"])
    own, name = service.sql("SELECT u.id, u.person_id FROM users u WHERE u.email = 'gil@globex.example'")[0]
    [[other]] = service.sql(
        "INSERT INTO users (customer_id, email, name, role, person_id) VALUES ($1, 'gil@globex.example', 'Gil', 'finance', $2) RETURNING id",
        int(acme),
        name,
    )
    account = service.ids["funding_accounts"]["gbp"]
    for mailed in (f"/app/funding?account={account}", f"/app/funding/{account}?month=2026-01"):
        assert gil.get(mailed).status_code == 404
        gil.says("You see Globex in live mode.", "Look in test mode", "Or it belongs to another of your companies.")
        assert f'href="/app/customers?{urlencode({"next": mailed})}"' in gil.page.text
        gil.sees(f"/app/customers?{urlencode({'next': mailed})}", "Acme Ltd · Finance", "Globex · Administrator")
        assert gil.post("/app/customers", user=str(other), next=mailed).headers["location"] == mailed
        gil.sees(mailed, "Acme Ltd")
        assert gil.post("/app/customers", user=str(own), next="//elsewhere.example").headers["location"] == "/app"
    service.sql("UPDATE sessions SET user_id = NULL WHERE person_id = $1", name)
    chosen = gil.get("/app/orders?state=failed").headers["location"]
    assert chosen == "/app/customers?next=%2Fapp%2Forders%3Fstate%3Dfailed"
    gil.get(chosen)
    assert 'name="next" value="/app/orders?state=failed"' in gil.page.text
    assert gil.post("/app/customers", user=str(own), next="/app").status_code == 303
    assert gil.get("/app/webhooks/x").status_code == 404
    back = gil.post("/app/environment", environment="staging", next="/app/webhooks/x")
    assert back.headers["location"] == "/app/webhooks/x"
    gil.sees("/app/webhooks/x", "You see Globex in test mode.", "Look in live mode")
    assert "Look in" not in gil.read("/app/no-such-page"), "is nowhere"
