"""`python -m barnabas.simulation`: run histories of many seeds, or replay one.

In: names of histories, seeds, number of processes. Out: for each failure a line with the command to replay it
and a minimal list of faults, then a summary with verdicts, faults by kind, and counts of what clients did.
The exit status is that of the first failure: 1 wrong, 2 stuck, 3 crashed.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterable

from barnabas.simulation.histories.catalogue import ALL_HISTORIES, NAMED
from barnabas.simulation.world.history import Result, Verdict, live, shrink

EXIT_STATUS = {Verdict.GOOD: 0, Verdict.WRONG: 1, Verdict.STUCK: 2, Verdict.CRASHED: 3}
PROGRESS_S = 60.0
FAILURES_MAX = 20
HISTORIES_PER_PROCESS = 200  # some memory of a history is not freed at its end


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m barnabas.simulation", description=__doc__)
    parser.add_argument("--history", choices=list(NAMED), default="all")
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds of each history")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="this seed alone, with its events")
    parser.add_argument("--jobs", type=int, default=1, help="in how many processes")
    parser.add_argument("--no-shrink", action="store_true", help="leave the faults as the seed has them")
    options = parser.parse_args()
    names = NAMED[options.history]
    if options.seed is not None:
        return replay(names, options.seed)
    seeds = range(options.first, options.first + options.seeds)
    tasks = [(name, seed) for seed in seeds for name in names]
    if options.jobs == 1:
        return explore(map(live_one, tasks), not options.no_shrink)
    with multiprocessing.Pool(options.jobs, maxtasksperchild=HISTORIES_PER_PROCESS) as pool:
        return explore(pool.imap(live_one, tasks), not options.no_shrink)


def live_one(task: tuple[str, int]) -> Result:
    name, seed = task
    return live(ALL_HISTORIES[name], seed)


def replay(names: list[str], seed: int) -> int:
    logging.getLogger("barnabas").setLevel(logging.INFO)
    status = 0
    for name in names:
        result = live(ALL_HISTORIES[name], seed, on_line=print)
        report(result)
        status = status or EXIT_STATUS[result.verdict]
    return status


def explore(results: Iterable[Result], shrinks: bool) -> int:
    status, verdicts, started = 0, Counter[str](), time.monotonic()
    happened, counts = Counter[str](), Counter[str]()
    printed_at, failures = started, 0
    for result in results:
        verdicts[f"{result.history} {result.verdict.value}"] += 1
        happened.update(result.happened)
        counts.update(result.counts)
        if result.verdict is not Verdict.GOOD:
            report(shrink(ALL_HISTORIES[result.history], result) if shrinks else result)
            status = status or EXIT_STATUS[result.verdict]
            failures += 1
        if failures >= FAILURES_MAX:
            print(f"{failures} failures: enough")
            break
        if time.monotonic() - printed_at > PROGRESS_S:
            printed_at = time.monotonic()
            print(f"at seed {result.seed}: {dict(verdicts)}", flush=True)
    took_s = time.monotonic() - started
    print(f"{verdicts.total()} histories in {took_s:.0f} s: {dict(verdicts)}")
    for title, table in (("faults", happened), ("what happened", counts)):
        print(f"{title}: " + ", ".join(f"{name} {count}" for name, count in table.most_common()))
    return status


def report(result: Result) -> None:
    print(result, flush=True)
    if result.details:
        print(result.details, flush=True)


if __name__ == "__main__":
    sys.exit(main())
