"""Names are asked of a real name server on loopback; some it never answers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address

import pytest
from tests.waiting import LONGEST_S, until
from tests.webhooks.nameserver import NameServer, name_server

from largesse.webhooks import resolver
from largesse.webhooks.resolver import Resolver, UnresolvedError

ACME, GLOBEX = 1, 2


@asynccontextmanager
async def asking(server: NameServer) -> AsyncIterator[Resolver]:
    resolver = Resolver(nameservers=[server.address])
    try:
        yield resolver
    finally:
        await resolver.close()


def look_up_silent(resolver: Resolver, count: int, customer_id: int) -> list[asyncio.Task[object]]:
    """Begins look-ups of so many names that are never answered."""
    return [
        asyncio.create_task(resolver.look_up(f"{customer_id}-{number}.silent.example", customer_id))
        for number in range(count)
    ]


async def end(tasks: list[asyncio.Task[object]]) -> None:
    for task in tasks:
        task.cancel()
    with suppress(UnresolvedError):
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_name_has_the_addresses_of_both_families() -> None:
    async with (
        name_server({"both.example": ["192.0.2.7", "192.0.2.8", "2001:db8::7"]}) as server,
        asking(server) as resolver,
    ):
        found = await resolver.look_up("both.example", ACME)
    assert set(found) == {ip_address("192.0.2.7"), ip_address("192.0.2.8"), ip_address("2001:db8::7")}
    assert len(found) == 3


async def test_what_the_hosts_file_says_is_not_asked() -> None:
    async with name_server() as server, asking(server) as resolver:
        assert ip_address("127.0.0.1") in await resolver.look_up("localhost", ACME)
    assert not server.asked


async def test_a_name_that_does_not_exist_is_unresolved() -> None:
    async with name_server() as server, asking(server) as resolver:
        with pytest.raises(UnresolvedError):
            await resolver.look_up("nobody.example", ACME)


async def test_a_name_that_is_never_answered_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "LONGEST_S", 0.2)
    async with name_server() as server, asking(server) as asked:
        with pytest.raises(UnresolvedError):
            await asked.look_up("a.silent.example", ACME)
        assert server.asked == {"a.silent.example"}


async def test_a_name_server_that_was_quick_may_pause() -> None:
    """How long an answer is waited for is learned from those before; a pause after quick ones is no missing name."""
    names = {f"{number}.example": ["192.0.2.7"] for number in range(11)}
    async with name_server(names) as server, asking(server) as resolver:
        for number in range(10):
            await resolver.look_up(f"{number}.example", ACME)
        server.delay_s = 0.7
        assert await resolver.look_up("10.example", ACME) == [ip_address("192.0.2.7")]


async def test_names_that_hang_hold_up_no_other_customer() -> None:
    async with name_server({"good.example": ["192.0.2.7"]}) as server, asking(server) as resolver:
        hanging = look_up_silent(resolver, 200, ACME)
        await until(lambda: len(server.asked) >= 16)
        assert await resolver.look_up("good.example", GLOBEX) == [ip_address("192.0.2.7")]
        assert not any(task.done() for task in hanging)
        await end(hanging)
    assert len(server.asked - {"good.example"}) == 16, "one customer has no more under way"


async def test_a_look_up_given_up_keeps_its_place_until_its_question_ends() -> None:
    """Else a customer could have any number under way by giving up at once."""
    async with name_server() as server, asking(server) as resolver:
        for round_ in range(3):
            hanging = look_up_silent(resolver, 16 * (round_ + 1), ACME)
            await until(lambda: len(server.asked) >= 16)
            await end(hanging)
        assert len(server.asked) == 16


async def test_places_are_free_again_when_questions_were_answered() -> None:
    names = {f"{number}.example": ["192.0.2.7"] for number in range(100)}
    async with name_server(names) as server, asking(server) as resolver:
        async with asyncio.timeout(LONGEST_S):
            await asyncio.gather(*(resolver.look_up(name, ACME) for name in names))
        assert server.asked == names.keys()
        assert not resolver._places_of, "and nobody's are remembered"


async def test_a_process_asks_a_bounded_number_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver, "AT_ONCE", 20)
    async with name_server() as server, asking(server) as asked:
        hanging = [task for customer in range(5) for task in look_up_silent(asked, 8, customer)]
        await until(lambda: len(server.asked) >= 20)
        await asyncio.sleep(0.1)
        assert len(server.asked) == 20
        await end(hanging)


async def test_many_who_ask_for_one_name_make_one_question() -> None:
    async with name_server({"good.example": ["192.0.2.7"]}, delay_s=0.05) as server, asking(server) as resolver:
        asked = [resolver.look_up("good.example", customer) for customer in range(50)]
        assert await asyncio.gather(*asked) == [[ip_address("192.0.2.7")]] * 50
        await resolver.look_up("good.example", ACME)
    assert server.questions <= 2, "one of each family"


async def test_closing_ends_what_is_under_way_at_once() -> None:
    async with name_server() as server, asking(server) as resolver:
        hanging = look_up_silent(resolver, 40, ACME)
        await until(lambda: len(server.asked) == 16)
        await resolver.close()
        assert len(server.asked) == 16, "those that waited did not ask any more"
        ended = await asyncio.gather(*hanging, return_exceptions=True)
    assert {type(one) for one in ended} == {UnresolvedError}
