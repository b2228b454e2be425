"""The agent's course through the results: what it has seen, its state, and the measurement that it wants next.

A `Run` depends on the results alone, in the order in which they came. After each of them, or after all of a table, the
agent decides, so that it may stop after any result, asked or not. With one question and one result at a time it makes
the decisions of a simulated episode, by the same calls of `predict`.

Results may also come for other arms than the one that the agent wants. There are two kinds of agents:

* One that `resumes` decides by all results there are. After a result that it has not asked for, its state is built
  again from the statistics.
* One that goes by rounds has a state that statistics do not determine. A result that it has not asked for is kept until
  it wants that arm. Samples do not depend on when they are taken, so it decides as in an episode without such results.

An agent that reads histories sees the results in the order in which it has taken them in.

Results that are still to come are imagined: each as the arm's present mean, by the same rules as in an environment with
a delay, see `core.waiting`. Once several questions have waited at the same time, an agent that resumes asks by the
statistics alone.
"""

from __future__ import annotations

import copy
import functools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bandit_envs import History, Task
from bandit_envs.envs import FeatureTable
from bandit_envs.instances import Count, Shared, ends_of
from bandit_envs.kernels import PULLS_LIMIT, jit
from bandit_envs.problems import BELIEFS
from bandit_envs.simulation import enter, join
from bandit_envs.stopping import Certifier

from ..core.agent import Agent, Bools, Floats, seen_means, shown_to
from ..core.certified import own_certifier
from ..core.forms import forms_of
from ..core.waiting import guesses, imagined, plan_over
from .promise import Share

PATIENCE = 100  # results that are imagined one after another; of an agent that resumes, the others all at once
MOST_KNOWN = 1000  # pulls in a row of arms that are known
UNDECIDED = -1
UNASKED = 0.05  # delta of what is said, where a session has none


@jit
def _add(seen, arm, sample):
    """Add a sample (D,) of an arm to `Statistics`."""
    n = float(seen.pulls[arm] - seen.failed[arm])
    if seen.pulls[arm] < seen.scores.shape[1]:
        for d in range(len(sample)):
            seen.scores[arm, seen.pulls[arm], d] = sample[d]
    if seen.pulls[arm] < seen.off.shape[1]:
        seen.less[arm, seen.pulls[arm], 0] = sample[0] - seen.off[arm, seen.pulls[arm]]
    if math.isnan(sample[0]):
        seen.failed[arm] += 1
    for d in range(len(sample) if sample[0] == sample[0] else 0):
        known = seen.excess[arm], seen.total[arm], seen.mean[arm], seen.variance[arm], seen.moments[arm].reshape(-1)
        enter(n, seen.ends, sample[d], d, known)
        seen.total[arm, d] = seen.excess[arm, d] + seen.ends[0] * (n + 1.0)
    seen.pulls[arm] += 1


class Part(NamedTuple):
    """The n results of a count: the sum of what they exceed the low end by, and their moments, NaN: unknown."""

    n: int
    excess: float
    moments: tuple[float, float, float, float]  # the mean above the low end, variance, third and fourth

    @classmethod
    def of(cls, count: Count, low: float, turned: Callable[[float], float]) -> Part | Floats:
        """A count, whose values are `turned`; a single result is one as any other, (1,)."""
        n, ones, mean, sd = count
        if n == 1:
            return np.array([turned(float(ones if mean is None else mean))])
        if mean is None:
            ones = float(n - ones if turned(1.0) < turned(0.0) else ones)
            x, v = ones / n, ones / n * (1.0 - ones / n)
            return cls(n, ones, (x, v, v * (1.0 - 2.0 * x), v * (1.0 - 3.0 * v)))
        x = turned(mean) - low
        return cls(n, n * x, (x, sd**2 * (n - 1) / n, math.nan, math.nan))


Result = tuple[int, Any]  # an arm, and what was measured, (D,), or a `Part`


class Statistics(NamedTuple):
    """What K arms of D dimensions have shown, as an environment keeps it."""

    pulls: NDArray[np.int64]  # (K,)
    total: Floats  # (K, D) each
    mean: Floats
    variance: Floats
    moments: Floats  # (K, D, 2), third and fourth
    scores: Floats  # (K, N, D), of a table, in the order of its rows, NaN where it failed; (K, 0, D) of others
    excess: Floats  # (K, D), sums of what samples exceed the low end of their range by
    failed: NDArray[np.int64]  # (K,), of the pulls those without a score
    off: Floats  # (K, N), of a table with a judge, what its scores take off those that agents see; (K, 0) of others
    less: Floats  # (K, N, 1), the scores less these
    ends: tuple[float, float]  # see `ends_of`

    @classmethod
    def of(cls, task: Task, K: int | None = None, items: int | None = None) -> Statistics:
        """Those of K arms, by default all, that have not been pulled; with scores where items are given."""
        K = task.K if K is None else K
        total, mean, variance, excess = np.zeros((4, K, task.D))
        (pulls, failed), scores = np.zeros((2, K), np.int64), np.zeros((K, items or 0, task.D))
        moments, less = np.zeros((K, task.D, 2)), np.zeros((K, 0, 1))
        return cls(pulls, total, mean, variance, moments, scores, excess, failed, less[..., 0], less, ends_of(task))

    @property
    def spent(self) -> int:
        """Pulls of all arms."""
        return int(self.pulls.sum())

    @property
    def scored(self) -> NDArray[np.int64]:
        """Pulls of each arm that did not fail, (K,)."""
        return self.pulls - self.failed

    def add(self, arm: int, sample: Floats | Part) -> None:
        """Add a sample, (D,), of an arm, or several at once; NaN of one that failed, which counts as a pull alone."""
        if isinstance(sample, Part):
            known = self.excess[arm], self.total[arm], self.mean[arm], self.variance[arm], self.moments[arm, 0]
            n, squares = float(self.scored[arm]), sample.n * sample.moments[1]
            join(n, self.ends, float(sample.n), sample.excess, squares, sample.moments, 0, known)
            self.pulls[arm] += sample.n
            return
        _add(self, arm, sample)
        if self.pulls[arm] >= self.scores.shape[1] > 0:  # it is known, and ties are to be recognised
            scored = self.scores[arm][~np.isnan(self.scores[arm, :, 0])].T
            self.mean[arm] = [Shared.mean_of(one, self.ends) if len(one) else 0.0 for one in scored]

    def at(self, arms: object) -> Statistics:
        """Those of some arms, a copy."""
        return self._replace(**{name: getattr(self, name)[arms].copy() for name in self._fields[:-1]})

    def with_one_more(self) -> Statistics:
        """These, and an arm that has not been pulled."""
        arrays: tuple[Any, ...] = self[:-1]
        return Statistics._make([*(np.concatenate([x, np.zeros_like(x[:1])]) for x in arrays), self.ends])

    @property
    def corrected(self) -> Any:
        """The scores, (K, N, D), less what a judge's take off; of rows that an arm has not shown 0."""
        return self.less if self.less.size else self.scores

    def observation(self, remaining: int, public_seed: int) -> dict[str, NDArray[Any]]:
        """The statistics of a batch of one episode, as an environment shows them: live views."""
        shown = {"remaining": np.array([[remaining]], np.int64), "public_seed": np.array([[public_seed]], np.int64)}
        for name in (*self._fields[:4], "scores" if self.scores.size else "moments"):
            x = self.corrected if name == "scores" else getattr(self, name)
            single = name != "pulls" and self.mean.shape[1] == 1
            shown[name] = (x if not single else x[..., 0] if name == "scores" else x[:, 0])[None]
        return shown

    def means(self) -> Floats:
        """The means of a batch of one episode, (1, K) or (1, K, D), NaN for arms never scored."""
        means = np.where(self.scored[:, None] > 0, self.mean, np.nan)
        return (means[:, 0] if means.shape[1] == 1 else means)[None]


class Run:
    """The course of an agent through a task; with `actions="arm"` it only pulls and stops.

    Of a table, a result comes with the place of its row in the order of the session. The agent sees the rows of an arm
    in that order, each once the earlier ones are there.

    Attributes:
        share: the agent's part of the session's delta. changed: whether arms have come or gone.
        seen: what the agent's decisions rest on. told: how many results have come.
        course: the arms and results in `seen`, in order, of an agent that reads histories; None of any other.
        ahead: of a table, results that wait for earlier rows, {arm: {place: sample}}.
        bank: of an agent that does not resume, all results of each arm in order; it has seen as many as it has wanted.
        arm: the one that it wants next, `UNDECIDED` before it has been asked. left: how often it wants it.
        fresh: how many results had come when its state was last given up, to be built again from the statistics.
        skips: how many results it takes in before it is asked for the first time, see `State.mark`.
        together: whether several questions have waited at the same time.
        over: whether it has stopped, or the budget is spent; answer: its final answer then, (K,), and final: the
            statistics that it rests on.
    """

    def __init__(
        self, agent: Any, task: Task, public_seed: int, share: Share, delta: float | None, changed: bool
    ) -> None:
        self.agent, self.task, self.public_seed = agent, task, public_seed
        self.share, self.delta, self.changed = share, delta, changed
        self.problem, self.ranked = task.make_problem(), forms_of(agent).ranked
        self._lookahead = task.lookahead() if self.ranked or task.observation in BELIEFS else None
        self.resumes = bool(getattr(agent, "resumes", True))
        self.seen = Statistics.of(task, items=task.items)
        self.ahead: dict[int, dict[int, Floats]] = {}
        self.course: list[Result] | None = [] if task.observation == "history" else None
        self.bank: dict[int, list[Floats]] = {}
        self.told = self.fresh = self.skips = 0
        self.state: Any = None
        self.arm, self.left, self.over, self.together = UNDECIDED, 0, False, False
        self.answer: Bools | None = None
        self.final: Statistics | None = None

    @property
    def level(self) -> float:
        """Delta, or what is said without one."""
        return self.delta or UNASKED

    @property
    def most(self) -> int:
        """Pulls after which the episode is over at the latest."""
        return min(self.task.payable or PULLS_LIMIT, self.task.max_pulls or PULLS_LIMIT)

    def copy(self) -> Run:
        """A run that moves on by itself, and gets no results."""
        twin = copy.copy(self)
        twin.seen, twin.state = self.seen.at(slice(None)), copy.deepcopy(self.state)
        twin.course = None if self.course is None else self.course.copy()
        return twin

    def begin(self, results: Sequence[Result]) -> None:
        """Begin with results that are there already; an agent that resumes decides after the last one."""
        if self.resumes:
            self._see_at_once(results)
            return
        for result in results:
            self.tell([result])

    def tell(self, results: Sequence[Result]) -> None:
        """Take in results, and decide after the last one; once it is over, results change nothing."""
        self.decide()
        if self.over:
            return
        if self.task.items:
            before, results = len(results), self._in_order(results)
            self.told += before - len(results)
        if self.resumes and (len(results) > 1 or any(isinstance(sample, Part) for _, sample in results)):
            self._see_at_once(results)
            return
        self.told += len(results)
        for arm, sample in results:
            if self.resumes:  # one at most
                self._see(arm, sample)
            else:
                self.bank.setdefault(arm, []).append(sample)
        self._see_kept()
        self._look_at_the_end()
        self.decide()

    def decide(self) -> None:
        """Have the agent say which arm it wants, if it has not and there is budget for it.

        A pull of an arm whose rows are all known shows its mean; an agent that makes only such pulls is over.
        """
        for _ in range(MOST_KNOWN):
            self._decide()
            if self.over or self.arm == UNDECIDED or self.seen.pulls[self.arm] < (self.task.items or PULLS_LIMIT):
                return
            self.told += 1
            self._see(self.arm, np.atleast_1d(self.seen.means()[0, self.arm]))
            self._look_at_the_end()
        if not self.over:
            self._end(self._recommended(self.all_seen()))

    def _decide(self) -> None:
        decided = self.told < self.skips or self.arm != UNDECIDED or self.over
        if decided or self.seen.spent >= self.most or self._remaining() == 0:
            return
        arm, times, answer = self._ask_agent()
        if arm == self.task.stop:
            self._end(answer)
        elif not self.task.affords(self.seen.pulls)[arm]:  # in an environment this pull ends the budget
            self._end(self._recommended(self.all_seen()))
        else:
            self.arm, self.left = arm, times

    def wishes(self, pending: Sequence[int]) -> Iterator[int]:
        """The arms to pull next, one after another, while results of these arms are still to come."""
        asked, by_statistics = list(pending), self.resumes and not self.task.items  # alone, while results are to come
        run = None if by_statistics and (asked or self.together) else self.imagined(pending)
        while (arm := self._wish(asked) if run is None else UNDECIDED if run.over else run.arm) != UNDECIDED:
            yield arm
            asked.append(arm)
            run = None if by_statistics or run is None else run._imagine([arm])

    def wish(self, pending: Sequence[int]) -> int:
        """The first of `wishes`; UNDECIDED where the agent would stop, or waits."""
        return next(self.wishes(pending), UNDECIDED)

    def _wish(self, pending: Sequence[int]) -> int:
        """What an agent that resumes pulls, asked without its state; UNDECIDED where it would stop."""
        pulls = self.seen.pulls + np.bincount(pending, minlength=self.task.K)
        stopped = UNDECIDED if pending else self.arm
        if self.over or pulls.sum() >= self.most or self.task.left(pulls) == 0:
            return stopped
        dream = copy.copy(self)
        dream.state = None
        arm, _, _ = dream._ask_agent(pending)
        return stopped if arm == self.task.stop or not self.task.affords(pulls)[arm] else arm

    def _statistics(self) -> dict[str, NDArray[Any]]:
        """What has been seen, as a batch of one episode."""
        return self.seen.observation(self._remaining(), self.public_seed)

    def imagined(self, pending: Iterable[int]) -> Run:
        """A copy in which results of these arms have come, each as the arm's present mean, and which has decided.

        Of an agent that goes by rounds it ends where the next plan depends on them.
        """
        return self.copy()._imagine(pending)

    def _imagine(self, pending: Iterable[int]) -> Run:
        """Let it be so in this one."""
        rest, steps = Counter(pending), 0
        self.decide()
        while not self.over and rest[self.arm] > 0 and (steps < PATIENCE or not self.resumes):
            rest[self.arm] -= 1
            steps += 1
            self.told += 1
            self._see(self.arm, self._guess(self.arm))
            if self.arm == UNDECIDED and not self.resumes and plan_over(self.agent, self.state, self._statistics())[0]:
                break  # its next decision depends on what it has seen last
            self.decide()
            self._see_kept()
            self._look_at_the_end()
        if self.resumes and not self.over and rest.total():
            self._see_at_once((arm, self._guess(arm)) for arm in rest.elements())
        return self

    def present_answer(self, all_seen: Statistics) -> Bools:
        """The final answer once it is over, else the answer as of now, (K,)."""
        run = self
        if run.state is None and not run.over:  # an agent's own answer may depend on its state
            run = self.copy()
            run.decide()
        return run._recommended(all_seen) if run.answer is None else run.answer

    def _plug_in(self, seen: Statistics) -> Bools:
        return np.array(self.problem.plug_in(seen.means())[0], np.bool_)

    def _see(self, arm: int, sample: Floats) -> None:
        """Let the agent see a result: it is to decide again once it has all that it wanted, or something else."""
        self._take_in(arm, sample)
        self.left -= 1
        if arm != self.arm:
            self.state, self.fresh = None, self.told
        if arm != self.arm or self.left == 0:
            self.arm = UNDECIDED

    def rows(self, arm: int) -> int:
        """How many rows of a table an arm has without a gap."""
        return int(self.seen.pulls[arm]) if self.resumes else len(self.bank.get(arm, ()))

    def counted(self) -> Bools:
        """Of blocks, which arms the agent's certificate still counts, (K,)."""
        self.decide()
        return np.ones(self.task.K, np.bool_) if self.state is None else self.agent.counted(self.state)[0]

    def _in_order(self, results: Sequence[Result]) -> list[Result]:
        """Of a table, the results whose earlier rows are there, these and those that have waited for them."""
        for arm, sample in results:
            self.ahead.setdefault(arm, {})[int(sample[-1])] = sample[:-1]
        found = list[Result]()
        for arm in dict.fromkeys(arm for arm, _ in results):
            rows, n = self.ahead[arm], self.rows(arm)
            while n in rows:
                found.append((arm, rows.pop(n)))
                n += 1
        return found

    def _see_at_once(self, results: Iterable[Result]) -> None:
        """Let an agent that resumes see results of any arms: its state is built again after the last one."""
        for arm, sample in results:
            self.told += sample.n if isinstance(sample, Part) else 1
            self._take_in(arm, sample)
        self.state, self.arm, self.fresh = None, UNDECIDED, self.told
        self._look_at_the_end()
        self.decide()

    def _take_in(self, arm: int, sample: Floats) -> None:
        """Add a result to what has been seen."""
        self.seen.add(arm, sample)
        if self.course is not None and not np.isnan(sample[0]):
            self.course.append((arm, sample))

    def _see_kept(self) -> None:
        """Let the agent see the results of the arms that it wants, as long as there are any."""
        while not self.over and self.arm != UNDECIDED:
            arm, kept = self.arm, self.bank.get(self.arm, ())
            if self.seen.pulls[arm] >= len(kept):
                return
            self._see(arm, kept[self.seen.pulls[arm]])
            self.decide()

    def _look_at_the_end(self) -> None:
        """End the run if the budget is spent, or `max_pulls` reached."""
        if self.over or self.told < self.most and (self.task.cost is None or self.task.left(self.all_seen().pulls)):
            return
        if isinstance(self.agent, Agent) and self.told == self.seen.spent and self._remaining() == 0:
            self._end(self._ask_agent()[2])
        else:  # results in the bank count for the answer, though the agent has not come to them
            self._end(self._recommended(self.all_seen()))

    def _end(self, answer: Bools | None) -> None:
        """End the run with an answer, by default the plug-in answer."""
        self.over, self.arm, self.final = True, UNDECIDED, self.all_seen()
        self.answer = self._plug_in(self.seen) if answer is None else answer

    @functools.cached_property
    def certifier(self) -> Certifier | None:
        """The certifier of an answer's level: the agent's own, else the task's; None without one."""
        return self.task.level_certifier(own_certifier(self.agent))

    @functools.cached_property
    def wary(self) -> bool:
        """Whether results can refute what the agent counts on: a scale in doubt, Gaussian samples of any variance."""
        none = Statistics.of(self.task)
        in_doubt = self.certifier is not None and self.certifier.trial(none.pulls, none.variance) is not None
        return in_doubt or getattr(self.agent, "distribution", None) == "student"

    @property
    def takes_gaps(self) -> bool:
        """Whether something is promised of a table in which cells have failed; see `bandit_envs.stopping.paired`."""
        return self.certifier is not None and "all-good" not in self.certifier.kind

    def level_of(self, answer: Bools, seen: Statistics) -> float | None:
        """The least delta of the session at which an answer, (K,), is certified, in [0, 1]; see `Session.certificate`.

        After a change of arms it is None in two cases: without a delta and without a part for later arms it is unknown
        what may have been spent before; and an agent that goes by rounds looks at old results in an order that the
        person who changed the arms could know.
        """
        unknown = self.changed and (not self.resumes or self.share.owed and self.delta is None)
        if unknown or self.certifier is None or seen.failed.any() and not self.takes_gaps:
            return None
        K, D = self.task.K, () if self.task.D == 1 else (self.task.D,)
        moments = seen.corrected.reshape(K, -1, *D) if self.task.items else seen.moments
        shown = seen.pulls[None], seen.mean.reshape(1, K, *D), seen.variance.reshape(1, K, *D)
        level = float(self.certifier.levels(*shown, answer[None].astype(np.int8), moments[None])[0])
        if level >= self.share.ratio:
            return 1.0
        return min(level / self.share.ratio + self.share.owed * (self.delta or 0.0), 1.0)

    def _remaining(self) -> int:
        """Of the budget, -1 if there is none."""
        return self.task.left(self.seen.pulls)

    def all_seen(self) -> Statistics:
        """What has been seen, and what is in the bank."""
        seen = self.seen.at(slice(None))
        for arm, sample in self._unseen():
            seen.add(arm, sample)
        return seen

    def _unseen(self) -> list[Result]:
        """What is in the bank and has not been seen."""
        return [(arm, sample) for arm, kept in self.bank.items() for sample in kept[self.seen.pulls[arm] :]]

    def _history(self, results: Iterable[Result]) -> dict[str, NDArray[np.generic]]:
        """Results as a batch of one episode, as an environment shows them."""
        history = History(self.task, 1)
        for arm, sample in results:
            history.append(arm, sample)
        statistics = self._statistics()
        return history.shown() | {name: statistics[name] for name in ("remaining", "public_seed")}

    def _ask_agent(self, pending: Sequence[int] = ()) -> tuple[int, int, Bools | None]:
        """The next arm, how often to pull it, and the answer that goes with it, if the agent gives one."""
        statistics, means = self._statistics(), self.seen.means()
        course: Any = None if self.course is None else self._history(self.course)
        if pending:
            counts = np.bincount(pending, minlength=self.task.K)[None]
            statistics, course = imagined(self.task, statistics, counts), course and imagined(self.task, course, counts)
            statistics["remaining"] = np.array([[self.task.left(statistics["pulls"][0])]])
            means = seen_means(statistics)
        observation: Any = statistics
        if self.task.observation == "features":
            pulls, variance, left = (statistics[name] for name in ("pulls", "variance", "remaining"))
            observation = FeatureTable(self.task, self.problem, 1).fill(pulls, means, variance, left)
        elif course is not None:
            observation = course | {"remaining": statistics["remaining"]}
        look, order = self._lookahead, np.empty((0, 0), np.int64)
        if look is not None:
            observation, order = look.view(statistics["pulls"], statistics["total"], observation, self.ranked)
        begins = np.array([self.state is None])
        observation = shown_to(self.agent, "predict", observation)
        action, self.state = self.agent.predict(observation, self.state, begins, deterministic=True)
        if self.task.actions == "arm":
            return int(action[0] if look is None else look.arms(order, action)[0]), 1, None
        return int(action["arm"][0]), int(action["times"][0]), np.array(action["answer"][0], np.bool_)

    def _recommended(self, seen: Statistics) -> Bools:
        """The answer of the agent as of now; of one that only pulls and stops, the plug-in answer."""
        if not isinstance(self.agent, Agent):
            return self._plug_in(seen)
        observation = seen.observation(self._remaining(), self.public_seed)
        if self.course is not None:
            observation = self._history([*self.course, *self._unseen()])
        answer: Bools = self.agent.recommended(observation, self.state, np.zeros(1, np.int64))[0]
        return np.array(answer, np.bool_)

    def _guess(self, arm: int) -> Floats:
        """The result that is expected of an arm: its mean, else the mean of all arms, else the middle of the range."""
        shown = self._statistics()
        found = guesses(self.task, self.seen.scored[None], shown["mean"], shown["total"])[0, arm]
        return np.atleast_1d(found)
