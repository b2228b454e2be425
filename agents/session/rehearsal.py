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
from bandit_envs.kernels import Floats, integer, number, root_number
from bandit_envs.problems import BLOCKS

from ..core.compile_time import CompileTime
from ..core.forms import forms_of
from ..core.optional import pandas
from ..evaluation.execution import StoppedError, Watch
from ..evaluation.lockstep import Lockstep
from ..evaluation.plan import Plan
from ..evaluation.plots import save, style
from ..evaluation.progress import Progress, compilation_noted, reported_in_lines, shown
from .course import Part, Statistics
from .design import controls_of
from .fold import State, count_of, fold, sample_of
from .guesses import Guess, Prior
from .log import Log
from .setup import Setup, suggested
from .strata import StrataRun
from .tables import history_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

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


class _Refusing(CompileTime):
    """A context in which nothing is compiled."""

    def begins(self, name: str) -> None:
        raise CompilesError(name)


class _Clock(Watch):
    """Ends a run so many seconds after its first look: what is compiled before does not count."""

    def __init__(self, seconds: float = 60.0, bar: Progress | None = None) -> None:
        super().__init__(bar)
        self.seconds, self.until = seconds, math.inf

    def look(self) -> None:
        now = time.monotonic()
        self.until = min(self.until, now + self.seconds)
        self.over = now > self.until
        super().look()


class _Resumed(PureExplorationVectorEnv):
    """Episodes that go on from what a session has seen."""

    seen: Statistics | None = None

    def _begin(self, rows: NDArray[Any], *how: Any) -> None:
        super()._begin(rows, *how)
        if self.seen is not None:
            sim, seen = self._sim.arrays, self.seen
            for name in ("pulls", "excess", "total", "mean", "variance", *(["moments"] if sim.moments.size else [])):
                getattr(sim, name).reshape(self.num_envs, -1)[rows] = getattr(seen, name).reshape(-1)
            sim.spent[rows], sim.money[rows] = seen.spent, self.task.paid(seen.pulls)
            sim.remaining[rows] = self.task.left(seen.pulls)


class Study(NamedTuple):
    """An agent, the task that it was made for, what it has seen, and the setup and names of the arms."""

    label: str
    agent: Any
    task: Task
    seen: Statistics
    setup: Setup
    names: list[str]
    run: Any = None  # with strata, the course that goes on


class Outcome(NamedTuple):
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
        risk = len(self.pulls) - np.searchsorted(np.sort(self.pulls), at)
        left: Any = np.cumprod(1.0 - counts / risk)
        error = left * np.sqrt(np.cumsum(counts / (risk * np.maximum(risk - counts, 0.5))))
        return at, 1.0 - left, error

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
            at, share, error = (np.concatenate([[0], x, x[-1:]]) for x in one.curve())
            at[-1] = one.pulls.max() * BESIDE  # so that the last step is seen
            look = style(i) | {"marker": ""}
            axes.step(at, share, where="post", label=label, **look)
            low, high = np.clip([share - 1.96 * error, share + 1.96 * error], 0.0, 1.0)
            axes.fill_between(at, low, high, step="post", alpha=0.15, linewidth=0, color=look["color"])
        what = "more measurements" if self.spent else "measurements"
        axes.set(xlabel=what, ylabel="share of rehearsals that ended", ylim=(0, 1))
        axes.legend(frameon=False)
        if path is not None:
            save(figure, path)
        return figure

    def __str__(self) -> str:
        return "\n".join(filter(None, [f"{self.sentence()}; believed: {self.believed}", self.advice]))


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
        seconds: after which, or after 20 medians, the rehearsals of an agent are cut.
        advise: look for what would save measurements, by further rehearsals.
        progress: as for `evaluate`. compiles: False: a `CompilesError` where a kernel is in no cache.

    Raises:
        ValueError: for bad facts, a prior that does not fit them, and a study that would never end.

    Warns:
        UserWarning: where nothing is known but the facts, so that the prior is a guess. Of a design, which is not
            played: which arm may be on which plate, and who may measure it.
    """
    if hasattr(facts, "forecast"):
        how: dict[str, Any] = {"batch": batch, "workers": workers, "prior": prior, "at": at, "hours": hours}
        how |= {"episodes": episodes, "seed": seed, "seconds": seconds, "progress": progress, "compiles": compiles}
        return facts.forecast(agents, **how)  # type: ignore[no-any-return]
    ready = isinstance(facts, list) and facts and isinstance(facts[0], Study)  # those of a session
    studies: list[Study] = facts if ready else studies_of(facts, agents)
    first, task, wishes = studies[0], studies[0].task, studies[0].setup.wishes
    kept = 0 if first.run is not None else sum(controls_of(wishes).values())  # within plates they are measurements
    wells = max(wishes.get("plate", 1) - kept, 1)
    batch = integer("batch", wells if batch is None else batch, 1, 10**6)
    workers, hours = integer("workers", workers, 1, 10**4), None if hours is None else number("hours", hours, 0)
    seconds, episodes = number("seconds", seconds, 0, above=True), integer("episodes", episodes, 2, 10**6)
    at, late = None if at is None else integer("at", at, 1, 10**9), {"batch": batch, "delay": workers - 1}
    played = functools.partial(_played, seed=root_number(seed), at=at, late=late if max(batch, workers) > 1 else {})
    if at is not None and task.cost is not None:
        raise ValueError(f"at= counts measurements, and with cost a budget is money: leave at={at} out")
    if task.items:
        one = "block" if task.distribution == BLOCKS else "item"
        text = f"a study with {one}s cannot be rehearsed: what it takes depends on how alike results of one {one} are"
        raise ValueError(f"{text}, of which no prior speaks")
    if first.run is not None and "plate" not in wishes and batch == 1:
        raise ValueError("a study within days needs batch=, how many measurements a day has in all (--batch)")
    source, believed = _believed(first, prior)
    if isinstance(facts, Mapping) and {"per_plate", "raters", "repeats"} & set(wishes):
        text = "rehearsals ask for any arm at any time: per_plate, raters and repeats may take more"
        warnings.warn(text, UserWarning, stacklevel=2)
    bar = Progress(episodes * len(studies), 0, False, progress)
    quiet = contextlib.nullcontext() if compiles else _Refusing()
    with compilation_noted(compiles and shown(progress)), reported_in_lines(progress), contextlib.closing(bar), quiet:
        watched = bar if bar.show else None
        outcomes = {study.label: played(study, source, episodes, _Clock(seconds, watched)) for study in studies}
        found = Rehearsal(outcomes, believed, "", first.seen.spent, batch, workers, hours)
        if advise and not found.spent and isinstance(facts, Mapping) and task.delta is not None:
            few = max(episodes // 4, FEWEST)
            advice = _advice(facts, found, source, lambda study, arms: played(study, arms, few, _Clock(seconds / 10)))
            found = replace(found, advice=advice)
    return found


def studies_of(facts: object, agents: object = None) -> list[Study]:
    """The studies of facts, or of the state of a session, one for each agent, all of which end."""
    state = facts if isinstance(facts, State) else None
    given: Any = agents if isinstance(agents, Sequence) and not isinstance(agents, str) else [agents]
    if state is None and agents in (None, []):
        setup = Setup.of("uniform", facts, None, 0)
        other = "uniform" if setup.task.delta is None else f"uniform{CERTIFIED}"
        given = dict.fromkeys([suggested(setup.task, "blocks" in setup.wishes), other])
    elif state is not None and state.run.over:
        raise ValueError("the session is over: there is nothing to forecast")
    studies = []
    for one in given or [None]:
        now = state or State(Setup.of(one, facts, None, 0))
        label, agent, task = now.setup.agent, now.run.agent, now.run.task
        if state is not None and one is not None:
            setup = Setup.of(one, state.setup.task, state.setup.names, state.setup.public_seed)
            label, (agent, task, _) = setup.agent, setup.made_for(now.place, now.statistics.pulls, now.run.share.ratio)
        label = label or ("the agent" if one is None else str(one))
        stops = task.delta is not None and (getattr(agent, "stops", False) or now.strata is not None)
        if not stops and task.budget is None and task.max_pulls is None:
            raise ValueError(f'{label} may never stop by itself: give a budget, or a delta and "{label}{CERTIFIED}"')
        names = [now.names[arm] for arm in now.active]
        run = now.run if isinstance(now.run, StrataRun) else None
        studies.append(Study(label, agent, task, now.seen if run is None else run.shown, now.setup, names, run))
    return studies


def _believed(study: Study, prior: Any) -> tuple[Prior, str]:
    """The sampler of the arms of a study, and what is believed of them, in words."""
    setup, names = study.setup, study.names
    if isinstance(prior, Mapping) and not prior:
        raise ValueError("a prior is a guess, or results of arms, got {}")
    guessed = isinstance(prior, Mapping) and not any(isinstance(one, (Sequence, np.ndarray)) for one in prior.values())
    noisy = guessed and "noise" in prior or not guessed and prior is not None
    if setup.wishes.get("common") and not study.seen.spent and not noisy:
        raise ValueError("of sigma='common' no forecast is made before the first results: give a prior with its noise")
    own = Guess.of(setup.own_task, prior if guessed else {})
    guess, words = replace(own, centre=setup.turned(own.centre)), own.words(study.task)
    known, seen = (names, study.seen) if guessed or prior is None else _pilot(prior, setup)
    if seen.spent == 0 and known is names:
        if not guessed:
            text = f"the forecast rests on a guess: {words}. Give a prior, such as the results of a pilot study"
            words = f"{GUESSED}{words}"
            warnings.warn(text, UserWarning, stacklevel=3)
        return Prior(study.task, guess), words
    if not seen.scored.any():
        raise ValueError("the prior has no results")
    if strangers := sorted(set(known) - set(names)):
        text = f"{len(strangers)} arms of the prior are none of the study's, as {strangers[0]!r:.80}"
        if not set(known) & set(names):
            raise ValueError(f"{text}: its arms go by their names, {', '.join(names[:8])}")
        warnings.warn(f"{text}: they say where arms lie, and nothing of a single one", UserWarning, stacklevel=3)
    which = np.array([known.index(name) if name in known else -1 for name in names])
    words = f"what {int(seen.scored.sum())} results of {len(known)} arms leave open"
    return Prior(study.task, guess, seen, which), words


def _pilot(prior: Any, setup: Setup) -> tuple[list[str], Statistics]:
    """The names of the arms of a pilot, and what it has seen of them."""
    if isinstance(prior, (str, Path)) and Path(prior).suffix.lower() not in TABLES:
        if "://" not in str(prior) and not Path(prior).exists():
            raise FileNotFoundError(f"there is no file {prior}, neither a session nor a table of results")
        with contextlib.closing(Log(prior)) as log, log.reading() as connection:
            if (facts := log.facts()) is None:
                raise FileNotFoundError(f"there is no session {prior}")
            state = fold(Setup.from_facts(facts), log.events(connection))
        prior = history_table(state, list(state.events.values()))
    elif hasattr(prior, "history"):
        prior = prior.history()
    if isinstance(prior, Mapping):
        rows = {str(name): results for name, results in prior.items()}
    else:
        table = measurements(prior)
        rows = {name: [one.several or one.value for one in table.rows if one.arm == name] for name in table.arms}
    seen, task = Statistics.of(setup.task, len(rows)), setup.own_task
    for k, (name, results) in enumerate(rows.items()):
        try:
            for one in results:
                if isinstance(one, Count):
                    seen.add(k, Part.of(count_of(task, one), seen.ends[0], setup.turned))
                else:
                    value = sample_of(task, one[0] if isinstance(one, tuple) and len(one) == 1 else one)
                    seen.add(k, np.atleast_1d(setup.turned(np.array(value))))
        except (TypeError, ValueError) as error:
            raise ValueError(f"the prior, results of the arm {name!r:.80}: {error}") from None
    return list(rows), seen


def _played(
    study: Study, source: Any, episodes: int, clock: _Clock, seed: int = 0, at: int | None = None, late: Any = ()
) -> Outcome:
    """Rehearsals of a study on arms of this source, cut at a number of pulls that grows until most have ended."""
    if study.run is not None:
        return _in_strata(study.run, source, episodes, clock, seed, dict(late).get("batch", 1))
    label, agent, task, seen, *_ = study
    before, paid = seen.spent, task.paid(seen.pulls)
    most = before + MOST * task.K
    limit = min(task.payable or most, task.max_pulls or most)
    resumes = bool(getattr(agent, "resumes", True)) and task.observation != "history"
    cap, forms = min(limit, FIRST * task.K + TIMES * before), forms_of(agent)
    made = {"instance": source, "shuffle_arms": False, "autoreset_mode": "Disabled", "copy": False, **forms._asdict()}
    settled = None if at is None else [at, 2 * most], False, math.nan, None, False
    if clock.bar is not None:
        clock.bar.label = label
    while True:
        ends = {"budget": task.budget, "delta": task.delta, "max_pulls": cap, "cost": task.cost}
        how: dict[str, Any] = {**task.parameters, **dict(late), **ends}
        envs: Any = _Resumed(episodes, problem=task.problem, **made, **how)
        envs.seen = seen if before and resumes else None
        plan = Plan(label, agent, forms, task.problem, how, episodes, envs.task, *settled)
        step = Lockstep(plan, envs, 0, episodes, seed, episodes, clock)
        with contextlib.closing(envs), contextlib.suppress(StoppedError):
            step.run()
        columns = step.result.columns
        last, truncated = columns["total_pulls"][:, -1], columns["truncated"][:, -1]
        total = np.where(last > 0, last, envs.total_pulls)  # the clock has cut those without
        ended = (last > 0) & (~truncated | (last >= limit))
        by_itself = ended & (total < limit) & (task.cost is None or task.budget is None)
        scores = columns["correct"][:, 0], columns["score"][:, 0]
        money = (envs._sim.money - paid) * (task.cost is not None)
        found = Outcome(total - before, ended, by_itself, *scores, money, ~ended & clock.over)
        if before and not resumes:  # rounds begin again: what ends sooner than now has not happened
            found = Outcome._make(x[total > before] for x in found)
        enough = not len(found.pulls) or found.ended.mean() >= ENOUGH or cap - before >= BEYOND * found.quantile(0.5)
        if enough or cap >= limit or clock.over:
            return found
        cap = min(TIMES * cap, limit)


def _in_strata(run: StrataRun, source: Any, episodes: int, clock: _Clock, seed: int, batch: int) -> Outcome:
    """Rehearsals of a session with strata: plates of the design or, of days, so many measurements each."""
    rng, rows = np.random.default_rng(seed), list[tuple[Any, ...]]()
    means, noises = source.both(rng, episodes, 0)
    with contextlib.suppress(StoppedError):
        for mean, noise in zip(source.low + source.width * means, source.width * noises, strict=True):
            sd = math.sqrt(float(np.mean(noise**2)))  # one of all arms
            end, by_itself = run.play(mean, sd, batch, rng, clock.look)
            answer = end.plug_in()
            right = bool(run.problem.is_correct(answer[None], mean[None])[0])
            score = float(run.problem.score(answer[None], mean[None])[0])
            rows.append(
                (end.seen.spent - run.seen.spent, by_itself or end.seen.spent >= run.most, by_itself, right, score)
            )
    if not rows:
        raise ValueError("no rehearsal has ended in time: give more seconds")
    columns: Any = [np.array(one) for one in zip(*rows, strict=True)]
    columns += [np.zeros(len(rows)), np.full(len(rows), len(rows) < episodes)]
    return Outcome._make(columns)


def _advice(facts: Mapping[str, Any], found: Rehearsal, source: Prior, tried: Callable[..., Outcome]) -> str:
    """What would save measurements, and how many, in a sentence; by rehearsals of the same arms."""
    (label, middle), *others = ((label, one.quantile(0.5)) for label, one in found.outcomes.items())
    ideas, task, noise = [(pulls, f"the agent {other}") for other, pulls in others], source.task, source.noise()
    changes: dict[str, float] = {"delta": min(2.0 * (task.delta or 0.0), 0.5)}
    ranged, known = facts.get("range") is not None and facts.get("sigma") is None, np.maximum(source.n - 1, 0).sum()
    if ranged and not 0 < known < SURE and WIDER * noise < 0.5 * task.sigma:
        changes["sigma"] = WIDER * noise
    for name in {"tolerance", "epsilon"} & set(task.parameters):
        changes[name] = 2.0 * task.parameters[name] or 0.5 * noise
    changes = {name: float(f"{value:.2g}") for name, value in changes.items()}
    if not source.n.any() and task.K >= 4:
        changes["arms"] = task.K // 2
    for name, value in changes.items():
        why = " (if results of one arm surely vary by less)" if name == "sigma" else ""
        what = f"half the arms, {value}" if name == "arms" else f"{name}={value:g}{why}"
        with contextlib.suppress(ValueError) if name == "arms" else contextlib.nullcontext():  # too few to be asked for
            (study,) = studies_of({**facts, name: value}, label)
            arms = Prior(study.task, source.guess) if name == "arms" else source
            ideas.append((tried(study, arms).quantile(0.5), what))
    better = [f"about {_about(n)} with {what}" for n, what in sorted(ideas) if n < math.inf and n <= SAVES * middle]
    return f"what saves measurements: {', '.join(better[:MOST_IDEAS])}" if better else ""


def _about(pulls: float) -> str:
    """A number of measurements, to two digits."""
    return f"{float(f'{pulls:.2g}'):,.0f}"
