"""The expected score of a plug-in answer, given the samples and the prior of the means, and draws from the posterior.

Where instances are drawn from a known prior, the number of misclassified arms of an episode may be replaced by its
expectation given all samples of the episode: the mean over episodes is the same for every policy, and the noise is far
less (Rao & Blackwell). The evolution of an index and the comparison of checkpoints use this.

For n samples of a Bernoulli arm, s of them ones, a boundary b, and a mean p that was drawn from a prior F,

    P(p < b | samples) = integral of p^s (1 - p)^(n - s) dF(p) over p < b  /  the same integral over all p.

The plug-in answer holds the arm if s / n >= b. It is wrong with this probability if it holds the arm, else with the
complement. Priors F are uniform on intervals, or uniform on finitely many values.

Elsewhere (`drawable`) means are drawn from the posterior: given the samples, they have the same distribution as the
true ones, and so the mean loss of an answer on some draws has the same expectation, under any policy. Each coordinate
of each arm is drawn independently. The posterior is a histogram: each interval of the prior has CELLS cells of the same
width, on its part within WIDE standard errors of the empirical mean.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs import PureExplorationVectorEnv, Sampler
from bandit_envs.kernels import jit
from bandit_envs.simulation import Quiet

from ..core.agent import Floats, Ints, by_certificate
from ..core.optional import require
from .plan import most_pulls, plays

CELLS, WIDE = 48, 6.0
FAR = -600.0  # the log width of a cell where no part of an interval is within WIDE standard errors
DRAWS = 16  # instances for each episode
CHUNK = 2000  # episodes that are drawn for at a time


def drawable(envs: PureExplorationVectorEnv) -> bool:
    """Whether `drawn_losses` takes an environment: Bernoulli or Gaussian arms of a `Sampler`, the score as reward."""
    source = envs.setting.source
    scored = envs.setting.reward == "score" and envs.task.pull == "arm"
    known = type(source) is Sampler and source.distribution in ("bernoulli", "gaussian")  # subclasses draw otherwise
    return scored and known and "normal" not in source.to_dict()["sampler"]["mean"]


def pieces(sampler: Sampler) -> list[tuple[float, float]]:
    """The intervals (low, high) of the prior, of equal probability; a single value is an interval of length 0."""
    [(kind, values)] = sampler.to_dict()["sampler"]["mean"].items()
    if kind == "uniform":
        low, high = values
        return [(low, high)]
    if kind == "around":
        centre, least, most = values
        return [(centre - most, centre - least), (centre + least, centre + most)]
    return [(value, value) for value in values]


@jit
def _draw(n, mean, variance, low, high, u, out):
    """Fill out (E, M, K) with draws, by inversion at u (E, M, K); n pulls, mean: (E, K); variance: 0 for Bernoulli."""
    P = len(low)
    start, width, mass = np.empty(P), np.empty(P), np.empty(P * CELLS)
    for e in range(n.shape[0]):
        for k in range(n.shape[1]):
            N, m = n[e, k], mean[e, k]
            v = variance if variance > 0.0 else (N * m * (1.0 - m) + 1.0) / (N + 2.0)
            reach = WIDE * math.sqrt(v / max(N, 1e-9))
            for p in range(P):
                begin, end = max(low[p], m - reach), min(high[p], m + reach)
                if begin > end:  # the interval is beyond reach: take its nearer end
                    begin = end = low[p] if low[p] > m else high[p]
                start[p], width[p] = begin, (end - begin) / CELLS
            best = -math.inf
            for p in range(P):
                size = 0.0  # log width of a cell; of single values all have the same mass
                if high[p] > low[p]:
                    size = math.log(width[p]) if width[p] > 0.0 else FAR
                for c in range(CELLS):
                    x = start[p] + (c + 0.5) * width[p]
                    if variance > 0.0:
                        value = -0.5 * N * (x - m) ** 2 / variance
                    else:
                        y = min(max(x, 1e-12), 1.0 - 1e-12)
                        value = N * (m * math.log(y) + (1.0 - m) * math.log(1.0 - y))
                    value += size
                    mass[p * CELLS + c] = value
                    best = max(best, value)
            total = 0.0
            for i in range(len(mass)):
                total += math.exp(mass[i] - best)
                mass[i] = total
            for j in range(u.shape[1]):
                wanted = u[e, j, k] * total
                a = min(np.searchsorted(mass, wanted), len(mass) - 1)  # the cell
                before = mass[a - 1] if a > 0 else 0.0
                share = (wanted - before) / max(mass[a] - before, 1e-300)
                out[e, j, k] = start[a // CELLS] + (a % CELLS + share) * width[a // CELLS]


def drawn_losses(envs: PureExplorationVectorEnv, root: int, episodes: Ints) -> Floats:
    """Losses of the plug-in answers in all N slots, (N,), each the mean over DRAWS instances; for `drawable` ones.

    Every slot is at the end of its episode. Slots of the same episode draw by the same uniform numbers.
    """
    numbers, which = np.unique(episodes, return_inverse=True)
    random = np.random.default_rng([root, int(numbers[0])])
    source: Any = envs.setting.source
    K, D = envs.task.K, envs.task.D
    shape = len(numbers), DRAWS, K * D
    layers = random.permuted(np.broadcast_to(np.arange(DRAWS)[:, None], shape), axis=1)  # one draw from each layer
    u = (layers + random.random(shape)) / DRAWS
    low, high = np.array(pieces(source), np.float64).T.copy()
    variance = 0.0 if source.distribution == "bernoulli" else source.spread**2
    lost, seen = np.empty(len(episodes)), envs.means()
    answers = envs.problem.plug_in(seen)
    mean = np.nan_to_num(seen).reshape(len(episodes), K * D)
    for first in range(0, len(episodes), CHUNK):
        rows = slice(first, first + CHUNK)
        own = u[which[rows]]
        n, means = np.repeat(envs.pulls[rows].astype(np.float64), D, axis=1), np.empty(own.shape)
        _draw(n, mean[rows], variance, low, high, own, means)
        repeated = np.repeat(answers[rows][:, None], DRAWS, axis=1)
        shown = means if D == 1 else means.reshape(-1, DRAWS, K, D)
        lost[rows] = 1.0 - envs.problem.score(repeated, shown).mean(1)
    return lost


FAINT = 1e-280  # where all likelihoods are below this, those at the ends of the intervals are compared instead


def expectable(envs: PureExplorationVectorEnv) -> bool:
    """Whether `wrong` gives the expected score of an environment's plug-in answers.

    It does where episodes pay the share of arms that are classified correctly, at a boundary that is known and without
    tolerance, and where scalar Bernoulli arms have means drawn by a `Sampler`.
    """
    problem, source = envs.problem, envs.setting.source
    return (
        envs.setting.reward == "score"
        and problem.scores_arms
        and problem.boundary is not None
        and problem.tolerance == 0.0
        and type(source) is Sampler  # a subclass may draw its means from another prior
        and source.distribution == "bernoulli"
        and source.D == 1
    )


def wrong(sampler: Sampler, boundary: float, pulls: Ints, mean: Floats) -> Floats:
    """The probability that the plug-in answer is wrong about an arm, given its samples; elementwise, of any shape.

    An arm is right in the answer if its mean is at least the boundary. Without a pull it is not in the answer.
    """
    special = require("scipy.special", "a posterior")
    states, where = np.unique(pulls + 1j * np.rint(pulls * mean), return_inverse=True)  # many arms share a state
    n, ones = states.real, states.imag
    zeros = n - ones
    with np.errstate(divide="ignore"):  # likelihoods are relative to that of the empirical mean
        peak = special.xlogy(ones, ones / np.maximum(n, 1)) + special.xlogy(zeros, zeros / np.maximum(n, 1))

    def likelihood(x: float) -> Floats:
        density: Floats = np.exp(special.xlogy(ones, x) + special.xlog1py(zeros, -x) - peak)
        return density

    below, above = np.zeros(len(states)), np.zeros(len(states))
    beta = special.betaln(ones + 1, zeros + 1) - peak
    for low, high in pieces(sampler):
        for start, end, mass in ((low, min(high, boundary), below), (max(low, boundary), high, above)):
            if start == end and low == high:
                if (start < boundary) == (mass is below):
                    mass += likelihood(start)
            elif start < end:
                weight = special.betainc(ones + 1, zeros + 1, end) - special.betainc(ones + 1, zeros + 1, start)
                mass += np.maximum(weight, 0.0) * np.exp(beta) + FAINT * (likelihood(start) + likelihood(end))
    answered = (pulls > 0) & (mean >= boundary)
    total = (below + above)[where].reshape(pulls.shape)
    lost = np.where(answered, below[where].reshape(pulls.shape), above[where].reshape(pulls.shape))
    return np.where(total > 0, lost / np.where(total > 0, total, 1.0), 0.5)


def losses(envs: PureExplorationVectorEnv, agent: Any, root: int, episodes: Ints) -> Floats:
    """What an agent loses in each slot's episode, (N,): 1 minus the return, which is the reward less the pulls' price.

    Where the environment is `expectable`, the loss is expected given all samples; where it is `drawable`, it is that on
    instances drawn given all samples. Where only a certificate ends the episodes, the loss is the number of pulls, as
    delta bounds the probability of a wrong answer.

    Args:
        envs: with actions="arm", autoreset DISABLED, and observations in the form that the agent reads.
        agent: has SB3's `predict`.
        root: the root seed of the episodes.
        episodes: the number of each slot's, (N,).
    """
    observation, _ = envs.reset(seed=root, options={"episode": episodes})
    begins, state = np.ones(len(episodes), np.bool_), None
    returns, ended = np.zeros(len(episodes)), np.zeros(len(episodes), np.bool_)
    playing = plays(agent, len(episodes), envs.setting.ranked, envs.task.waits)
    quiet = Quiet(np.full(len(episodes), most_pulls(envs.task) - 1), 2**40)
    while not ended.all():
        if playing:  # the pulls up to the last one, whose price is in no reward
            before = envs.total_pulls.copy()
            arms, state = agent.play(envs.simulation, quiet, observation, state)
            returns -= envs.task.pull_cost * (envs.total_pulls - before)
        else:
            arms, state = agent.predict(observation, state, begins, deterministic=True)
        observation, reward, terminated, truncated, _ = envs.step(arms)
        returns += reward
        begins, ended = np.zeros_like(begins), terminated | truncated
    if by_certificate(envs.task):
        return envs.total_pulls.astype(np.float64)
    cost = envs.task.pull_cost * envs.total_pulls
    if not expectable(envs):
        whole = drawable(envs) and not truncated.any()  # a cut episode pays nothing, with any answer
        return cost + drawn_losses(envs, root, episodes) if whole else 1.0 - returns
    source, boundary, seen = envs.setting.source, envs.problem.boundary, np.nan_to_num(envs.means())
    expected: Floats = cost + wrong(source, boundary, envs.pulls, seen).mean(1)  # type: ignore[arg-type]
    return expected
