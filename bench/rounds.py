"""Alternating rounds: A B A B, so that other load on the machine disturbs both contenders.

In: the contenders, trials, a scale. Out: a `Result` for each row, with the values of every round.
A trial that fails leaves its rows without values, and the reason in `failures`; the others go on. A file
keeps the values after every trial, so that a run that was interrupted can go on (`keep`, `known`).
Does not know: how a value is measured, how results are shown.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import statistics
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import (
    acls,
    cleaner,
    generator,
    groups,
    lifecycle,
    loads,
    logins,
    metrics,
    share,
    stalls,
    tls,
    transactions,
)
from bench.brokers import Apache, Barnabas, BrokerError, Contender
from bench.loads import Scale, Trial
from bench.rows import ROWS, Row

Say = Callable[[str], None]
log = logging.getLogger("bench")


@dataclass(slots=True)
class Result:
    """The values of one row, round by round; `limit` is the value of a bare server under the same load."""

    row: Row
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    limit: float | None = None

    @property
    def ratios(self) -> list[float]:
        return [a / b for a, b in zip(self.ours, self.theirs, strict=False)]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def is_judged(self) -> bool:
        """Whether there is enough for a verdict."""
        return bool(self.ours) if self.row.of_own else bool(self.ratios)

    @property
    def holds(self) -> bool:
        return self.row.holds(statistics.median(self.ours) if self.row.of_own else self.ratio)


def chosen(trials: Iterable[Trial], names: Sequence[str]) -> list[Trial]:
    return [trial for trial in trials if not names or any(row in names for row in trial.rows)]


def keep(results: Iterable[Result], path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    kept = {each.row.name: [each.ours, each.theirs, each.limit] for each in results}
    path.write_text(json.dumps(kept, indent=1))


def known(path: Path) -> dict[str, Result]:
    """Results that an earlier run kept, by row."""
    kept = json.loads(path.read_text()) if path.exists() else {}
    return {name: Result(ROWS[name], *values) for name, values in kept.items() if name in ROWS}


class Comparison:
    """All rounds of one run. With `alone`, only one of the two is measured."""

    def __init__(
        self,
        scale: Scale,
        rounds: int,
        say: Say,
        *,
        alone: str | None = None,
        kept_in: Path | None = None,
        goes_on: bool = False,
    ) -> None:
        self.scale = scale
        self.rounds = rounds
        self.say = say
        self.kinds = [kind for kind in (Barnabas, Apache) if alone in (None, kind.__name__.lower())]
        self.kept_in = kept_in
        self.results: dict[str, Result] = known(kept_in) if kept_in is not None and goes_on else {}
        self._measured = set(self.results)  # by the run before
        self.failures: dict[str, str] = {}

    def run(self, names: Sequence[str] = ()) -> list[Result]:
        self._on_running_brokers(
            self._chosen((*loads.TRIALS, *groups.TRIALS, *share.TRIALS, *transactions.TRIALS), names)
        )
        with tls.stores() as stores:
            self._on_running_brokers(self._chosen(tls.TRIALS, names), stores)
        for trial in self._chosen(
            (
                *lifecycle.TRIALS,
                *groups.FRESH_TRIALS,
                *share.FRESH_TRIALS,
                *cleaner.TRIALS,
                *acls.TRIALS,
                *metrics.TRIALS,
                *logins.TRIALS,
                *stalls.TRIALS,
            ),
            names,
        ):
            self._isolated(trial, lambda trial=trial: self._on_fresh_brokers(trial))
        return [self.results[name] for name in ROWS if name in self.results and (not names or name in names)]

    def _chosen(self, trials: Iterable[Trial], names: Sequence[str]) -> list[Trial]:
        return [each for each in chosen(trials, names) if not self._measured.issuperset(each.rows)]

    def _isolated(self, trial: Trial, measure: Callable[[], None]) -> None:
        try:
            measure()
        except (BrokerError, generator.LoadError, OSError, subprocess.SubprocessError) as error:
            log.warning("%s: %s", ", ".join(trial.rows), error)
            for name in trial.rows:
                self.failures[name] = str(error)
                self.results.pop(name, None)
        if self.kept_in is not None:
            keep(self.results.values(), self.kept_in)

    def _on_running_brokers(self, trials: list[Trial], stores: Mapping[str, str] | None = None) -> None:
        if not trials:
            return
        contenders: list[Contender] = [kind() for kind in self.kinds]
        if stores is not None:
            for broker in contenders:
                broker.secure(stores)
        prepared: set[object] = set()
        try:
            for broker in contenders:
                broker.start()
            for trial in trials:
                self._isolated(trial, lambda trial=trial: self._on_running(trial, contenders, prepared))
        finally:
            for broker in contenders:
                broker.close()

    def _on_running(self, trial: Trial, contenders: list[Contender], prepared: set[object]) -> None:
        for broker in contenders:
            if trial.prepare is not None and (trial.prepare, broker.name) not in prepared:
                self.say(f"{broker.name}: preparing {trial.rows[0]}")
                trial.prepare(broker, self.scale)
                prepared.add((trial.prepare, broker.name))
        self._warm_up(trial, contenders)
        self._rounds(trial, contenders)
        self._limit(trial)

    def _on_fresh_brokers(self, trial: Trial) -> None:
        contenders: list[Contender] = [kind(overrides=trial.overrides) for kind in self.kinds]
        try:
            for broker in contenders:  # formatted, and in the page cache
                self.say(f"{broker.name}: first start for {trial.rows[0]}")
                broker.start()
                broker.stop()
            self._rounds(trial, contenders)
        finally:
            for broker in contenders:
                broker.close()

    def _warm_up(self, trial: Trial, contenders: list[Contender]) -> None:
        """Run the same load until Java's compiler is done; our broker gets the same warm-up."""
        if not trial.warm_up or not self.scale.warm_up_s:
            return
        longer = dataclasses.replace(
            self.scale, seconds=self.scale.warm_up_s, bytes_max=2 * self.scale.bytes_max
        )
        for broker in contenders:
            self.say(f"{broker.name}: warming up {trial.rows[0]}")
            trial.measure(broker, longer)

    def _rounds(self, trial: Trial, contenders: list[Contender]) -> None:
        rounds = 1 if trial.is_once else self.rounds
        for number in range(rounds):
            for broker in contenders:
                self.say(f"{broker.name}: {trial.rows[0]}, round {number + 1} of {rounds}")
                try:
                    measured = trial.measure(broker, self.scale)
                except BrokerError as error:
                    if broker.name == Barnabas.name or not trial.peer_may_fail:
                        raise
                    log.warning("%s: not measured on %s: %s", trial.rows[0], broker.name, error)
                    continue
                for name, value in measured.items():
                    result = self.results.setdefault(name, Result(ROWS[name]))
                    (result.ours if broker.name == Barnabas.name else result.theirs).append(value)

    def _limit(self, trial: Trial) -> None:
        load = loads.PRODUCE.get(trial.rows[0])
        if load is None:
            return
        with generator.bare_server() as port:
            if port is not None:
                self.say(f"bare server: {load.row}")
                free = dataclasses.replace(self.scale, seconds=min(1.0, self.scale.seconds))
                self.results[load.row].limit = load.value(load.load(port, load.row, free, check=False))
