"""`rehearse`: how many measurements a study will take, by playing it many times on arms as they are believed to be."""

from __future__ import annotations

import contextlib
import functools
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandit_envs import PureExplorationVectorEnv, Task, measurements
from bandit_envs.instances import Count
from bandit_envs.kernels import WATCHERS, integer, number, root_number

from ..core.forms import forms_of
from ..core.optional import pandas
from ..evaluation.execution import StoppedError, Watch
from ..evaluation.lockstep import Lockstep
from ..evaluation.plan import Plan
from ..evaluation.plots import COLOURS, LINES, save
from ..evaluation.progress import Progress, compilation_noted, reported_in_lines, shown
from .course import Part, Statistics
from .design import controls_of
from .fold import State, count_of, fold, sample_of
from .guesses import Guess, Prior, Seen, range_of
from .log import Log
from .setup import Setup, suggested
from .wishes import wishes_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

Floats = NDArray[np.float64]
LEVELS = (0.1, 0.5, 0.9)
FIRST, TIMES, ENOUGH, MOST = 256, 4, 0.95, 2**22  # pulls of an arm at first; then so many times; until so many ended
BEYOND = 20.0  # medians, from which on a rehearsal is cut
SAVES, FEWEST = 0.9, 20  # of the measurements: what leaves more is no advice; rehearsals that it rests on
MOST_IDEAS = 4  # of an advice
WIDER, SURE = 1.25, 20  # how many times the noise a sigma is that is advised; repeated results of a pilot that it needs
GUESSED = "a guess, "  # begins the words of a prior that nobody gave
CERTIFIED = "(stop='certificate')"
BESIDE = 1.03  # of the largest number of measurements, how far a figure reaches
TABLES = (".csv", ".tsv", ".txt", ".xlsx", ".jsonl", ".ndjson", ".parquet")  # files of results; others are sessions


class CompilesError(Exception):
    """A kernel is in no cache."""


class _Refusing:
    """A watcher by which nothing is compiled."""

    def begins(self, name: str) -> None:
        raise CompilesError(name)

    def ends(self) -> None:
        """Nothing was begun."""


class _Clock(Watch):
    """Ends a run so many seconds after its first look: what is compiled before does not count."""

    def __init__(self, bar: Progress | None, seconds: float) -> None:
        super().__init__(bar)
        self.seconds, self.until = seconds, math.inf

    def look(self) -> None:
        if self.until == math.inf:
            self.until = time.monotonic() + self.seconds
        self.over = time.monotonic() > self.until
        super().look()


class _Resumed(PureExplorationVectorEnv):
    """Episodes that go on from what a session has seen."""

    seen: Statistics | None = None

    def _begin(self, rows: NDArray[Any], seeds: Sequence[int | None] | None = None, numbers: Any = None) -> None:
        super()._begin(rows, seeds, numbers)
        if self.seen is not None:
            sim, seen = self._sim.arrays, self.seen
            for name in ("pulls", "excess", "total", "mean", "variance", *(["moments"] if sim.moments.size else [])):
                getattr(sim, name).reshape(self.num_envs, -1)[rows] = getattr(seen, name).reshape(-1)
            sim.spent[rows], sim.money[rows] = seen.spent, self.task.paid(seen.pulls)
            sim.remaining[rows] = self.task.left(seen.pulls)


class Study(NamedTuple):
    """An agent, the task that it was made for, and what it has seen."""

    label: str
    agent: Any
    task: Task
    seen: Statistics | None = None


class Course(NamedTuple):
    """The studies of all agents, the names of the arms, and what a session has seen of them, as of a pilot."""

    studies: list[Study]
    names: list[str]
    seen: tuple[list[str], Statistics] | None
    sign: float  # -1 where a lower value is better, and all is reckoned mirrored


@dataclass(frozen=True)
class Outcome:
    """What an agent has come to in E rehearsals, arrays (E,).

    pulls: further measurements. ended: False where they were cut. by_itself: before the budget. correct, score: of the
    answers at the end, or after `at` measurements. money: what the pulls cost, 0 without prices. cut: by the clock.
    """

    pulls: NDArray[np.int64]
    ended: NDArray[np.bool_]
    by_itself: NDArray[np.bool_]
    correct: NDArray[np.bool_]
    score: Floats
    money: Floats
    cut: NDArray[np.bool_]

    def curve(self) -> tuple[NDArray[np.int64], Floats, Floats]:
        """Numbers of measurements, the share that has ended by then, and its standard error (Kaplan & Meier 1958)."""
        at, counts = np.unique(self.pulls[self.ended], return_counts=True)
        risk = np.array([(self.pulls >= pulls).sum() for pulls in at], np.float64)
        left = np.cumprod(1.0 - counts / risk)
        error = left * np.sqrt(np.cumsum(counts / (risk * np.maximum(risk - counts, 0.5))))
        return at, np.asarray(1.0 - left, np.float64), np.asarray(error, np.float64)

    def quantile(self, level: float) -> float:
        """Measurements by which this share has ended; inf: more than were made."""
        at, share, _ = self.curve()
        return float(np.append(at, math.inf)[(share < level - 1e-9).sum()])


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """What `rehearse` has found.

    Attributes:
        outcomes: {agent: its `Outcome`}. believed: the prior, in words.
        advice: what would save measurements, in a sentence; "" where nothing does.
        spent: measurements that there are already; `outcomes` count further ones.
    """

    outcomes: Mapping[str, Outcome]
    believed: str
    advice: str = ""
    spent: int = 0
    batch: int = 1
    workers: int = 1
    hours: float | None = None

    def table(self) -> DataFrame:
        """A row for each agent: measurements, batches and hours by which 10, 50 and 90 % of all rehearsals have ended.

        Batches are full ones: agents that wait at the end of a round need more. inf where more than these were cut
        before. `money_50`: the median of what all cost, where there are prices. `ended`: the share that ends by itself,
        before the budget. `error`, `score`: of the answers at the end, or after `at` measurements where it was given.
        """
        rows = []
        for label, one in self.outcomes.items():
            row: dict[str, Any] = {"agent": label, "rehearsals": len(one.pulls)}
            for level in LEVELS:
                row[f"measurements_{level * 100:g}"] = pulls = one.quantile(level)
                row[f"batches_{level * 100:g}"] = batches = np.ceil(pulls / self.batch)
                row[f"hours_{level * 100:g}"] = math.nan if self.hours is None else self.hours * batches / self.workers
            row |= {"money_50": np.median(one.money)} if one.money.any() else {}
            row |= {"ended": one.by_itself.mean(), "error": 1 - one.correct.mean(), "score": one.score.mean()}
            rows.append(row)
        table: DataFrame = pandas().DataFrame(rows)
        return table

    def sentence(self) -> str:
        """How many measurements the first agent takes, in words, as "about 380 measurements (250 to 620)"."""
        one = next(iter(self.outcomes.values()))
        low, middle, high = map(one.quantile, LEVELS)
        noun = " more measurements" if self.spent else " measurements"
        if middle == math.inf:
            return f"more than {one.pulls.max():,}{noun}, in most rehearsals"
        if low == high:
            return f"{low:,.0f}{noun}"
        if _about(low) == _about(high):
            return f"about {_about(middle)}{noun}"
        noun += f", which cost {_about(float(np.median(one.money)))}," if one.money.any() else ""
        return f"about {_about(middle)}{noun} ({_about(low)} {'or more' if high == math.inf else f'to {_about(high)}'})"

    def until(self) -> str:
        """`sentence`, what ends most rehearsals of the first agent, and the guess that it rests on."""
        one = next(iter(self.outcomes.values()))
        cut = f", by {self.believed}" if self.believed.startswith(GUESSED) else ""
        cut += "; the clock cut some rehearsals, so that these numbers are too low" * bool(one.cut.any())
        if (one.ended & ~one.by_itself).mean() <= 0.5:
            return f"{self.sentence()} until the answer is certain{cut}"
        certain = f"certain before in {one.by_itself.mean():.0%} of the rehearsals"
        return f"{self.sentence()} until the budget is spent; the answer is {certain}{cut}"

    def plot(self, path: str | Path | None = None) -> Figure:
        """The share of rehearsals that has ended over measurements, with its band of 95 %.

        Args:
            path: a file to write as well, PNG, SVG or PDF.
        """
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.2, 4.2), layout="constrained")
        axes = figure.subplots()
        for i, (label, one) in enumerate(self.outcomes.items()):
            style: Any = {"color": COLOURS[i % len(COLOURS)]}
            at, share, error = (np.concatenate([[0], x, x[-1:]]) for x in one.curve())
            at[-1] = one.pulls.max() * BESIDE  # so that the last step is seen
            axes.step(at, share, where="post", linestyle=LINES[i % len(LINES)], label=label, **style)
            low, high = (np.clip(share + side * error, 0.0, 1.0) for side in (-1.96, 1.96))
            axes.fill_between(at, low, high, step="post", alpha=0.15, linewidth=0, **style)
        axes.set(xlabel="more measurements" if self.spent else "measurements", ylabel="share of rehearsals that ended")
        axes.set_ylim(0, 1)
        axes.legend(frameon=False)
        if path is not None:
            save(figure, path)
        return figure

    def __str__(self) -> str:
        return "\n".join([f"{self.sentence()}; believed: {self.believed}", *([self.advice] if self.advice else [])])


def rehearse(
    facts: Any,
    agents: object = None,
    *,
    batch: int | None = None,
    workers: int = 1,
    prior: object = None,
    episodes: int = 200,
    at: int | None = None,
    hours: float | None = None,
    seed: int = 0,
    seconds: float = 60.0,
    advise: bool = True,
    progress: bool | None = None,
    compiles: bool = True,
) -> Rehearsal:
    """How many measurements a study will take, by playing it many times.

    Args:
        facts: those of the session, as for `Session`; or a session, see `Session.forecast`.
        agents: a name, or a list of them; None: two that suit the facts.
        batch: measurements that are made together; None: the wells of a plate without its controls, else 1.
        workers: how many people, or machines, measure at the same time.
        prior: what is believed of the arms. {"low": .., "high": .., "noise": ..}: means anywhere between two ends, and
            the standard deviation of results of one arm; {"mean": .., "spread": .., "noise": ..}: normal means. Or the
            results of a pilot study, in which arms go by their names: an earlier session, or its store; a table as for
            `measurements`; {arm: its results}. None: a guess by the facts.
        episodes: how often the study is played, for each agent. seed: of what is drawn.
        at: a number of measurements after which answers are scored; None: at the end.
        hours: that a measurement takes or, with `batch`, a batch.
        seconds: after so many the rehearsals of an agent are cut. They are also cut at 20 medians.
        advise: look for what would save measurements, by further rehearsals.
        progress: as for `evaluate`. compiles: False: a `CompilesError` where a kernel is in no cache.

    Raises:
        ValueError: for bad facts, a prior that does not fit them, and a study that would never end.

    Warns:
        UserWarning: where nothing is known but the facts, so that the prior is a guess. Of a design, which is not
            played: which arm may be on which plate, and who may measure it.
    """
    is_session = hasattr(facts, "forecast")
    if batch is None:
        wishes = facts.wishes if is_session else wishes_of(facts) if isinstance(facts, Mapping) else {}
        batch = max(wishes.get("plate", 1) - sum(controls_of(wishes).values()), 1)
    if is_session:
        more = {"episodes": episodes, "seed": seed, "at": at, "hours": hours, "seconds": seconds, "compiles": compiles}
        late = {"batch": batch, "workers": workers}
        return facts.forecast(agents, prior=prior, progress=progress, **more, **late)  # type: ignore[no-any-return]
    batch, workers = integer("batch", batch, 1, 10**6), integer("workers", workers, 1, 10**4)
    hours = None if hours is None else number("hours", hours, 0)
    seconds, episodes = number("seconds", seconds, 0, above=True), integer("episodes", episodes, 2, 10**6)
    how: dict[str, Any] = {"seed": root_number(seed), "at": None if at is None else integer("at", at, 1, 10**9)}
    how["late"] = {"batch": batch, "delay": workers - 1} if max(batch, workers) > 1 else {}
    studies, names, seen, sign = facts if isinstance(facts, Course) else course_of(facts, agents)
    task, spent = studies[0].task, 0 if seen is None else seen[1].spent
    if at is not None and task.cost is not None:
        raise ValueError(f"at= counts measurements, and with cost a budget is money: leave at={at} out")
    if task.items:
        raise ValueError(
            "a study with items cannot be rehearsed: what it takes depends on how alike results on one item are, "
            "of which no prior speaks"
        )
    if isinstance(prior, Mapping) and not prior:
        raise ValueError("a prior is a guess, or results of arms, got {}")
    guessed = isinstance(prior, Mapping) and not any(isinstance(one, (Sequence, np.ndarray)) for one in prior.values())
    pilot = (seen if spent else None) if guessed or prior is None else _pilot(prior, task, sign)
    guess = Guess.of(task, _mirrored(prior) if guessed and sign < 0 else prior if guessed else {})  # type: ignore[arg-type]
    believed = guess.words(task, sign)
    if pilot is not None:
        believed = f"what {int(pilot[1].scored.sum())} results of {len(pilot[0])} arms leave open"
    elif not guessed:
        text = f"the forecast rests on a guess: {believed}. Give a prior, such as the results of a pilot study"
        believed = f"{GUESSED}{believed}"
        warnings.warn(text, UserWarning, stacklevel=2)
    if isinstance(facts, Mapping) and {"per_plate", "raters", "repeats", "blocks"} & set(wishes_of(facts)):
        text = "rehearsals ask for any arm at any time: per_plate, raters, repeats and blocks may take more"
        warnings.warn(text, UserWarning, stacklevel=2)
    source, refusing = _prior(task, guess, pilot, names), _Refusing()
    with contextlib.ExitStack() as stack:
        stack.enter_context(compilation_noted(compiles and shown(progress)))
        stack.enter_context(reported_in_lines(progress))
        bar = stack.enter_context(contextlib.closing(Progress(episodes * len(studies), 0, False, progress)))
        if not compiles:
            WATCHERS.append(refusing)
            stack.callback(WATCHERS.remove, refusing)
        played: Callable[..., Outcome] = functools.partial(_played, **how)
        every: dict[str, Any] = {"episodes": episodes, "seconds": seconds, "bar": bar if bar.show else None}
        outcomes = {study.label: played(study, source, **every) for study in studies}
        found = Rehearsal(outcomes, believed, "", spent, batch, workers, hours)
        if advise and not spent and isinstance(facts, Mapping) and task.delta is not None:
            quick: dict[str, Any] = {"episodes": max(episodes // 4, FEWEST), "seconds": seconds / 10, "bar": None}
            half = None if pilot is not None else lambda fewer: Prior(fewer, guess)
            tried = functools.partial(played, **quick)
            found = replace(found, advice=_advice(facts, studies[0].label, found, source, half, tried))
    return found


def course_of(facts: object, agents: object = None) -> Course:
    """Of facts, or of the state of a session."""
    several = isinstance(agents, Sequence) and not isinstance(agents, str)
    given: Any = agents if several else [] if agents is None else [agents]
    if isinstance(facts, State):
        state, run, seen = facts, facts.run, facts.seen
        if run.over:
            raise ValueError("the session is over: there is nothing to forecast")
        names = [state.names[arm] for arm in state.active]
        studies = [] if given else [_study(state.setup.agent or "the agent", run.agent, run.task, seen)]
        for one in given:
            setup = Setup.of(one, state.setup.task, state.setup.names, state.setup.public_seed)
            agent, task, _ = setup.made_for(state.place, state.statistics.pulls, run.share.ratio)
            studies.append(_study(setup.agent or str(one), agent, task, seen))
        return Course(studies, names, (names, seen), -1.0 if state.setup.own else 1.0)
    if not given:
        task = Setup.of("uniform", facts, None, 0).task
        given = dict.fromkeys([suggested(task), "uniform" if task.delta is None else f"uniform{CERTIFIED}"])
    studies = []
    for one in given:
        setup = Setup.of(one, facts, None, 0)
        run = State(setup).run
        studies.append(_study(setup.agent or str(one), run.agent, run.task))
    return Course(studies, setup.names, None, -1.0 if setup.own else 1.0)


def _study(label: str, agent: Any, task: Task, seen: Statistics | None = None) -> Study:
    """A study, of an agent that ends."""
    stops = task.delta is not None and getattr(agent, "stops", False)
    if not stops and task.budget is None and task.max_pulls is None:
        raise ValueError(f'{label} may never stop by itself: give a budget, or a delta and "{label}{CERTIFIED}"')
    return Study(label, agent, task, seen)


def _pilot(prior: Any, task: Task, sign: float) -> tuple[list[str], Statistics]:
    """What a pilot has seen of each arm: their names, and statistics."""
    if isinstance(prior, (str, Path)) and Path(prior).suffix.lower() not in TABLES:
        if "://" not in str(prior) and not Path(prior).exists():
            raise FileNotFoundError(f"there is no file {prior}, neither a session nor a table of results")
        log = Log(prior)
        with contextlib.closing(log), log.reading() as connection:
            if (facts := log.facts()) is None:
                raise FileNotFoundError(f"there is no session {prior}")
            state = fold(Setup.from_facts(facts), log.events(connection))
        same = sign == (-1.0 if state.setup.own else 1.0)
        mean = state.statistics.mean * (1.0 if same else -1.0)
        return state.names, state.statistics._replace(mean=mean)
    if hasattr(prior, "history"):  # a session
        prior = prior.history()
    if isinstance(prior, Mapping):
        rows = {str(name): results for name, results in prior.items()}
    else:
        table = measurements(prior)
        rows = {name: [one.several or one.value for one in table.rows if one.arm == name] for name in table.arms}
    seen = Statistics.of(task, len(rows))
    for k, (name, results) in enumerate(rows.items()):
        try:
            for one in results:
                if isinstance(one, Count):
                    seen.add(k, Part.of(count_of(task, one), seen.ends[0], lambda x: sign * x))
                    continue
                value = one[0] if task.D == 1 and isinstance(one, tuple) else one
                seen.add(k, np.atleast_1d(sample_of(task, value if sign > 0 else -value)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"the prior, results of the arm {name!r:.80}: {error}") from None
    return list(rows), seen


def _mirrored(prior: Any) -> dict[str, Any]:
    """A guess of what is better where it is lower."""
    turned = {"low": "high", "high": "low"}
    lone = {name: value if name in ("spread", "noise") else -value for name, value in prior.items()}
    return {turned.get(name, name): value for name, value in lone.items()}


def _prior(task: Task, guess: Guess, pilot: tuple[list[str], Statistics] | None, names: Sequence[str]) -> Prior:
    """The sampler of the arms."""
    if pilot is None:
        return Prior(task, guess)
    known, seen = pilot
    if not seen.scored.any():
        raise ValueError("the prior has no results")
    if strangers := sorted(set(known) - set(names)):
        text = f"{len(strangers)} arms of the prior are none of the study's, as {strangers[0]!r:.80}"
        if not set(known) & set(names):
            raise ValueError(f"{text}: its arms go by their names, {', '.join(names[:8])}")
        warnings.warn(f"{text}: they say where arms lie, and nothing of a single one", UserWarning, stacklevel=3)
    n, means = seen.scored.astype(np.float64), seen.mean[seen.scored > 0]
    low, high = range_of(task) or (-math.inf, math.inf)
    if means.shape[1] != task.D or not ((low <= means) & (means <= high)).all():
        raise ValueError(f"results of the prior must be {task.D} numbers from {low:g} to {high:g}, as the facts say")
    which = np.array([known.index(name) if name in known else -1 for name in names])
    return Prior(task, guess, Seen(n, seen.mean, seen.variance * n[:, None]), which)


def _played(
    study: Study,
    source: Prior,
    *,
    episodes: int,
    seed: int,
    at: int | None,
    late: Mapping[str, int],
    seconds: float,
    bar: Progress | None,
) -> Outcome:
    """Rehearsals of a study on arms of this source, cut at a number of pulls that grows until most have ended."""
    _, agent, task, seen = study
    before = 0 if seen is None else seen.spent
    most = before + MOST * task.K
    limit = min(task.payable or most, task.max_pulls or most)
    resumes = bool(getattr(agent, "resumes", True)) and task.observation != "history"
    cap, clock = min(limit, FIRST * task.K + TIMES * before), _Clock(bar, seconds)
    while True:
        how = {**task.parameters, **late, "budget": task.budget, "delta": task.delta}
        how |= {"max_pulls": cap, "cost": task.cost}
        forms = forms_of(agent)
        made: dict[str, Any] = {"instance": source, "shuffle_arms": False, "autoreset_mode": "Disabled", "copy": False}
        envs = _Resumed(episodes, problem=task.problem, **made, **how, **forms._asdict())
        envs.seen = seen if resumes else None
        checks = None if at is None else [at, 2 * most]
        settled = (checks, False, math.nan, None, False)
        plan = Plan(study.label, agent, forms, task.problem, how, episodes, envs.task, *settled)
        step = Lockstep(plan, envs, 0, episodes, seed, episodes, clock)
        if bar is not None:
            bar.label = study.label
        with contextlib.closing(envs), contextlib.suppress(StoppedError):
            step.run()
        columns = {name: x[:, -1].copy() for name, x in step.result.columns.items()}
        total, ended = columns["total_pulls"], ~columns["truncated"] | (columns["total_pulls"] >= limit)
        ended &= total > 0
        total[total == 0] = envs.total_pulls[total == 0]  # those that the clock has cut
        scores = (step.result.columns[name][:, 0] for name in ("correct", "score"))
        money = (envs._sim.money - (0 if seen is None else task.paid(seen.pulls))) * (task.cost is not None)
        by_itself = ended & (total < limit) & (task.cost is None or task.budget is None)
        found = Outcome(total - before, ended, by_itself, next(scores), next(scores), money, ~ended & clock.over)
        if before and not resumes:  # rounds begin again: what ends sooner than now has not happened
            keep = total > before
            found = Outcome(*(getattr(found, name)[keep] for name in Outcome.__dataclass_fields__))
        enough = not len(found.pulls) or found.ended.mean() >= ENOUGH or cap - before >= BEYOND * found.quantile(0.5)
        if enough or cap >= limit or clock.over:
            return found
        cap = min(TIMES * cap, limit)


def _advice(
    facts: Mapping[str, Any],
    label: str,
    found: Rehearsal,
    source: Prior,
    fewer: Callable[[Task], Prior] | None,
    tried: Callable[[Study, Prior], Outcome],
) -> str:
    """What would save measurements, and how many, in a sentence; by rehearsals of the same arms."""
    middle, task, noise = found.outcomes[label].quantile(0.5), source.task, source.noise()
    ideas = [(one.quantile(0.5), f"the agent {other}") for other, one in found.outcomes.items() if other != label]
    changes: dict[str, float] = {"delta": min(2.0 * (task.delta or 0.0), 0.5)}
    known = np.maximum(source.seen.n - 1, 0).sum()
    ranged = facts.get("range") is not None and facts.get("sigma") is None
    if ranged and not 0 < known < SURE and WIDER * noise < 0.5 * task.sigma:
        changes["sigma"] = WIDER * noise
    for name in {"tolerance", "epsilon"} & set(task.parameters):
        changes[name] = 2.0 * task.parameters[name] or 0.5 * noise
    for name, value in changes.items():
        value = float(f"{value:.2g}")
        study = course_of({**facts, name: value}, label).studies[0]
        why = " (if results of one arm surely vary by less)" if name == "sigma" else ""
        ideas.append((tried(study, source).quantile(0.5), f"{name}={value:g}{why}"))
    if fewer is not None and task.K >= 4:
        with contextlib.suppress(ValueError):  # there may be too few for the question
            study = course_of({**facts, "arms": task.K // 2}, label).studies[0]
            ideas.append((tried(study, fewer(study.task)).quantile(0.5), f"half the arms, {task.K // 2}"))
    better = [
        f"about {_about(pulls)} with {what}"
        for pulls, what in sorted(ideas)
        if pulls < math.inf and pulls <= SAVES * middle
    ]
    return f"what saves measurements: {', '.join(better[:MOST_IDEAS])}" if better else ""


def _about(pulls: float) -> str:
    """A number of measurements, to two digits."""
    return f"{float(f'{pulls:.2g}'):,.0f}"
