"""API keys: how they are sent, and which of them are let in."""

import re
import threading

import httpx
import pytest
from tests.closing import closing

from largesse.customers.authenticator import Authenticator, new_secret
from largesse.db.pool import Database
from largesse.db.scope import OPERATOR


def get(service, *headers: tuple[str, str], path: str = "/me") -> httpx.Response:
    """One request with exactly these headers."""
    return service.client().get(path, headers=list(headers))


@pytest.mark.parametrize(
    "header",
    [
        ("Authorization", "Bearer {}"),
        ("Authorization", "bearer {}"),
        ("Authorization", "BEARER {}"),
        ("Authorization", "Bearer   {}"),
        ("authorization", "Bearer {}"),
        ("X-Api-Key", "{}"),
        ("x-api-key", "{}"),
    ],
)
def test_a_key_in_either_header(service, header: tuple[str, str]) -> None:
    name, value = header
    answer = get(service, (name, value.format(service.keys["hr"])))
    assert (answer.status_code, answer.json()["serviceAccountName"]) == (200, "HR bot")


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Authorization", "")],
        [("Authorization", "Bearer")],
        [("Authorization", "{}")],
        [("Authorization", "Basic {}")],
        [("Authorization", "Bearer{}")],
        [("Authorization", "Bearer {} {}")],
        [("Authorization", "Bearer x")],
        [("Authorization", "Bearer {}x")],
        [("X-Api-Key", "")],
        [("X-Api-Key", "Bearer {}")],
        [("X-Api-Key", "nonsense")],
        [("X-Api-Key", "\u00e9" * 20)],
        [("X-Api-Key", "x" * 10_000)],
        [("Api-Key", "{}")],
        [("Cookie", "key={}")],
    ],
)
@pytest.mark.parametrize("path", ["/me", "/products", "/orders", "/webhooks"])
def test_no_key_or_no_proper_one(service, problem, headers: list[tuple[str, str]], path: str) -> None:
    key = service.keys["hr"]
    sent = [(name, value.replace("{}", key).encode("latin-1")) for name, value in headers]
    answer = service.client().get(path, headers=sent)
    detail = problem(answer, 401, "unauthorized")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert key not in detail


@pytest.mark.parametrize("header", [("Authorization", "Bearer"), ("X-Api-Key", "")])
def test_an_empty_key_is_named_as_such(service, problem, header: tuple[str, str]) -> None:
    detail = problem(get(service, header), 401, "unauthorized")
    assert detail == f"The header {header[0]} has no API key."


def test_a_key_in_the_query_is_no_key(service, problem) -> None:
    problem(service.client().get("/me", params={"api_key": service.keys["hr"]}), 401, "unauthorized")


@pytest.mark.parametrize(
    "names",
    [
        ("Authorization", "X-Api-Key"),
        ("X-Api-Key", "Authorization"),
        ("Authorization", "Authorization"),
        ("X-Api-Key", "X-Api-Key"),
        ("X-Api-Key", "x-api-key"),
    ],
)
def test_two_key_headers(service, problem, names: tuple[str, str]) -> None:
    key = service.keys["hr"]
    headers = [(name, key if name.lower() == "x-api-key" else f"Bearer {key}") for name in names]
    detail = problem(get(service, *headers), 400)
    assert key not in detail


def test_any_typing_error_in_a_key_is_noticed(service, problem) -> None:
    key = service.keys["hr"]
    for at in range(0, len(key), 5):
        typo = key[:at] + ("a" if key[at] != "a" else "b") + key[at + 1 :]
        problem(get(service, ("X-Api-Key", typo)), 401, "unauthorized")
    problem(get(service, ("X-Api-Key", key.swapcase())), 401, "unauthorized")


def test_a_key_holds_for_its_environment_only(service, staging, problem) -> None:
    for path in ("/me", "/products", "/orders"):
        assert staging.client("hr-test").get(path).status_code == 200
        problem(staging.client("hr").get(path), 401, "unauthorized")
        problem(service.client("hr-test").get(path), 401, "unauthorized")
    body = service.body("gift", "coffee", value=5)
    problem(service.client("hr-test").post("/send/gift", json=body), 401, "unauthorized")


def test_whether_a_key_exists_in_the_other_environment_is_not_said(service, staging) -> None:
    for api, theirs, its_own in ((service, "hr-test", "production"), (staging, "hr", "staging")):
        other = {"production": "staging", "staging": "production"}[its_own]
        known, unknown = (get(api, ("X-Api-Key", secret)) for secret in (service.keys[theirs], new_secret(other)))
        assert (known.status_code, known.content) == (unknown.status_code, unknown.content)
        assert known.json()["detail"] == f"This is a key of {other}: it works only at {other}'s address."
        malformed = get(api, ("X-Api-Key", service.keys[theirs][:-1]))
        assert malformed.json()["detail"] == "The API key is not known here: it is incomplete or mistyped."


def test_a_deleted_key_answers_like_one_that_never_was(service) -> None:
    key_id, secret = service.new_key()
    service.delete_key(key_id)
    gone, never = (get(service, ("X-Api-Key", one)) for one in (secret, new_secret("production")))
    assert (gone.status_code, gone.content) == (never.status_code, never.content)


def test_a_second_key_works_beside_the_first_until_deleted(service, problem) -> None:
    key_id, secret = service.new_key()
    assert get(service, ("X-Api-Key", secret)).json() == service.client("hr").get("/me").json()
    service.delete_key(key_id)
    problem(get(service, ("X-Api-Key", secret)), 401, "unauthorized")
    assert service.client("hr").get("/me").status_code == 200


def test_a_key_deleted_under_load_is_let_in_no_more(service) -> None:
    """No request that begins after the deletion has returned is served; those before it were."""
    key_id, secret = service.new_key()
    body = service.body("gift", "shop", value=0.01)
    deleted, served_before = threading.Event(), threading.Barrier(5)
    wrong: list[int] = []
    refused: list[int] = []

    def call() -> None:
        with httpx.Client(base_url=service.url, headers={"X-Api-Key": secret}) as client:
            assert client.get("/me").status_code == 200
            served_before.wait(timeout=30)
            for _ in range(2000):
                begun_after = deleted.is_set()
                status = client.post("/send/gift", json=body).status_code
                if begun_after:
                    refused.append(status)
                    return
                if status not in {200, 401}:
                    wrong.append(status)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    served_before.wait(timeout=30)
    service.delete_key(key_id)
    deleted.set()
    for thread in threads:
        thread.join()
    assert (refused, wrong) == ([401] * 4, [])


async def test_last_seen_is_noted_off_the_request(service) -> None:
    query = "SELECT last_seen_at FROM api_keys WHERE key = 'globex'"
    async with closing(Database.connect(service.database_url)) as database:
        authenticator = Authenticator(database, "production")
        await authenticator.authenticate(service.keys["globex"])
        assert await database.fetchval(OPERATOR, query) is None
        await authenticator.close()
        first = await database.fetchval(OPERATOR, query)
        assert first is not None
        again = Authenticator(database, "production")
        await again.close()
        assert await database.fetchval(OPERATOR, query) == first


class TestRateLimit:
    """Off by default; when set, it is each key's own."""

    def test_more_than_the_limit_is_refused_for_a_while(self, service, start_service, problem) -> None:
        limited = start_service(like=service, rate_limit=3)
        client = limited.client("hr")
        assert [client.get("/me").status_code for _ in range(3)] == [200] * 3
        refused = client.get("/me")
        problem(refused, 429, "too-many-requests")
        assert 1 <= int(refused.headers["Retry-After"]) <= 20
        assert limited.client("crm").get("/me").status_code == 200
        problem(limited.client("tiny").get("/me"), 402, "plan-required")
        assert limited.client().get("/health").status_code == 200

    def test_answers_say_how_many_requests_are_left(self, service, start_service, problem) -> None:
        limited = start_service(like=service, rate_limit=3)
        client = limited.client("hr")
        order = service.body("gift", "coffee", account="team", value=25, codeQuantity=1)
        # By ASGI, by the short way of whole requests, and a refusal.
        answers = [client.get("/products/999"), client.post("/send/gift", json=order), client.get("/products?limit=0")]
        assert [answer.status_code for answer in answers] == [404, 200, 400]
        refused = client.get("/me")
        problem(refused, 429, "too-many-requests")
        assert {answer.headers["RateLimit-Policy"] for answer in (*answers, refused)} == {'"key";q=3;w=60'}
        limits = [re.fullmatch(r'"key";r=(\d+);t=(\d+)', one.headers["RateLimit"]) for one in (*answers, refused)]
        assert [int(limit[1]) for limit in limits] == [2, 1, 0, 0]
        assert all(1 <= int(limit[2]) <= 20 for limit in limits)
        assert limits[-1][2] == refused.headers["Retry-After"]
        for answer in (limited.client().get("/health"), limited.client().get("/me"), service.client("hr").get("/me")):
            assert "RateLimit" not in answer.headers
            assert "RateLimit-Policy" not in answer.headers

    def test_there_is_none_unless_set(self, service) -> None:
        assert {service.client("crm").get("/me").status_code for _ in range(100)} == {200}
