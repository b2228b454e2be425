"""Small deltas by importance sampling: episodes on tilted arms, on which wrong answers are common, weighted back.

Episodes are played on the arms of several tilts in turn: the truth itself, and means that are shifted so far that a
wrong answer is certified after about so many pulls, for numbers of pulls that double. An episode counts with p / q, p
the likelihood of its samples under the truth and q the average of their likelihoods under all tilts, which the pulls
and means tell. The mean of the weights of errors is then the probability of an error under the truth, whatever rule has
chosen the pulls. [The balance heuristic of Veach & Guibas 1995, for a deterministic mixture]

As the truth is one of the J tilts, no weight exceeds J: an error that no tilt makes likely is seen, if it is common
under the truth, as one of a large weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import logsumexp, rel_entr, xlogy

import agents
from bandit_envs import PROBLEMS, Arms, Bernoulli, Gaussian, Resampled, Sampler

__all__ = ["TILTED", "Estimate", "TiltedCell", "estimate"]

Floats = NDArray[np.float64]
Rules = dict[str, Any]
Tilt = Sequence[float]  # which arms are raised (1), lowered (-1) or left as they are (0)

DELTAS = (1e-3, 1e-6, 1e-9)
ROWS = 1000  # of an arm whose coordinates are all decided by one coin
LEAST_PULLS = 8  # of a tilted arm, after which an error is to be certified


@dataclass(frozen=True)
class Setting:
    """Arms, a question, and how answers may go wrong.

    Attributes:
        distribution: "gaussian", sd 1; "bernoulli"; "coin": all coordinates of an arm are 0 or all are 1.
        means: (K,) or (K, D). Of "coin": the shares of 1, (K,), in multiples of 1 / ROWS.
        tilts: directions in which the arms are tilted. D: coordinates of "coin".
    """

    problem: str
    name: str
    rules: Rules = field(hash=False)
    distribution: str
    means: tuple[Any, ...]
    tilts: tuple[Tilt, ...]
    D: int = 1
    most: int = 3000


@dataclass(frozen=True)
class TiltedCell:
    """An agent on a setting, at a small delta."""

    agent: str
    setting: Setting
    delta: float
    promise: str = "proven"

    @property
    def key(self) -> str:
        where = self.setting
        return f"{self.agent} | {where.problem} {where.name}, {where.distribution}, tilted | {self.delta:g}"

    @property
    def problem(self) -> str:
        return self.setting.problem

    @property
    def rules(self) -> Rules:
        return self.setting.rules

    @property
    def most(self) -> int:
        return self.setting.most


# --- tilts ------------------------------------------------------------------------------------------------------------


def _kl(q: float, p: float) -> float:
    return float(rel_entr(q, p) + rel_entr(1 - q, 1 - p))


def _tilted(p: float, side: float, nats: float) -> float | None:
    """The mean on one side of p from which a coin of probability p differs by so much in a toss; None if none does."""
    end = 1.0 - 1e-9 if side > 0 else 1e-9
    if _kl(end, p) <= nats:
        return None
    return float(brentq(lambda q: _kl(q, p) - nats, p, end))


def means_of(setting: Setting, delta: float) -> Floats:
    """The means of all tilts, (J, K) or (J, K, D): the truth first."""
    truth = np.array(setting.means, np.float64)
    need = math.log(len(truth) / delta) + 6.0  # about what is certified, with the price of not knowing when
    found = [truth]
    for tilt in setting.tilts:
        moved = np.count_nonzero(tilt)
        for pulls in LEAST_PULLS * 2.0 ** np.arange(math.ceil(math.log2(setting.most / LEAST_PULLS))):
            nats, means = need / pulls / moved, truth.copy()
            for arm, side in enumerate(tilt):
                if side and setting.distribution == "gaussian":
                    means[arm] += side * math.sqrt(2 * nats) * (1.0 if truth.ndim == 1 else _inward(setting, arm))
                elif side:
                    q = _tilted(truth[arm], side, nats)
                    means[arm] = math.nan if q is None else q
            if not np.isnan(means).any():
                found.append(np.round(means * ROWS) / ROWS if setting.distribution == "coin" else means)
    found[0] = truth
    return np.array(found)


def _inward(setting: Setting, arm: int) -> Floats:
    """The direction in which an arm comes into the polyhedron: of all rows near which it lies together."""
    A, b = (np.array(setting.rules[name], np.float64) for name in ("A", "b"))
    normal = -A[A @ np.array(setting.means[arm]) > b - 0.1].sum(axis=0)
    direction: Floats = normal / np.linalg.norm(normal)
    return direction


class Tilts(Sampler):
    """Episode e has the means of tilt e mod J, so that each has its share exactly."""

    name = "tilts"

    def __init__(self, setting: Setting, means: Floats) -> None:
        self.setting, self.tilts = setting, means
        self.arms = _arms(setting, means)
        self.K, self.D = self.arms.K, self.arms.D
        if setting.distribution == "gaussian":
            self.tables = np.stack([Gaussian.pack(m.reshape(len(m), -1), 1.0) for m in means])
            self.seen = means
        elif setting.distribution == "bernoulli":
            self.tables, self.seen = means[:, :, None], means
        else:
            ones = np.rint(means * ROWS)  # a window of ROWS rows, of zeros followed by ones
            self.tables = np.stack([ones, np.full_like(ones, ROWS)], axis=-1)
            self.seen = np.repeat(means[..., None], setting.D, axis=-1)[..., : None if setting.D > 1 else 1]
            self.seen = self.seen if setting.D > 1 else self.seen[..., 0]

    @property
    def positive(self) -> bool:
        return True

    def draw(self, key: NDArray[np.uint64], episode: NDArray[np.uint64]) -> tuple[Floats, Floats]:
        which = (episode % np.uint64(len(self.tilts))).astype(np.int64)
        return self.seen[which], self.tables[which]

    def to_dict(self) -> dict[str, Any]:
        return {self.name: {"setting": self.setting.name}}


def _arms(setting: Setting, means: Floats) -> Arms:
    """Arms whose tables, data, support and scale all tilts have in common."""
    if setting.distribution == "gaussian":
        return Gaussian(means[0], 1.0)
    if setting.distribution == "bernoulli":
        return Bernoulli(means[0])
    data = np.repeat([0.0, 1.0], ROWS)  # window s has ROWS rows from number s on: s ones
    rows = np.tile(data[:, None], setting.D) if setting.D > 1 else data
    return Resampled([rows] + [rows[:1]] * (len(setting.means) - 1))


# --- the estimate -----------------------------------------------------------------------------------------------------


class Estimate(NamedTuple):
    """The probability of an error, with confidence limits; and what the episodes on tilted arms were like.

    Attributes:
        wrong: the estimate. low, high: its limits. stopped, astray: episodes on tilted arms that were ended by the
            agent, and that had a wrong answer at their end. weight: the average weight, about 1.
    """

    wrong: float
    low: float
    high: float
    stopped: int
    astray: int
    weight: float


def _log_weights(setting: Setting, means: Floats, pulls: Floats, mean: Floats) -> Floats:
    """ln(p / q) of episodes, (n,), of their pulls (n, K) and means (n, K) or (n, K, D)."""
    log = np.empty((len(means), len(pulls)))
    for j, tilt in enumerate(means):
        if setting.distribution == "gaussian":
            cost = 0.5 * ((mean - tilt) ** 2 - (mean - means[0]) ** 2)
            each = -pulls * (cost.sum(axis=-1) if cost.ndim == 3 else cost)
        else:
            share = mean if mean.ndim == 2 else mean[..., 0]
            each = pulls * (xlogy(share, tilt / means[0]) + xlogy(1 - share, (1 - tilt) / (1 - means[0])))
        log[j] = each.sum(axis=-1)
    found: Floats = math.log(len(means)) - logsumexp(log, axis=0)
    return found


def _limits(x: Floats, level: float) -> tuple[float, float]:
    """Confidence limits of a mean, each of which fails with probability `level`.

    They are the empirical Bernstein limits of Maurer & Pontil 2009, with the largest number seen in place of a bound of
    the range: no weight of an error is far above delta where certificates do what they say.
    """
    n, need = len(x), math.log(2 / level)
    width = math.sqrt(2 * x.var(ddof=1) * need / n) + 7 * x.max() * need / (3 * (n - 1))
    return max(float(x.mean()) - width, 0.0), float(x.mean()) + width


def estimate(cell: TiltedCell, episodes: int, seed: int, level: float, agent: Any = None) -> Estimate:
    """The probability that a cell's agent stops with a wrong answer.

    Args:
        level: of each confidence limit, which fails with this probability.
        agent: a function that makes another one of a task.
    """
    setting, ended = cell.setting, list[tuple[Any, ...]]()
    means = means_of(setting, cell.delta)
    source = Tilts(setting, means)
    problem = PROBLEMS.find(setting.problem)(**setting.rules)
    result = agents.evaluate(
        {"it": _recording(agent or (lambda task: agents.make(cell.agent, task)), ended)},
        setting.problem,
        episodes=episodes,
        seed=seed,
        env_kwargs={
            "instance": source,
            "delta": cell.delta,
            "max_pulls": setting.most,
            "shuffle_arms": False,
            **setting.rules,
        },
        progress=False,
    ).episodes
    seeds, pulls, mean, answer = (np.concatenate(parts) for parts in zip(*ended, strict=True))
    told = np.column_stack([seeds, pulls, mean.reshape(len(mean), -1)])
    once = np.unique(told, axis=0, return_index=True)[1]  # an episode that has ended may be asked for its answer again
    pulls, mean, answer = pulls[once], mean[once], answer[once]
    if len(pulls) != episodes:
        raise RuntimeError(f"{len(pulls)} episodes were recorded, of {episodes}")
    stopped = pulls.sum(axis=1) < setting.most
    if stopped.sum() != (~result["truncated"].astype(bool)).sum():
        raise RuntimeError("episodes that were cut and those that stopped cannot be told apart")
    wrong = ~problem.is_correct(answer, np.broadcast_to(source.seen[0], (episodes, *source.seen[0].shape)))
    weights = np.exp(_log_weights(setting, means, pulls.astype(np.float64), mean))
    errors = weights * (wrong & stopped)
    low, high = _limits(errors, level)
    return Estimate(float(errors.mean()), low, high, int(stopped.sum()), int(wrong.sum()), float(weights.mean()))


def _recording(make: Callable[[Any], Any], ended: list[tuple[Any, ...]]) -> Callable[[Any], Any]:
    """A function that makes an agent which keeps pulls, means and answers of the episodes that end."""

    def made(task: Any) -> Any:
        agent = make(task)
        recommend = agent.recommend

        def recorded(observation: Any, state: Any = None, slots: Any = None) -> Any:
            answer = recommend(observation, state, slots)
            ended.append((*(observation[part][slots].copy() for part in ("public_seed", "pulls", "mean")), answer))
            return answer

        agent.recommend = recorded
        return agent

    return made


# --- the catalogue ----------------------------------------------------------------------------------------------------


def _each(K: int, side: int) -> tuple[Tilt, ...]:
    """Each arm by itself."""
    return tuple(tuple(side * (i == arm) for i in range(K)) for arm in range(K))


def _pairs(K: int, low: Sequence[int], high: Sequence[int]) -> tuple[Tilt, ...]:
    """An arm of `low` raised and one of `high` lowered."""
    return tuple(tuple((i == a) - (i == b) for i in range(K)) for a in low for b in high)


HAIR = 1e-7
SETTINGS = (
    Setting("Threshold", "1 of 3 arms below by 1e-7", {"threshold": 0.0}, "gaussian", (-HAIR, 2.0, -2.0), ((1, 0, 0),)),
    Setting(
        "Threshold",
        "6 arms miss the tolerance by 1e-7",
        {"threshold": 0.0, "tolerance": 0.25},
        "gaussian",
        (-0.25 - HAIR,) * 6,
        _each(6, 1),
    ),
    Setting("Threshold", "1 of 2 arms above by 1e-7", {"threshold": 0.5}, "bernoulli", (0.5 + HAIR, 0.9), ((-1, 0),)),
    Setting(
        "Threshold",
        "1 of 2 arms below by 1e-7, near 0",
        {"threshold": 0.05},
        "bernoulli",
        (0.05 - HAIR, 0.6),
        ((1, 0),),
    ),
    Setting("BestArm", "1 of 2 arms better by 1e-7", {}, "gaussian", (0.0, HAIR), ((1, -1),)),
    Setting(
        "BestArm",
        "4 arms, epsilon missed by 1e-7",
        {"epsilon": 0.5},
        "gaussian",
        (0.0, 0.0, 0.0, 0.5 + HAIR),
        _pairs(4, [0, 1, 2], [3]),
    ),
    Setting("BestArm", "1 of 3 arms better by 1e-7, 1 far", {}, "bernoulli", (0.5, 0.5 + HAIR, 0.05), ((1, -1, 0),)),
    Setting(
        "TopK",
        "1 of 4 arms better by 1e-7, 2 far",
        {"k": 2, "criterion": "exact"},
        "gaussian",
        (0.0, HAIR, 2.0, -2.0),
        ((1, -1, 0, 0),),
    ),
    Setting(
        "TopK",
        "2 of 4 arms, epsilon missed with 2 wrong, aggregate",
        {"k": 2, "epsilon": 0.3, "criterion": "aggregate"},
        "gaussian",
        (0.0, 0.0, 0.3 + HAIR, 0.3 + HAIR),
        ((1, 1, -1, -1),),
    ),
    Setting(
        "TopK",
        "2 of 3 arms, epsilon missed, each",
        {"k": 2, "epsilon": 0.2, "criterion": "each"},
        "bernoulli",
        (0.3, 0.5 + HAIR, 0.9),
        _pairs(3, [0], [1]),
    ),
    Setting("AllGood", "1 of 2 arms bad by 1e-7", {"epsilon": 1.5}, "gaussian", (-1.5 - HAIR, 0.0), ((1, -1),)),
    Setting(
        "AllGood", "1 of 3 arms good by 1e-7", {"epsilon": 0.5}, "gaussian", (-0.5 + HAIR, 0.0, -3.0), ((-1, 1, 0),)
    ),
    Setting(
        "AllGood",
        "4 arms, slack missed by 1e-7",
        {"epsilon": 1.0, "slack": 0.5},
        "gaussian",
        (-1.5 - HAIR, -1.5 - HAIR, -1.5 - HAIR, 0.0),
        _each(4, 1)[:3],
    ),
    Setting(
        "AllGood",
        "1 of 2 arms bad by 1e-7, multiplicative",
        {"epsilon": 0.25, "multiplicative": True},
        "bernoulli",
        (0.45 - HAIR, 0.6),
        ((1, -1),),
    ),
    Setting(
        "Feasible",
        "1 of 2 arms outside by 1e-7, D=2",
        {"A": [[1.0, 0.0], [0.0, 1.0]], "b": [-HAIR, 4.0]},
        "gaussian",
        ((0.0, 0.0), (-2.0, 0.0)),
        ((1, 0),),
    ),
    Setting(
        "Feasible",
        "1 of 2 arms outside of a corner by 1e-7, D=2",
        {"A": [[1.0, 0.0], [0.0, 1.0]], "b": [-HAIR, -HAIR]},
        "gaussian",
        ((0.0, 0.0), (-2.0, -2.0)),
        ((1, 0),),
    ),
    Setting(
        "Feasible",
        "1 of 2 arms outside by 1e-3, diagonal D=10",
        {"A": [[10**-0.5] * 10], "b": [0.5 * 10**0.5 - 1e-3]},
        "coin",
        (0.5, 0.05),
        ((-1, 0),),
        D=10,
    ),
    Setting(
        "Feasible",
        "1 of 2 arms outside by 1e-3, D=1",
        {"A": [[1.0]], "b": [0.5 - 1e-3]},
        "coin",
        (0.5, 0.05),
        ((-1, 0),),
    ),
    Setting(
        "BetterThanControl",
        "1 of 2 arms worse by 1e-7 than the control, 1 far",
        {},
        "gaussian",
        (0.0, -HAIR, 2.0),
        ((-1, 1, 0),),
    ),
    Setting(
        "BetterThanControl",
        "1 of 2 arms misses a margin by 1e-7, 1 far",
        {"margin": 0.1},
        "bernoulli",
        (0.4, 0.5 - HAIR, 0.05),
        ((-1, 1, 0),),
    ),
    Setting(
        "BetterThanControl",
        "1 arm beyond a lift of 25 % by 1e-7",
        {"lift": 0.25},
        "bernoulli",
        (0.4, 0.5 + HAIR),
        ((1, -1),),
    ),
)
EVERYWHERE = ("evidence", "uniform(stop='certificate')")
ELSEWHERE = {
    "Threshold": ("hdoc", "top-two", "uniform(stop='certificate', boundary='kaufmann-koolen')"),
    "BestArm": ("top-two", "track-and-stop", "lucb"),
    "TopK": ("kl-lucb", "clucb", "evidence(boundary='kaufmann-koolen')"),
    "AllGood": ("st2", "track-and-stop", "random(stop='certificate')"),
    "Feasible": ("md-apt(stop='certificate')", "evidence(rho=30.0)", "lsa(stop='certificate')"),
    "BetterThanControl": ("top-two", "track-and-stop", "apt(stop='certificate')"),
}


def _cells() -> Iterator[TiltedCell]:
    for i, setting in enumerate(SETTINGS):
        for agent in EVERYWHERE:
            for delta in DELTAS:
                yield TiltedCell(agent, setting, delta)
        yield TiltedCell(ELSEWHERE[setting.problem][i % 3], setting, DELTAS[i % 3])


TILTED = tuple(_cells())
