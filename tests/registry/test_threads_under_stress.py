"""Threads that read the registry's state while records are applied: no error, and no half of a change."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable

from barnabas.registry.state import lookups
from barnabas.registry.state.commands import DeleteSubject, DeleteVersion, RegisterSchema, SchemaRequest
from barnabas.registry.state.registering import existing
from barnabas.services.errors import ApiError
from registry.desk import Desk

STEPS = 3000
NAMES = [f"s{number}" for number in range(20)] + [f":.x:s{number}" for number in range(20)]


def test_readers_beside_the_thread_that_applies() -> None:
    desk = Desk()
    state, reader = desk.state, desk.decider.reader
    is_done = threading.Event()
    failures: list[BaseException] = []

    def read_all(rng: random.Random) -> None:
        for subject in lookups.subjects(state, ":*:", deleted=True):
            for version in subject.sorted(deleted=True):
                assert version.content.text and version.schema_id > 0
        list(lookups.contexts(state))

    def read_some(rng: random.Random) -> None:
        shown = lookups.by_id(state, rng.randrange(1, 200), rng.choice([None, "s1", ":.x:", ":.x:s2"]))
        list(lookups.users_of_id(state, shown.schema_id, None, include_deleted=True))
        lookups.by_guid(state, shown.content.guid)
        state.references.referring(shown)

    def find(rng: random.Random) -> None:
        command = RegisterSchema(rng.choice(NAMES), SchemaRequest(f'{{"f{rng.randrange(50)}":1}}'))
        existing(command, state, reader)

    def repeat(work: Callable[[random.Random], None], seed: int) -> None:
        rng = random.Random(seed)
        while not is_done.is_set():
            try:
                work(rng)
            except ApiError:
                continue  # gone, or not there yet
            except BaseException as error:
                failures.append(error)
                return

    threads = [
        threading.Thread(target=repeat, args=(work, seed))
        for seed, work in enumerate((read_all, read_some, find))
    ]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        rng = random.Random(3)
        for _ in range(STEPS):
            name = rng.choice(NAMES)
            try:
                match rng.randrange(6):
                    case 0:
                        desk.do(DeleteSubject(name, permanent=rng.random() < 0.5))
                    case 1:
                        desk.do(DeleteVersion(name, -1, permanent=rng.random() < 0.5))
                    case _:
                        desk.register(name, f'{{"f{rng.randrange(50)}":1}}', force=True)
            except ApiError:
                continue
    finally:
        is_done.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert not failures, failures
