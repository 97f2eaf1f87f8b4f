"""The simulated network: bytes in order, late, not at all, and what each end hears of it."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.simulation.world.world import World

SERVER, CLIENT = "server", "client"
PORT = 9092


@pytest.fixture
def world() -> Iterator[World]:
    with World(7) as world:
        yield world


class Ear(asyncio.Protocol):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.data = b""
        self.lost: list[Exception | None] = []
        self.paused = 0

    def connection_made(self, transport: Any) -> None:
        self.transport: asyncio.Transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.append(error)

    def pause_writing(self) -> None:
        self.paused += 1

    def resume_writing(self) -> None:
        self.paused -= 1


class Pair:
    """A server, a client, and one connection between them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.network = world.network
        self.server = world.process(SERVER)
        self.client = world.process(CLIENT)
        self.accepted: list[Ear] = []
        self.mine: Ear

    def _accept(self) -> Ear:
        self.accepted.append(Ear())
        return self.accepted[-1]

    @property
    def theirs(self) -> Ear:
        return self.accepted[-1]

    async def connect(self) -> None:
        async def listen() -> None:
            await asyncio.get_running_loop().create_server(self._accept, SERVER, PORT)

        async def open_one() -> Ear:
            return (await asyncio.get_running_loop().create_connection(Ear, SERVER, PORT))[1]

        await self.server.spawn(listen())
        self.mine = await self.client.spawn(open_one())
        await asyncio.sleep(0)


def run(world: World, history: Callable[[Pair], Any]) -> Pair:
    pair = Pair(world)

    async def whole() -> None:
        await pair.connect()
        await history(pair)

    world.run(whole(), 100)
    return pair


def test_bytes_arrive_in_order_however_they_are_cut(world: World) -> None:
    async def history(pair: Pair) -> None:
        for number in range(500):
            pair.mine.transport.write(b"%03d" % number)
        await asyncio.sleep(10)

    pair = run(world, history)

    assert pair.theirs.data == b"".join(b"%03d" % number for number in range(500))


def test_a_cut_is_one_way_and_bytes_arrive_when_it_ends(world: World) -> None:
    async def history(pair: Pair) -> None:
        pair.network.cut(CLIENT, SERVER)
        pair.mine.transport.write(b"question")
        pair.theirs.transport.write(b"news")
        await asyncio.sleep(10)
        assert (pair.theirs.data, pair.mine.data) == (b"", b"news")
        pair.network.heal(CLIENT, SERVER)
        await asyncio.sleep(1)

    pair = run(world, history)

    assert pair.theirs.data == b"question"


def test_a_reset_reaches_both_ends_and_drops_bytes_in_flight(world: World) -> None:
    async def history(pair: Pair) -> None:
        pair.mine.transport.write(b"lost")
        pair.network.reset_connections(SERVER)
        await asyncio.sleep(1)

    pair = run(world, history)

    assert pair.theirs.data == b""
    assert [type(error) for error in pair.mine.lost + pair.theirs.lost] == [ConnectionResetError] * 2


def test_a_connection_may_be_lost_while_it_waits_to_be_accepted(world: World) -> None:
    async def history(pair: Pair) -> None:
        pair.server.pause()

        async def open_one() -> Ear:
            return (await asyncio.get_running_loop().create_connection(Ear, SERVER, PORT))[1]

        second = await pair.client.spawn(open_one())
        pair.network.reset_connections(SERVER)
        await asyncio.sleep(1)
        world.loop.call_soon(pair.server.resume)
        await asyncio.sleep(1)
        assert len(second.lost) == 1

    pair = run(world, history)

    assert [len(ear.lost) for ear in pair.accepted] == [1, 1]


def test_closing_sends_written_bytes_first(world: World) -> None:
    async def history(pair: Pair) -> None:
        pair.mine.transport.write(b"last words")
        pair.mine.transport.close()
        pair.mine.transport.write(b"too late")
        await asyncio.sleep(1)

    pair = run(world, history)

    assert pair.theirs.data == b"last words"
    assert pair.mine.lost == pair.theirs.lost == [None]


def test_the_peer_of_a_killed_process_sees_the_connection_close(world: World) -> None:
    async def history(pair: Pair) -> None:
        pair.server.on_end.append(lambda: pair.network.killed(pair.server))
        world.loop.call_soon(pair.server.end)
        await asyncio.sleep(1)

    pair = run(world, history)

    assert len(pair.mine.lost) == 1
    assert pair.theirs.lost == []


def test_a_power_loss_is_noticed_only_when_the_host_is_back(world: World) -> None:
    async def history(pair: Pair) -> None:
        pair.server.on_end.append(lambda: pair.network.lost_power(pair.server))
        world.loop.call_soon(pair.server.end)
        await asyncio.sleep(1)
        pair.mine.transport.write(b"are you there?")
        await asyncio.sleep(10)
        assert pair.mine.lost == []
        pair.network.boot(SERVER)
        await asyncio.sleep(1)

    pair = run(world, history)

    assert [type(error) for error in pair.mine.lost] == [ConnectionResetError]


def test_a_writer_is_paused_while_the_reader_does_not_read(world: World) -> None:
    async def history(pair: Pair) -> None:
        pair.theirs.transport.pause_reading()
        pair.mine.transport.write(bytes(1 << 20))
        assert pair.mine.paused == 1
        await asyncio.sleep(1)
        assert pair.theirs.data == b""
        pair.theirs.transport.resume_reading()
        await asyncio.sleep(1)

    pair = run(world, history)

    assert pair.mine.paused == 0
    assert len(pair.theirs.data) == 1 << 20


def test_a_slow_link_takes_its_time(world: World) -> None:
    async def history(pair: Pair) -> None:
        pair.network.link(CLIENT, SERVER).set_speed(1.0, 1000.0)
        pair.mine.transport.write(bytes(5000))
        await asyncio.sleep(2)
        assert len(pair.theirs.data) < 5000
        await asyncio.sleep(10)

    pair = run(world, history)

    assert len(pair.theirs.data) == 5000


def test_a_connection_to_an_unbound_address_is_refused(world: World) -> None:
    client = world.process(CLIENT)

    async def connect() -> None:
        await asyncio.get_running_loop().create_connection(Ear, SERVER, PORT)

    async def history() -> None:
        with pytest.raises(ConnectionRefusedError):
            await client.spawn(connect())

    world.run(history(), 10)


def test_an_address_is_taken_once(world: World) -> None:
    async def history(pair: Pair) -> None:
        async def bind() -> None:
            pair.network.bind(SERVER, PORT)

        with pytest.raises(OSError, match="another process listens there"):
            await pair.server.spawn(bind())

    run(world, history)
