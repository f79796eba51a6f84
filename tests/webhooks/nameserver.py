"""A name server on loopback: it answers for the names it is given, and stays silent on those that end in `silent.example`."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import cast

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset


class NameServer(asyncio.DatagramProtocol):
    """`asked` holds the names it was asked for, each once; `delay_s` passes before each answer."""

    def __init__(self, names: Mapping[str, Sequence[str]], delay_s: float) -> None:
        self._names = names
        self.delay_s = delay_s
        self.asked: set[str] = set()
        self.questions = 0
        self.address = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)
        self.address = "{}:{}".format(*transport.get_extra_info("sockname"))

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        query = dns.message.from_wire(data)
        name = query.question[0].name.to_text(omit_final_dot=True)
        self.asked.add(name)
        self.questions += 1
        if name.endswith("silent.example"):
            return
        wire = self._answer(query, name).to_wire()
        asyncio.get_running_loop().call_later(self.delay_s, self._transport.sendto, wire, addr)

    def close(self) -> None:
        self._transport.close()

    def _answer(self, query: dns.message.Message, name: str) -> dns.message.Message:
        answer = dns.message.make_response(query)
        answer.flags |= dns.flags.RA
        if name not in self._names:
            answer.set_rcode(dns.rcode.NXDOMAIN)
            return answer
        question = query.question[0]
        of_ipv6 = question.rdtype == dns.rdatatype.AAAA
        addresses = [address for address in self._names[name] if (":" in address) == of_ipv6]
        if addresses:
            # For no time at all, so that nobody between us and the resolver remembers it.
            answer.answer.append(dns.rrset.from_text(question.name, 0, "IN", question.rdtype, *addresses))
        return answer


@asynccontextmanager
async def name_server(
    names: Mapping[str, Sequence[str]] | None = None, *, delay_s: float = 0.0
) -> AsyncIterator[NameServer]:
    """A name server that knows `names`, for as long as the block."""
    _, server = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: NameServer(names or {}, delay_s), local_addr=("127.0.0.1", 0)
    )
    try:
        yield server
    finally:
        server.close()
