"""`Certified`: any agent, which stops when its plug-in answer is certified, whatever it has pulled.

The certificate is of the problem: evidence against the nearest instance on which the answer is wrong, beyond a boundary
that holds at all times at once (docs/certificates.md). So the answer is wrong with probability delta at most, if the
agent within is a network or a rule that promises nothing.

looks      The certificate is looked at when as many pulls as there are arms have been made, and then as in
           `stopping`. The looks are the same in `predict` and in `play`, so that decisions are.
stopping   An agent that stops by its own rule is heard as long as it pulls. Where it would stop, the certificate alone
           decides, at the whole of delta; is the answer not certified yet, the arms are pulled that a certificate
           lacks, up to the next look: of the alternative that the last look has not excluded, the arm with fewer
           pulls; an arm with none, or with fewer than sqrt(t) - K/2, first. With completes=False: the arms in turn.
           With early=False there is no look before the agent within has stopped.
tables     Of the columns of a table, a certificate is of an answer of its own, by the rows in which all arms that still
           count have been seen: that is the answer then.
bulk       A bulk pull of the agent is made as a whole: the next look is after it. With actions="arm", where it becomes
           repetitions, there are looks within it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from bandit_envs import Simulation, Task
from bandit_envs.envs import NUMBERS, FeatureTable
from bandit_envs.kernels import flag, fleeting, inlined, kernel
from bandit_envs.problems import BELIEFS
from bandit_envs.simulation import ENDED, LIVE, MOST_TIMES, Quiet, pull
from bandit_envs.stopping import DISTRIBUTION, PAIRED, Certifier

from . import parameters, stopping
from .agent import Agent, Bools, Ints, Observation, seen_means, task_of, unfit
from .closed import ClosedState
from .confidence import delta_of
from .forms import forms_of
from .stopping import Certifiable, Certificate, forget, is_certified, lacking, next_look

CERTIFICATE = "certificate"
OF_CERTIFIER = ("boundary", "rho", "distribution", "centre")
OPTIONS = (*OF_CERTIFIER, "delta", "completes", "early")  # of `Certified`, beside the agent within
# Where an episode stands. `due`: pulls at its next look. `held`: pulls at which its answer was certified, -1: never.
# `over`: whether the agent within has stopped. `looked`: pulls at the last look. `arm`: what a certificate lacks.
# `first`, `second`: the alternative to look at first. `fewest`: of an arm, when this was looked up last.
COUNTS, REALS = ("due", "held", "over", "looked", "arm"), ("first", "second", "fewest")
BOOK = np.dtype([*((name, np.int64) for name in COUNTS), *((name, "f8") for name in REALS)], align=True)
OF_CALLS = ("prices", "pays", "sees_pending")  # what a decision costs, and what it sees
INHERITED = ("source", "solves", "anytime", "resumes", "oracles", "by_place", "own_bounds", *OF_CALLS)
ASK = -1  # in place of an arm: the agent within is to choose
NEVER = 2**62  # pulls that no episode has


@fleeting
class StoppingRule(NamedTuple):
    """What the episodes have shown, and what says whether an answer is certified."""

    shown: Certifiable
    certificate: Certificate
    most: int  # pulls at once, where the agent within has stopped; 1: of the arms in turn
    early: bool  # whether there are looks before that


@fleeting
class Chosen(NamedTuple):
    """Arms, and how often to pull each, (E,)."""

    arms: Ints
    times: Ints


@inlined
def stops(book, e, t, rule):
    """The stopping rule: whether the answer is certified; where a look is due, also which arm a certificate lacks."""
    if t >= book.due:
        book.looked, book.due = t, next_look(t, rule.shown.pulls.shape[1])
        if is_certified(rule.shown, e, t, book, rule.certificate):
            book.held = t
        elif book.over and rule.certificate.numbers[DISTRIBUTION] != PAIRED:
            rare = lacking(rule.shown.pulls[e], book, t, 1.0, 1.0)
            book.arm = rare if rare >= 0 else book.arm
    if book.over and rule.most == 1:
        book.arm = lacking(rule.shown.pulls[e], book, t, 0.0, math.inf)
    return book.held == t


@kernel
def _begin(books, spent, rule: StoppingRule, out: Chosen):
    """Decide, where it is to be decided, what the agent within is not asked. Returns how often it is to be asked."""
    K, asked = rule.shown.pulls.shape[1], 0
    for e in range(len(spent)):
        if out.arms[e] == ASK:
            t, book = spent[e], books[e]
            if t == 0:
                book.due, book.held, book.over, book.looked = K if rule.early else NEVER, -1, 0, -1
                forget(rule.certificate, e)
                book.first = book.second = book.fewest = 0.0
            if stops(book, e, t, rule):
                out.arms[e] = K
            elif book.over:
                out.arms[e] = book.arm
            out.times[e] = min(book.due - t, rule.most)
            asked += out.arms[e] == ASK
    return asked


@kernel
def _resolve(books, spent, rule: StoppingRule, chosen: Chosen, out: Chosen):
    """Fill in what the agent within has chosen where it was asked; it may have played on to a look that is due."""
    K = rule.shown.pulls.shape[1]
    for e in range(len(spent)):
        if out.arms[e] == ASK:
            t, book, arm = spent[e], books[e], chosen.arms[e]
            out.arms[e], out.times[e] = K, 1
            if stops(book, e, t, rule):
                continue
            if arm != K:
                out.arms[e], out.times[e] = arm, chosen.times[e]
                continue
            book.over = 1
            book.due = book.due if book.looked == t or rule.early and rule.most == 1 else t
            if not stops(book, e, t, rule):  # what a certificate lacks, or the arm in turn
                out.arms[e], out.times[e] = book.arm, min(book.due - t, rule.most)


@kernel
def _make(sim: Simulation, limit, out: Chosen):
    """Make the pulls that are decided, up to `limit` (E,); the next decision is ASK. Returns how many are made."""
    made = 0
    for e in range(len(limit)):
        arm, times = out.arms[e], out.times[e]
        allowed = sim.status[e] == LIVE and 0 <= arm < sim.rules.K and 1 <= times <= limit[e] - sim.spent[e]
        if allowed and (times == 1 or sim.bulk[0] != 0):
            pull(sim, np.uint64(e), arm, times)
            out.arms[e] = ASK
            made += 1
    return made


@dataclass
class CertifiedState(ClosedState):
    """State of a certified agent for E episodes."""

    arrays = "books", "scratch"
    books: Any  # (E,) of BOOK
    inner: Any  # the state of the agent within
    scratch: Any = None  # of certificates, see `Certificate`


class Certified(Agent):
    """An agent that stops when its plug-in answer is certified, and answers it.

    Args:
        agent: the agent within: an `Agent` of the same task, or of the same with another delta; it chooses the pulls.
        boundary: "mixture" or "kaufmann-koolen". rho, distribution, centre: see `CertifiedAlgorithm`.
        completes: False: once the agent within has stopped, the arms are pulled in turn, with the looks of `uniform`.
        early: False: it stops no sooner than the agent within.

    Raises:
        ValueError: for a task without a delta, a problem that tells no evidence, an agent that is certified already,
            and values that are not allowed.
    """

    stops = True
    _looked_up = ("certifier", "_decider", *INHERITED)

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self:
        made = object.__new__(cls)
        made._parameters = parameters.given(cls, arguments, keywords)  # no copy, which may be of a network
        return made

    def __init__(
        self,
        task: Any,
        agent: Agent,
        boundary: str = "mixture",
        rho: float | None = None,
        distribution: str | None = None,
        delta: float | None = None,
        centre: float | None = None,
        completes: bool = True,
        early: bool = True,
    ) -> None:
        if not isinstance(agent, Agent):
            raise TypeError(f"Certified needs an Agent that chooses the pulls, got {agent!r:.200}")
        if agent.observation != "statistics":
            text = f"stop={CERTIFICATE!r} needs an agent that reads statistics or features,"
            raise ValueError(f"{text} and {agent.name} reads observation={agent.observation!r}")
        if isinstance(agent, Certified):
            raise ValueError(f"{agent.name} stops by a certificate already: leave out stop={CERTIFICATE!r}")
        self._inherit(agent)
        self.agent = agent
        super().__init__(task)
        self.completes, self.early = flag("completes", completes), flag("early", early)
        self.delta = delta_of(self.name, self.task, delta)
        self.distribution = self.task.certified_distribution(distribution)
        _ = self.certifier  # by boundary, rho and centre: it refuses values that are not allowed

    @cached_property
    def certifier(self) -> Certifier:
        """What says whether an answer is certified."""
        given = {name: value for name, value in self._parameters.items() if name in OF_CERTIFIER}
        made = self.task.certifier(**given)
        return made.decider(self.delta) if self.task.items else made

    def idle(self) -> dict[str, str]:
        found = {} if self.distribution == "student" else {"centre": "which is of distribution='student' alone"}
        if self.distribution in ("student", "bounded", "paired"):
            found["rho"] = "which is of the distributions 'gaussian' and 'bernoulli' alone"
        return found

    def _inherit(self, agent: Agent) -> None:
        """Say of this agent what is said of the one within."""
        inherited = {name: getattr(agent, name) for name in (*INHERITED, "told", "_brought")}
        inherited["counts"] = tuple(name for name in agent.counts if name != "forfeited")  # the certificate answers
        vars(self).update(inherited, name=f"{agent.name}(stop={CERTIFICATE!r})")

    @cached_property
    def _decider(self) -> Certifier:
        return self.certifier.decider(self.delta)

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state)
        self._inherit(self.agent)

    @cached_property
    def _mark(self) -> str:
        return f"Certified, of {self.agent._mark}"

    def for_task(self, task: Task, **changed: Any) -> Agent:
        before = {name: value for name, value in self._parameters.items() if name != "agent"}
        own = before | {name: changed.pop(name) for name in OPTIONS if name in changed}
        if task == self.task and not changed and own == before:
            return self
        return Certified(task, self.agent.for_task(task, **changed), **own)

    def initial_state(self, observation: Observation) -> CertifiedState:
        books = np.zeros(len(observation["pulls"]), BOOK)
        spent = np.asarray(observation["pulls"]).sum(axis=1)
        books["due"], books["held"], books["looked"] = np.maximum(spent, self.task.K if self.early else NEVER), -1, -1
        return CertifiedState(books, self.agent._made(observation), stopping.scratch_for(self._decider, len(books)))

    def plan_over(self, state: CertifiedState, pulls: Ints) -> Bools:
        """See `Algorithm.plan_over`; of the agent within."""
        over = getattr(self.agent, "plan_over", None)
        return np.zeros(len(pulls), np.bool_) if over is None else over(state.inner, pulls)

    def _judge(self, observation: Observation, state: CertifiedState) -> StoppingRule:
        """What the episodes have shown, and the certifier."""
        pulls = np.ascontiguousarray(observation["pulls"], np.int64)
        mean, variance = (np.ascontiguousarray(observation[name], np.float64) for name in ("mean", "variance"))
        E, decider = len(pulls), self._decider
        quick, need = decider is not self.certifier, math.log(1.0 / self.delta)
        seen = (pulls.reshape(E, -1), mean.reshape(E, -1), variance.reshape(E, -1), stopping.moments_of(observation))
        _, scratch = state.kept or state.parts
        certificate = stopping.certificate_of(decider, scratch, self.task.K, need, quick)
        return StoppingRule(Certifiable(*seen), certificate, MOST_TIMES if self.completes else 1, self.early)

    def _asked(self, chosen: Any, E: int) -> Chosen:
        """What the agent within has chosen: arms (E,) and how often to pull each (E,)."""
        if self.agent._brought:
            chosen = self.agent._decided(chosen, (E,))
        arms, counts = chosen if isinstance(chosen, tuple) else (chosen, None)
        arms = np.ascontiguousarray(arms, np.int64)
        return Chosen(arms, np.ones(E, np.int64) if counts is None else np.ascontiguousarray(counts, np.int64))

    def choose(self, observation: Observation, state: CertifiedState) -> tuple[Ints, Ints]:
        pulls = np.ascontiguousarray(observation["pulls"], np.int64)
        E = len(pulls)
        if len(state.books) != E:
            raise unfit(pulls, np.asarray(observation["mean"]), len(state.books))
        spent, out = pulls.sum(axis=1), Chosen(np.full(E, ASK), np.empty(E, np.int64))
        rule = self._judge(observation, state)
        if self.agent._brought:
            state.inner = self.agent._begun(observation, state.inner)
        books, _ = state.kept or state.parts
        if _begin.quick(books, spent, rule, out):
            _resolve.quick(books, spent, rule, self._asked(self.agent.choose(observation, state.inner), E), out)
        return out.arms, out.times

    def kernels_needed(self) -> tuple[Any, ...]:
        return (*self._decider.kernels_needed[:1], *self.agent.kernels_needed())

    @property
    def plays(self) -> bool:
        return self.agent.plays

    @property
    def most_played(self) -> float:
        return self.agent.most_played

    def played(
        self, simulation: Simulation, quiet: Quiet, observation: Observation, state: CertifiedState
    ) -> tuple[Ints, Ints]:
        E, books, spent = len(state.books), state.parts[0], simulation.spent
        state.inner = self.agent._begun(observation, state.inner)
        out = Chosen(np.where(simulation.status == ENDED, self.task.K, ASK), np.ones(E, np.int64))
        status = simulation.status.copy()
        within = simulation._replace(status=status)  # where this agent decides, the one within has nothing to play
        rule, limit = self._judge(observation, state), spent + np.minimum(quiet.most - spent, quiet.steps)
        while True:
            if _begin.quick(books, spent, rule, out):
                status[:] = np.where(out.arms == ASK, simulation.status, ENDED)
                going = Quiet(np.minimum(limit, books["due"]), quiet.steps)
                chosen = self._asked(self.agent.played(within, going, observation, state.inner), E)
                _resolve.quick(books, spent, rule, chosen, out)
            if not _make.quick(simulation, limit, out):
                return out.arms, out.times

    def tallied(self, state: CertifiedState, slots: Ints) -> dict[str, Any]:
        found = self.agent.tallied(state.inner, slots)
        return {name: found[name] for name in self.counts}  # the answer is that of the certificate

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        """The plug-in answer, which is what is certified; of a table that of the certificate."""
        if self.task.items:
            return stopping.paired_answer(self.certifier, observation, slots)
        return self.problem.plug_in(seen_means(observation, slots))


def own_certifier(agent: Any) -> Certifier | None:
    """The certifier by which an agent stops; None of one that stops by other bounds, or by nominal ones."""
    nominal = getattr(agent, "_nominal", False)
    return None if nominal else getattr(agent, "certifier", None)


@dataclass
class FeaturedState:
    """State of a policy that reads features, for E episodes."""

    table: FeatureTable
    state: Any = None  # of `predict`


class Featured(Agent):
    """A policy, as a model of Stable-Baselines3, that reads no histories, as an `Agent` that reads statistics."""

    name, anytime = "featured", False

    def __init__(self, task: Any, policy: Any) -> None:
        task = task_of(task)
        vars(self).update(solves=(task.problem,), name=str(getattr(policy, "name", type(policy).__name__.lower())))
        super().__init__(task)
        self.policy, self.forms = policy, forms_of(policy)._replace(stop=True)
        believes, seen = self.forms.ranked or self.forms.observation in BELIEFS, self.forms.of(self.task)
        self._lookahead = seen.lookahead(f"{self.name}, which was trained with beliefs,") if believes else None

    @cached_property
    def _mark(self) -> str:
        return f"{self.name} of features for {super()._mark}"

    def for_task(self, task: Task, **changed: Any) -> Agent:
        policy: Any = self.policy
        ours = type(policy).__module__.startswith("agents.") and hasattr(policy, "for_task")
        return Featured(task, policy.for_task(self.forms.of(task)) if ours else policy)

    def initial_state(self, observation: Observation) -> FeaturedState:
        return FeaturedState(FeatureTable(self.task, self.problem, len(observation["pulls"])))

    def choose(self, observation: Observation, state: FeaturedState) -> Ints:
        pulls = np.ascontiguousarray(observation["pulls"], np.int64)
        mean, variance = (np.ascontiguousarray(observation[name], np.float64) for name in ("mean", "variance"))
        seen = seen_means({"pulls": pulls, "mean": mean})
        x: Any = observation  # of one that reads statistics
        if self.forms.observation == "features":
            x = state.table.fill(pulls, seen, variance, np.ascontiguousarray(observation["remaining"], np.int64))
        spent, look = pulls.sum(axis=1), self._lookahead
        if look is not None:
            total = np.ascontiguousarray(observation["total"], np.float64)
            x, order = look.view(pulls, total, x, self.forms.ranked)
        arms, state.state = self.policy.predict(x, state.state, spent == 0, deterministic=True)
        arms = np.ascontiguousarray(arms, np.int64)
        return arms if look is None else look.arms(order, arms)


def certified(task: Task, agent: Any, options: Mapping[str, Any]) -> Certified:
    """Any agent, an object with a method `predict` too, certified with these options of `Certified`."""
    if not isinstance(agent, Agent):
        if forms_of(agent).observation not in (*NUMBERS, "statistics"):
            text = f"stop={CERTIFICATE!r} needs an Agent or a policy that reads statistics or features,"
            raise ValueError(f"{text} got {agent!r:.200}")
        agent = Featured(task, agent)
    return Certified(task, agent, **options)
