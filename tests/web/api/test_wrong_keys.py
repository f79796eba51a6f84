"""Guessing at keys: refused after a while, at next to no cost to the database, and nobody else's trouble."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from prometheus_client import REGISTRY
from tests.waiting import until
from tests.web.api.conftest import RICH_WORLD

from largesse.customers.authenticator import WRONG_KEYS_A_MINUTE, WrongKeys, new_secret
from largesse.db.scope import Scope


def failed(reason: str) -> float:
    return REGISTRY.get_sample_value("largesse_failed_authentications_total", {"reason": reason}) or 0.0


class Clock:
    """It stands still unless told: nothing comes back meanwhile, however slow the machine is."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def __call__(self) -> float:
        return self.at_s


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def service(start_service, clock: Clock):
    """A service that counts wrong keys by that clock."""
    return start_service(RICH_WORLD, wrong_keys=WrongKeys(now_s=clock))


@pytest.fixture
def ask(service) -> Iterator:
    """`ask(secret, address)`: the answer to `GET /me`."""
    with httpx.Client(base_url=service.url, timeout=60) as client:

        def get(secret: str, address: str) -> httpx.Response:
            return client.get("/me", headers={"X-Api-Key": secret, "X-Forwarded-For": address})

        yield get


def use_up(ask, address: str) -> None:
    """Sends as many wrong keys as may be wrong, under a clock that stands still, and one more."""
    statuses = [ask("nonsense", address).status_code for _ in range(WRONG_KEYS_A_MINUTE + 1)]
    assert statuses == [401] * WRONG_KEYS_A_MINUTE + [429]


@pytest.mark.slow
def test_so_many_may_be_wrong(ask, service, problem, clock: Clock) -> None:
    malformed, limited = failed("malformed"), failed("limited")
    for _ in range(WRONG_KEYS_A_MINUTE):
        problem(ask("nonsense", "198.51.100.1"), 401, "unauthorized")
    assert failed("malformed") == malformed + WRONG_KEYS_A_MINUTE
    answer = ask("nonsense", "198.51.100.1")
    detail = problem(answer, 429, "too-many-requests")
    assert str(WRONG_KEYS_A_MINUTE) in detail
    assert "nonsense" not in detail
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    assert failed("limited") > limited
    clock.at_s += int(answer.headers["Retry-After"])
    problem(ask("nonsense", "198.51.100.1"), 401, "unauthorized")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("wrong", ["malformed", "unknown", "of-the-other-environment"])
def test_every_kind_of_wrong_key_counts(ask, service, wrong: str) -> None:
    address = f"198.51.100.{2 + len(wrong)}"
    use_up(ask, address)
    secret = {
        "malformed": "lgs_live_x",
        "unknown": new_secret("production"),
        "of-the-other-environment": service.keys["hr-test"],
    }[wrong]
    assert {ask(secret, address).status_code for _ in range(3)} == {429}


@pytest.mark.slow
def test_right_keys_pass_from_the_same_address(ask, service) -> None:
    assert ask(service.keys["hr"], "198.51.100.30").status_code == 200
    _, unseen = service.new_key()
    use_up(ask, "198.51.100.30")
    for secret in (service.keys["hr"], unseen, service.keys["hr"], unseen):
        assert ask(secret, "198.51.100.30").status_code == 200
    assert ask("nonsense", "198.51.100.30").status_code == 429


@pytest.mark.slow
def test_a_right_key_passes_amid_the_guesses(ask, service) -> None:
    _, unseen = service.new_key()
    use_up(ask, "198.51.100.31")
    guesses = [new_secret("production") for _ in range(40)]
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(ask, guess, "198.51.100.31") for guess in guesses]
        assert ask(service.keys["crm"], "198.51.100.31").status_code == 200
        assert ask(unseen, "198.51.100.31").status_code == 200
        statuses = {answer.result().status_code for answer in answers}
    assert statuses == {429}


@pytest.mark.slow
def test_a_deleted_key_is_no_guess(ask, service) -> None:
    """Whoever still sends a key that was right hears each time that it is no more, and leaves the others of the address alone."""
    key_id, secret = service.new_key()
    assert ask(secret, "198.51.100.32").status_code == 200
    service.delete_key(key_id)
    assert {ask(secret, "198.51.100.32").status_code for _ in range(WRONG_KEYS_A_MINUTE + 50)} == {401}
    use_up(ask, "198.51.100.32")
    assert ask(secret, "198.51.100.32").status_code == 401


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("198.51.100.40", "198.51.100.41", False),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::2", True),
        ("2001:db8:1:3::1", "2001:db8:1:4::1", False),
    ],
)
def test_each_address_has_its_own_allowance(ask, one: str, other: str, same: bool) -> None:
    use_up(ask, one)
    assert ask("nonsense", other).status_code == (429 if same else 401)


@pytest.mark.slow
def test_no_key_is_no_wrong_key(service, problem) -> None:
    headers = {"X-Forwarded-For": "198.51.100.50"}
    for _ in range(WRONG_KEYS_A_MINUTE + 50):
        problem(service.client().get("/me", headers=headers), 401, "unauthorized")


@pytest.mark.long
def test_guesses_past_the_limit_cost_the_database_next_to_nothing(
    ask, service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that wait share a look-up, and each look-up has its turn, of five a second."""
    use_up(ask, "198.51.100.60")
    guesses = [new_secret("production") for _ in range(50)]
    database, authenticator = service.app.services.database, service.app.services.authenticator
    fetch, turn = database.fetch, authenticator._turns.turn
    events: list[str] = []

    async def counted(scope: Scope, query: str, *arguments: object) -> object:
        if "FROM callers" in query:
            events.append("look-up")
            if events.count("look-up") == 1:
                await until(lambda: authenticator._doubted._room_taken == len(guesses) - 1)
        return await fetch(scope, query, *arguments)

    async def counted_turn() -> None:
        await turn()
        events.append("turn")

    monkeypatch.setattr(database, "fetch", counted)
    monkeypatch.setattr(authenticator._turns, "turn", counted_turn)
    with ThreadPoolExecutor(len(guesses)) as pool:
        statuses = {answer.status_code for answer in pool.map(lambda one: ask(one, "198.51.100.60"), guesses)}
    assert statuses == {429}
    assert events == ["turn", "look-up"] * 2
    assert authenticator._turns._every_s == 1 / 5
