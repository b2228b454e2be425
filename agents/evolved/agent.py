"""`Evolved`: the agent that pulls by an evolved index; see `formula` for the index, `network` for what corrects it.

Where the problem is `local`, a pull changes the index of the arm that is pulled; elsewhere it may change the indices of
all arms. Where a pull has a price and there is no budget, the agent stops once the smallest index is larger than
tau0 - tau1 ln(price), tau0 and tau1 being two parameters more; and 1 / price stands for the budget T in the index.
Where a certificate alone ends the episodes, there is no index: `evolved` is `evidence`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bandit_envs import Simulation
from bandit_envs.kernels import number
from bandit_envs.simulation import Playing, Quiet, player

from ..certified.evidence import Evidence
from ..core.agent import ALL_PROBLEMS, Floats, Ints, Observation, by_certificate, task_of, unfit
from ..core.confidence import comparison_of
from ..core.index_kernels import ArmRule
from ..core.index_policy import IndexPolicy
from ..models.cards import stored_for
from .coupled import KEYS, MADE, Seen, Wide, least_index
from .formula import PARAMETERS, Own, arm_index, at_budget, indices
from .network import SHARED, WEIGHTS, nets_of
from .parameters import parameter_names, parameter_table, read_parameters


@dataclass
class WideState:
    """What is known of E episodes, for problems where a pull may change all indices; see `coupled.Wide`."""

    distances: Floats  # (E, K)
    known: Floats  # (E, KEYS, K)
    made: Floats  # (E, MADE, K)


class Evolved(IndexPolicy):
    """An evolved index.

    Args:
        task: a task or an environment, with a budget or a price of a pull.
        parameters: the 18 of `formula.PARAMETERS`, then the 2 of `STOPPING` where the agent is to stop, then,
            where the index is to be corrected, `network.WEIGHTS`; or (P, 18) for P candidates, each for an equal share
            of the episodes in a row. "start": an untrained index. None: the stored ones of the problem.

    Attributes:
        candidates: the parameters of all candidates, and of their networks, (P, number of names).
    """

    name, source = "evolved", "this package: an index of 18 parameters and a small network, tuned on random instances"
    solves, ready_for = ALL_PROBLEMS, stored_for("evolved")  # with parameters of one's own it solves all
    anytime = False
    needs = "budget, price or delta"
    earlier: ClassVar[Mapping[str, str]] = {"parameters": "genes"}
    read_parameters = staticmethod(read_parameters)

    def __new__(cls, *arguments: object, **keywords: object) -> Any:
        """Where a certificate alone ends the episodes, `evolved` is `evidence`."""
        source = arguments[0] if arguments else keywords.get("task")  # None: a copy is made
        if source is not None and by_certificate(task_of(source)):
            if len(arguments) > 1 or keywords.get("parameters") is not None:
                text = "parameters are of an index,"
                raise ValueError(f"{text} and where a certificate ends the episodes evolved is evidence")
            return EvolvedEvidence(source)
        return super().__new__(cls, *arguments, **keywords)

    def __init__(self, task: object, parameters: Sequence[float] | str | None = None) -> None:
        super().__init__(task)
        task = self.task
        if task.budget is None and task.pull_cost == 0:
            raise ValueError("evolved needs a budget, a pull_cost > 0, or a delta")
        self.stops = task.budget is None
        names, net = parameter_names(self.stops), len(WEIGHTS)
        table = parameter_table(task, parameters, names, len(names) - net)
        self.candidates, self._nets = table, nets_of(table[:, -net:])
        scale = 1.0 / task.pull_cost if task.budget is None else float(task.budget)
        self.fair = math.log(scale / task.K)
        self._own = at_budget(table[:, : len(PARAMETERS)], self.fair)
        self.sigma2 = number("sigma", task.sigma, 0, above=True) ** 2
        self._bernoulli, boundary = task.distribution == "bernoulli" and task.D == 1, self.problem.boundary
        self._centre = boundary if self._bernoulli and boundary is not None else math.nan
        self._wide = not self.problem.local
        self._against = 0.0, 1.0, -1, 0.0  # see `coupled.Wide`
        if (control := self.problem.control_arm) is not None:
            _, a, _, _ = comparison_of(self)
            low, high = task.support or (0.0, 1.0)
            self._bernoulli, self._against = task.support is not None, (low, high - low, control, a * a)
            self.sigma2 /= (high - low) ** 2
        self._limits = np.full(len(table), math.inf)
        if self.stops:
            tau0, tau1 = table[:, len(PARAMETERS) :][:, :2].T
            self._limits = tau0 - tau1 * math.log(task.pull_cost)

    def index(self, T: Floats, D: Floats) -> Floats:
        return indices(T, D, self._alone(), self._per_row(len(T)))

    def _alone(self) -> Own:
        """What the index of a single arm is computed from."""
        meeting = 0 if self.problem.polyhedron is None else min(self.problem.polyhedron.A.shape)
        faces = math.log(max(meeting - 1, 1))
        return Own(self._centre, self.sigma2, self.fair, self._own, self._nets, faces, float(meeting > 0))

    def arm_rule(self) -> ArmRule | None:
        if self._wide or len(self.candidates) > 1:
            return None
        return self.by_margin(functools.partial(ArmRule, arm_index, self._alone()))

    @property
    def plays(self) -> bool:
        if self._wide:
            return self.task.D == 1 and self.problem.measure is not None
        return not self.stops and self.compiled is not None

    def initial_state(self, observation: Observation) -> Any:
        E, K = observation["pulls"].shape[:2]
        self._per_row(E)  # refuses episodes that the candidates cannot share evenly
        if not self._wide:
            return super().initial_state(observation)
        return WideState(np.zeros((E, K)), np.zeros((E, KEYS, K)), np.zeros((E, MADE, K)))

    def choose(self, observation: Observation, state: Any) -> Ints:
        if self._wide:
            out, arguments = self._decide(observation, state)
            least_index.quick(*arguments)
            return out
        arm = super().choose(observation, state)
        if self.stops:
            least = state.table.min(0) if len(state.levels) == 0 else state.table[:, state.levels[-2] :].min(1)
            arm[least > self._limits[np.arange(len(arm)) // self._per_row(len(arm))]] = self.task.stop
        return arm

    def played(self, simulation: Simulation, quiet: Quiet, observation: Observation, state: Any) -> Ints:
        if not self._wide:
            return super().played(simulation, quiet, observation, state)
        out, arguments = self._decide(observation, state)
        player(least_index)(*arguments, Playing(simulation, quiet))
        return out

    def _per_row(self, E: int) -> int:
        """How many of E episodes, or of their arms, in a row have the same parameters."""
        if E % (P := len(self.candidates)):
            raise ValueError(f"the parameters of {P} candidates need a multiple of {P} episodes, got {E}")
        return max(E // P, 1)

    def _decide(self, observation: Observation, state: WideState) -> tuple[Ints, tuple[object, ...]]:
        """Scratch for the next arms (E,), and the arguments of `least_index`, which fills it."""
        pulls = np.ascontiguousarray(observation["pulls"], np.int64)
        mean = np.ascontiguousarray(observation["mean"], np.float64)
        E, measure, out = len(pulls), self.problem.measure, np.empty(len(pulls), np.int64)
        if len(state.distances) != E:
            raise unfit(pulls, mean, len(state.distances))
        if measure is None:
            self.problem.distances(pulls, mean, state.distances)
        by = (0, np.zeros(1)) if measure is None else (measure.routine.address, measure.numbers)
        own, shared, scratch = self._alone(), np.empty((2, len(SHARED))), np.empty((3, self.task.K))
        known = state.distances, state.known, state.made
        rows = self._limits, self._per_row(E)
        wide = Wide(self._bernoulli, *self._against, own, *rows, by[0], by[1], *known, shared, scratch)
        return out, (Seen(pulls, mean.reshape(E, -1)), wide, out)


class EvolvedEvidence(Evidence):
    """`evidence`, under the name of the agent that is asked for."""

    name = "evolved"
    _made_by_class = Evolved  # an index, where no certificate ends the episodes
