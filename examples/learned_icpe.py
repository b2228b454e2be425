"""ICPE: transformers that read raw history, infer the best arm, and learn when to stop, by deep Q-learning.

After Russo, Welch & Pacchiano (In-context learning for pure exploration, ICLR 2026), fixed confidence: one network
infers the best arm, trained on the right answers. Another values the arms, trained as a DQN whose reward is -1 for a
pull and, for stopping, lambda times the log probability that the first network gives to the right answer. Lambda is
moved until the error is delta. Then stopping is calibrated, on episodes of the prior that nothing was trained
on: `icpe` stops where stopping is worth more than any pull by a number, `icpe-sure` where its answer has a probability,
and both are set so that the error is delta less 1.64 standard errors.

Ours differs from the paper's in this: both networks share their weights over the arms (`ArmReader`), and values are
told as what they add to stopping at once. A pull is then paid by how much it raises the reward of stopping, and gains
to come are discounted.

The best of the K arms, means on [0, 1], leads by .2 at least, and samples are N(mean, .3^2).

The arguments are the number of training seeds (default 5), the steps of each training (default 300), the number of
episodes (default 2000), and the numbers of arms (default 4). It prints a row for each agent: pulls and errors. The same
arguments give the same numbers, bit for bit on one machine. A seed takes about half a minute of processor time with 4
arms, one with 8, and two and a half with 14.

    python examples/learned_icpe.py
    python examples/learned_icpe.py 5 300 2000 8
    python examples/learned_icpe.py 1 50 200 4
"""

import copy
import functools
import math
import sys

import numpy as np
import torch
from history_reader import ArmReader, Historian, step, tokens_of
from torch.nn import functional

import agents
from bandit_envs import Sampler

NOISE, GAP, DELTA, BATCH, RATE, KEPT = 0.3, 0.2, 0.1, 64, 3e-3, 100
APART, CHANCE = 0.5, 0.1  # of the steps; of the pulls
UNIT = 50.0  # values are in units of so many pulls
LATER = 0.8  # a discount of gains to come
HELD_OUT = 4000  # episodes for the calibration
RIVALS = ["top-two", "evidence", "track-and-stop", "lucb"]


def longest(K):
    """Samples that a history can have."""
    return 4 * K + 24


def with_gap(u):
    """Means on [0, 1] of which the largest leads by GAP, all such means alike, from uniform numbers (E, K)."""
    means = (1 - GAP) * u
    return means + GAP * (means == means.max(1, keepdims=True))


def at_random(K, random):
    """Histories as long as can be, whose arms are drawn with random shares: as `rolled_out`."""
    means, H = with_gap(random.random((BATCH, K))), longest(K)
    shares = random.dirichlet(np.ones(K), BATCH).cumsum(1)
    arms = (random.random((BATCH, H, 1)) > shares[:, None, :-1]).sum(-1)
    samples = np.take_along_axis(means, arms, 1) + NOISE * random.standard_normal(arms.shape)
    tokens = functional.pad(tokens_of(torch.from_numpy(arms), torch.from_numpy(samples), K), (0, 0, 1, 0))
    return tokens, torch.from_numpy(arms), torch.full((BATCH,), H), torch.from_numpy(means.argmax(1))


@torch.no_grad()
def rolled_out(K, E, random, readers, decide):
    """E episodes of fresh instances.

    Args:
        readers: networks. decide: from what each has told, arrays (n, outputs): the arms (n,), K to stop.

    Returns:
        tokens (E, T + 1, K + 1), arms (E, T), pulls (E,) and best arms (E,); T is the most pulls made.
    """
    means, H = with_gap(random.random((E, K))), longest(K)
    tokens, arms = torch.zeros(E, H + 1, K + 1), torch.zeros(E, H, dtype=torch.int64)
    pulls, rows, kept = np.zeros(E, np.int64), np.arange(E), [reader.cache(E) for reader in readers]
    for t in range(H + 1):
        at, place = torch.from_numpy(rows), torch.full((len(rows),), t)
        told = [reader.read(tokens[at, t], its, at, place).numpy() for reader, its in zip(readers, kept, strict=True)]
        chosen = decide(told)
        going = (chosen < K) & (t < H)
        rows, chosen = rows[going], chosen[going]
        if not len(rows):
            break
        samples = means[rows, chosen] + NOISE * random.standard_normal(len(rows))
        arms[rows, t] = torch.from_numpy(chosen)
        tokens[rows, t + 1] = tokens_of(torch.from_numpy(chosen), torch.from_numpy(samples), K)
        pulls[rows] += 1
    T = int(pulls.max())
    return tokens[:, : T + 1], arms[:, :T], torch.from_numpy(pulls), torch.from_numpy(means.argmax(1))


def train(K, seed, steps):
    """A reader that infers the best arm, and one that tells what pulling an arm adds to stopping at once.

    For the first `APART` of the steps arms are drawn at random, and then in every third one. The others are episodes of
    the largest values, but for a share `CHANCE` of the pulls, and such episodes once more.
    """
    torch.manual_seed(seed)
    random, price, kept = np.random.default_rng(seed), 30.0, []  # price: lambda
    infer, values = (ArmReader(K, longest(K)) for _ in range(2))
    older, rows = copy.deepcopy(values), torch.arange(BATCH)
    optimisers = [torch.optim.Adam(net.parameters(), lr=RATE) for net in (infer, values)]

    def decide(told):
        best = np.where(told[0].max(1) > 0, told[0].argmax(1), K)
        chance = (random.random(len(best)) < CHANCE) & (best < K)
        return np.where(chance, random.integers(K, size=len(best)), best)

    for i in range(steps):
        rate, fresh = RATE * (1 - i / steps), i >= APART * steps and i % 3 == 0
        if i < APART * steps or i % 3 == 1:
            batch = at_random(K, random)
        elif fresh or not kept:
            batch = rolled_out(K, BATCH, random, [values], decide)
            kept = [*kept[1 - KEPT :], batch]
        else:
            batch = kept[random.integers(len(kept))]
        tokens, arms, pulls, best = batch
        T = arms.shape[1]
        place, right = torch.arange(T + 1), best[:, None].expand(BATCH, T + 1)
        inside, goes_on = place <= pulls[:, None], place[:-1] < pulls[:, None]
        told = infer(tokens)
        step(optimisers[0], functional.cross_entropy(told[inside], right[inside]), infer, rate)
        if fresh:
            error = (told[rows, pulls].argmax(-1) != best).float().mean().item()
            price = max(0.0, price + 10 * (error - DELTA))
        if T:
            own = values(tokens)
            with torch.no_grad():  # a pull gains what it adds to the reward of stopping, and what comes later
                sure = price / UNIT * told.log_softmax(-1).gather(-1, right[..., None])[..., 0].clamp(min=-5)
                later = older(tokens).gather(-1, own.argmax(-1, keepdim=True))[..., 0].clamp(min=0)
                worth = sure + LATER * torch.where(place == longest(K), 0, later)
                gain = worth[:, 1:] - sure[:, :-1] - 1 / UNIT
            taken = own[:, :-1].gather(-1, arms[..., None])[..., 0]
            loss = functional.smooth_l1_loss(taken[goes_on], gain[goes_on])
            step(optimisers[1], loss, values, rate)
        with torch.no_grad():
            for weight, new in zip(older.parameters(), values.parameters(), strict=True):
                weight.lerp_(new, 0.1)
    return infer, values


def sureness(told):
    """The probability of the most probable arm, from what the first reader tells (n, K)."""
    share = np.exp(told - told.max(1, keepdims=True))
    return 1 / share.sum(1)


def lead(told):
    """By how much stopping is better than the best pull, from what the second reader tells (n, K)."""
    return -told.max(1)


def calibrated(K, seed, readers):
    """What `lead`, and what `sureness`, must exceed to stop, so that the error is at most delta.

    The pulls of an episode do not depend on when it stops, so that one run without an end tells the error of every such
    rule. The episodes are fresh ones of the prior.
    """
    seen = []

    def decide(told):
        seen.append((told[0].argmax(1), lead(told[1]), sureness(told[0])))
        return told[1].argmax(1)

    best = rolled_out(K, HELD_OUT, np.random.default_rng([seed, 1]), readers, decide)[3].numpy()
    answers, *signs = (np.stack(parts, 1) for parts in zip(*seen, strict=True))
    right, limit = answers == best[:, None], DELTA - 1.64 * math.sqrt(DELTA * (1 - DELTA) / HELD_OUT)
    found = []
    for sign in signs:
        levels = np.quantile(sign, np.linspace(0, 1, 501))
        sign[:, -1] = np.inf  # the last place ends the episode
        ends = [(sign > level).argmax(1) for level in levels]
        errors = np.array([1 - right[np.arange(HELD_OUT), end].mean() for end in ends])
        good = np.flatnonzero(errors <= limit)
        found.append(float(levels[good[0] if len(good) else errors.argmin()]))
    return found


class ICPE(Historian):
    """Pulls the arm with the largest value, and stops where stopping leads by more than `level`."""

    name, stops = "icpe", True

    def __init__(self, task, readers, level):
        super().__init__(task, readers)
        self.level = level

    def sign(self, state):
        """What must exceed the level."""
        return lead(state.told[1])

    def choose(self, observation, state):
        self.catch_up(observation, state)
        return np.where(self.sign(state) > self.level, self.task.K, state.told[1].argmax(1))


class ICPESure(ICPE):
    """The same, but it stops where its answer is more probable than `level`."""

    name = "icpe-sure"

    def sign(self, state):
        return sureness(state.told[0])


class Posterior(agents.Agent):
    """Knows the prior with the gap: pulls the rarer of the two most probable arms, stops at probability 1 - delta."""

    name, source, solves, stops = "posterior", "Bayes' rule", ("BestArm",), True

    def probabilities(self, observation):
        """The posterior probability of each arm to be the best, (E, K)."""
        x = (np.arange(100) + 0.5) / 100
        n, mean = observation["pulls"][..., None], observation["mean"][..., None]
        exponent = -n * (x - mean) ** 2 / (2 * NOISE**2)
        density = np.exp(exponent - exponent.max(-1, keepdims=True))
        below, shift = np.zeros_like(density), round(GAP * 100)
        below[..., shift:] = density.cumsum(-1)[..., :-shift]
        arms = range(self.task.K)
        joint = np.stack([(density[:, i] * np.delete(below, i, 1).prod(1)).sum(-1) for i in arms], 1) + 1e-300
        return joint / joint.sum(1, keepdims=True)

    def choose(self, observation, state):
        sure = self.probabilities(observation)
        first, second = np.argsort(-sure, axis=1)[:, :2].T
        rows, pulls = np.arange(len(sure)), observation["pulls"]
        rarer = np.where(pulls[rows, first] <= pulls[rows, second], first, second)
        return np.where(sure.max(1) >= 1 - self.task.delta, self.task.K, rarer)

    def recommend(self, observation, state=None, slots=None):
        sure = self.probabilities(observation)
        sure = sure if slots is None else sure[slots]
        return np.arange(self.task.K) == sure.argmax(1)[:, None]


class Ahead(Sampler):
    """K Gaussian arms whose means are uniform on [0, 1], given that the best leads by GAP."""

    name = "ahead"

    def __init__(self, K):
        super().__init__("gaussian", K, {"uniform": [0, 1]}, spread=NOISE)

    def draw(self, key, episode):
        means, _ = super().draw(key, episode)
        means = with_gap(means)
        return means, self.pack(means[..., None])

    def to_dict(self):
        return {self.name: {"arms": self.K}}


def evaluated(K, found, episodes, **rules):
    """Print pulls and errors."""
    rules = {"instance": Ahead(K), "delta": DELTA, **rules}
    result = agents.evaluate(found, "BestArm", episodes=episodes, seed=2026, env_kwargs=rules, progress=False)
    for run in result.runs:
        pulls, correct = run.values("total_pulls"), run.values("correct")
        print(f"| K = {K} | {run.agent} | {pulls.mean():.1f} | {1 - correct.mean():.4f} |", flush=True)


def main(seeds, steps, episodes, Ks):
    """Train, and evaluate beside handcrafted agents on the same episodes."""
    torch.set_num_threads(1)
    for K in Ks:
        evaluated(K, {"posterior": Posterior} | {name: name for name in RIVALS}, episodes)
        for seed in range(seeds):
            readers = train(K, seed, steps)
            levels = calibrated(K, seed, readers)
            learned = {
                f"{kind.name}, seed {seed}": functools.partial(kind, readers=readers, level=level)
                for kind, level in zip((ICPE, ICPESure), levels, strict=True)
            }
            evaluated(K, learned, episodes, max_pulls=longest(K))


if __name__ == "__main__":
    given = [int(text) for text in sys.argv[1:]]
    main(*[*given[:3], *(5, 300, 2000)[len(given) :]], given[3:] or [4])
