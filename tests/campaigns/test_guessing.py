"""Wrong codes: they pause a mailbox for the network they came from, and many of them for all."""

from datetime import UTC, datetime, timedelta

from tests.campaigns.conftest import Desk, code_of, on_desk, reserve
from tests.campaigns.test_giving import ask, move, prove, take, wrong
from tests.web.api.conftest import Service

from largesse.campaigns.visiting import Outcome
from largesse.lines.attempts import FAILURES_TO_PAUSE_ALL, Failures


def guess(service: Service, token: str, email: str, hosts: list[str]) -> None:
    """Types a wrong code from each of the hosts in turn."""
    code = wrong(code_of(service, email))

    async def run(desk: Desk) -> None:
        for host in hosts:
            assert (await desk.services.visiting.take(token, email, code, host)).outcome is Outcome.REFUSED

    on_desk(service, run)


def test_wrong_codes_of_one_network_do_not_keep_the_visitor_of_another_out(service: Service) -> None:
    token = reserve(service)
    ask(service, token, "zoe@acme.example")
    guess(service, token, "zoe@acme.example", ["198.51.100.1"] * (FAILURES_TO_PAUSE_ALL + 5))
    code = code_of(service, "zoe@acme.example")
    assert take(service, token, "zoe@acme.example", code, "198.51.100.1").outcome is Outcome.REFUSED
    assert take(service, token, "zoe@acme.example", code).outcome is Outcome.GIVEN
    # The visitor's right code does not end the pause of the network that guesses.
    assert take(service, token, "zoe@acme.example", code, "198.51.100.1").outcome is Outcome.REFUSED


def test_wrong_codes_of_many_networks_pause_the_mailbox_for_all(service: Service) -> None:
    token = reserve(service)
    ask(service, token, "zoe@acme.example", "yan@acme.example")
    guess(service, token, "zoe@acme.example", [f"198.51.100.{number}" for number in range(FAILURES_TO_PAUSE_ALL)])
    assert take(service, token, "zoe@acme.example", code_of(service, "zoe@acme.example")).outcome is Outcome.REFUSED
    assert take(service, token, "yan@acme.example", code_of(service, "yan@acme.example")).outcome is Outcome.GIVEN
    move(service, timedelta(minutes=15, seconds=1))
    assert prove(service, token, "zoe@acme.example").outcome is Outcome.GIVEN


def test_requests_of_others_that_are_not_decided_yet_do_not_end_the_code(service: Service) -> None:
    token = reserve(service)
    ask(service, token, "zoe@acme.example")
    code = code_of(service, "zoe@acme.example")
    on_desk(service, lambda desk: desk.services.visiting.ask(token, "zoe@acme.example", "198.51.100.1", "en"))
    assert take(service, token, "zoe@acme.example", code).outcome is Outcome.GIVEN


def test_guesses_of_one_mailbox_on_a_day_stay_few() -> None:
    """The numbers of decision 80: 140 on the first day, and 20 on each later one."""
    now = start = datetime(2027, 1, 1, tzinfo=UTC)
    failures, a_day = Failures(), [0] * 30
    while now < start + timedelta(days=len(a_day)):
        a_day[(now - start).days] += 1
        failures = failures.with_one_more(now, FAILURES_TO_PAUSE_ALL)
        now = max(now, failures.paused_until)
    assert a_day == [140, *[20] * 29]
