"""Two agents that read raw history: a transformer that sees every sample in turn, and no statistics.

`dpt`, after Lee et al. (Supervised pretraining can learn in-context reinforcement learning, NeurIPS 2023): trained to
name the best of 5 arms from what any fixed sampling has shown, N(mean, .3^2) with means uniform on [0, 1]. It pulls an
arm drawn from what it predicts, and answers the most probable one.

`icpe`, after Russo, Welch & Pacchiano (In-context learning for pure exploration, ICLR 2026): one network infers the
best arm, trained on the right answers; another has the values of the arms and of stopping, trained as a DQN by -1 for a
pull and lambda times the log probability that the first network gives to the right answer for stopping. Lambda is moved
until the error is delta. The best of the K arms, means on [0, 1], leads by .2 at least; N(mean, .3^2).

The arguments are which of the two, the number of training seeds (default 5), the seconds of processor time for each
training (default 90), the number of episodes (default 2000), and for `icpe` K (default 4).

    python examples/learned_history.py dpt
    python examples/learned_history.py icpe 1 30 500 4
"""

import copy
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import agents
from bandit_envs import Sampler

WHAT = sys.argv[1] if len(sys.argv) > 1 else "dpt"
SEEDS, SECONDS, EPISODES, ARMS = (
    int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((2, 5), (3, 90), (4, 2000), (5, 4))
)
K, LONGEST = (5, 50) if WHAT == "dpt" else (ARMS, 10 * ARMS)  # arms, samples in a history
NOISE, GAP, DELTA, BATCH, WIDTH, LAYERS, HEADS = 0.3, 0.2, 0.1, 64, 32, 2, 2
RATE, UNIT = 3e-3, 50.0  # of learning, at first; values are in units of so many pulls


class Layer(nn.Module):
    """Attention to what came before, and a small network."""

    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.look, self.mix = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.think = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, cache=None, at=0):
        """x (B, T, WIDTH); with a cache of keys and values, only what comes at place `at`."""
        q, k, v = self.look(self.before(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        if cache is not None:
            cache[0, :, :, at], cache[1, :, :, at] = k[:, :, 0], v[:, :, 0]
            k, v = cache[:, :, :, : at + 1]
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        x = x + self.mix(seen.transpose(1, 2).flatten(-2))
        return x + self.think(self.after(x))


class Reader(nn.Module):
    """A causal transformer: of a history of t samples it tells `outputs` numbers, for each t from 0 on."""

    def __init__(self, outputs):
        super().__init__()
        self.embed, self.places = nn.Linear(K + 1, WIDTH), nn.Embedding(LONGEST + 1, WIDTH)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.end, self.tell = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, outputs)

    def forward(self, tokens, caches=None, at=0):
        """tokens (B, T, K + 1): which arm, and its sample; all 0 at the start."""
        x = self.embed(tokens) + self.places.weight[at : at + tokens.shape[1]]
        for i, layer in enumerate(self.layers):
            x = layer(x, None if caches is None else caches[i], at)
        return self.tell(self.end(x))


def caches_for(episodes):
    """Room for the keys and values of one reader."""
    return torch.zeros(LAYERS, 2, episodes, HEADS, LONGEST + 1, WIDTH // HEADS)


def tokens_of(arms, samples):
    """Tokens (..., K + 1) of arms and samples (...)."""
    return torch.cat([functional.one_hot(arms, K).float(), (2 * samples - 1)[..., None]], -1)


# --- training ---------------------------------------------------------------------------------------------------------


def train_dpt(seed):
    """A reader that predicts the best arm from what random shares of the pulls have shown."""
    torch.manual_seed(seed)
    random, reader = np.random.default_rng(seed), Reader(K)
    optimiser = torch.optim.AdamW(reader.parameters(), lr=RATE, weight_decay=1e-4)
    began, done = time.process_time(), 0.0
    while done < 1:
        means, one = random.random((BATCH, K)), np.eye(K)[random.integers(K, size=BATCH)]
        mass = random.integers(11, size=(BATCH, 1)) / 10  # on a single arm; the rest is Dirichlet
        shares = np.cumsum((1 - mass) * random.dirichlet(np.ones(K), BATCH) + mass * one, axis=1)
        arms = (random.random((BATCH, LONGEST, 1)) > shares[:, None, :-1]).sum(-1)
        samples = np.take_along_axis(means, arms, 1) + NOISE * random.standard_normal(arms.shape)
        tokens = tokens_of(torch.from_numpy(arms), torch.from_numpy(samples).float())
        told = reader(functional.pad(tokens, (0, 0, 1, 0)))
        best = torch.from_numpy(means.argmax(1))[:, None].expand(BATCH, LONGEST + 1)
        loss = functional.cross_entropy(told.flatten(0, 1), best.flatten())
        step(optimiser, loss, reader, RATE * (1 - done))
        done = (time.process_time() - began) / SECONDS
    return reader


def step(optimiser, loss, net, rate):
    """One step of the optimiser at this rate."""
    for group in optimiser.param_groups:
        group["lr"] = max(rate, 1e-5)
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimiser.step()


def with_gap(u):
    """Means on [0, 1] of which the largest leads by GAP, all such means alike, from uniform numbers (E, K)."""
    means = (1 - GAP) * u
    return means + GAP * (means == means.max(1, keepdims=True))


@torch.no_grad()
def rolled_out(values, random, epsilon):
    """Episodes under the values: tokens (B, LONGEST + 1, K + 1), arms (B, LONGEST), pulls (B,), best arms (B,)."""
    means = with_gap(random.random((BATCH, K)))
    tokens, arms = torch.zeros(BATCH, LONGEST + 1, K + 1), torch.zeros(BATCH, LONGEST, dtype=torch.int64)
    pulls, running, caches = torch.zeros(BATCH, dtype=torch.int64), np.ones(BATCH, bool), caches_for(BATCH)
    for t in range(LONGEST):
        chosen = values(tokens[:, t : t + 1], caches, t)[:, 0].argmax(-1).numpy()
        chosen = np.where(random.random(BATCH) < epsilon, random.integers(K + (t % 8 == 7), size=BATCH), chosen)
        running &= chosen < K
        if not running.any():
            break
        arms[:, t] = torch.from_numpy(np.minimum(chosen, K - 1))
        samples = means[np.arange(BATCH), arms[:, t]] + NOISE * random.standard_normal(BATCH)
        tokens[:, t + 1] = tokens_of(arms[:, t], torch.from_numpy(samples).float())
        pulls += torch.from_numpy(running)
    return tokens, arms, pulls, torch.from_numpy(means.argmax(1))


def train_icpe(seed):
    """The readers that infer the best arm, and that value the arms and stopping. price: lambda."""
    torch.manual_seed(seed)
    random, price, began, done, kept = np.random.default_rng(seed), 15.0, time.process_time(), 0.0, []
    infer, values = Reader(K), Reader(K + 1)
    older = [copy.deepcopy(net) for net in (infer, values)]
    optimisers = [torch.optim.Adam(net.parameters(), lr=RATE) for net in (infer, values)]
    while done < 1:
        kept = [*kept[-99:], rolled_out(values, random, max(0.05, 1 - 3 * done))]
        tokens, arms, pulls, best = kept[-1]
        with torch.no_grad():
            answers = infer(tokens)[torch.arange(BATCH), pulls].argmax(-1)
        if done > 0.3:  # before, the answers tell how well the reader infers
            price = max(0.0, price - 5 * ((answers == best).float().mean().item() - (1 - DELTA)))
        for batch in (kept[-1], kept[random.integers(len(kept))]):
            tokens, arms, pulls, best = batch
            place, rows = torch.arange(LONGEST + 1), torch.arange(BATCH)[:, None]
            inside = place <= pulls[:, None]
            right = best[:, None].expand(BATCH, LONGEST + 1)
            told = infer(tokens)
            step(optimisers[0], functional.cross_entropy(told[inside], right[inside]), infer, RATE * (1 - done))
            with torch.no_grad():
                sure = torch.log_softmax(older[0](tokens), -1)[rows, place, right].clamp(min=-5)
                ends = price / UNIT * sure
            own = values(tokens)
            with torch.no_grad():  # what comes later is worth what the older values say of the best action now
                later = older[1](tokens).gather(-1, own.argmax(-1, keepdim=True))[..., 0]
                later[:, -1] = ends[:, -1]
            taken = own[:, :-1].gather(-1, arms[..., None])[..., 0]
            goes_on = place[:-1] < pulls[:, None]
            loss = functional.smooth_l1_loss(taken[goes_on], (later[:, 1:] - 1 / UNIT)[goes_on])
            loss = loss + functional.smooth_l1_loss(own[..., K][inside], ends[inside])
            step(optimisers[1], loss, values, RATE * (1 - done))
            for net, old in zip((infer, values), older, strict=True):
                for new_weight, weight in zip(net.parameters(), old.parameters(), strict=True):
                    weight.data.lerp_(new_weight.data, 0.05)
        done = (time.process_time() - began) / SECONDS
    return infer, values


# --- agents -----------------------------------------------------------------------------------------------------------


@dataclass
class History:
    """What has been read of E episodes: the statistics of the last look, and what the readers made of it."""

    pulls: Any
    total: Any
    read: int
    caches: list
    told: list  # what each reader tells now
    lots: Any  # (E, LONGEST + 1) uniform numbers


class Historian(agents.Agent):
    """Reads the samples one by one, as differences of the statistics."""

    source, solves, resumes = "see above", ("BestArm",), False

    def __init__(self, task, readers):
        super().__init__(task)
        self.readers = readers

    def remember(self, observation):
        E = len(observation["pulls"])
        lots = np.stack([np.random.default_rng(int(s)).random(LONGEST + 1) for s in observation["public_seed"][:, 0]])
        caches = [caches_for(E) for _ in self.readers]
        state = History(np.zeros((E, K), np.int64), np.zeros((E, K)), -1, caches, [], lots)
        self.look(torch.zeros(E, 1, K + 1), state)
        return state

    @torch.no_grad()
    def look(self, tokens, state):
        """Read one token of each episode."""
        state.read += 1
        both = zip(self.readers, state.caches, strict=True)
        state.told = [reader(tokens, caches, state.read)[:, 0].numpy() for reader, caches in both]

    def catch_up(self, observation, state):
        """Read the last sample of each episode, if there is one."""
        new = observation["pulls"] - state.pulls
        if new.any():
            arms, samples = torch.from_numpy(new.argmax(1)), (observation["total"] - state.total).sum(1)
            self.look(tokens_of(arms, torch.from_numpy(samples).float())[:, None], state)
            state.pulls, state.total = observation["pulls"].copy(), observation["total"].copy()

    def recommend(self, observation, state=None, slots=None):
        self.catch_up(observation, state)
        told = state.told[0] if slots is None else state.told[0][slots]
        return np.arange(K) == told.argmax(1)[:, None]


class DPT(Historian):
    """Pulls an arm that is drawn from what is predicted."""

    name = "dpt"

    def choose(self, observation, state):
        self.catch_up(observation, state)
        shares = np.exp(state.told[0] - state.told[0].max(1, keepdims=True)).cumsum(1)
        lots = state.lots[:, state.read, None] * shares[:, -1:]
        return (lots > shares[:, :-1]).sum(1)


class DPTPlain(DPT):
    """The same, but its answer is the arm with the best empirical mean."""

    name = "dpt-plain"

    def recommend(self, observation, state=None, slots=None):
        return agents.Agent.recommend(self, observation, state, slots)


class ICPE(Historian):
    """Does what has the largest value, which may be to stop."""

    name, stops = "icpe", True

    def choose(self, observation, state):
        self.catch_up(observation, state)
        return np.where(state.read >= LONGEST, K, state.told[1].argmax(1))


class Posterior(agents.Agent):
    """Told the law with the gap: pulls the rarer of the two most probable arms, and stops at probability 1 - delta."""

    name, source, solves, stops = "posterior", "Bayes' rule", ("BestArm",), True

    def probabilities(self, observation):
        """The posterior probability of each arm to be the best, (E, K)."""
        x = (np.arange(100) + 0.5) / 100
        n, mean = observation["pulls"][..., None], observation["mean"][..., None]
        exponent = -n * (x - mean) ** 2 / (2 * NOISE**2)
        density = np.exp(exponent - exponent.max(-1, keepdims=True))
        below = np.zeros_like(density)
        shift = round(GAP * 100)
        below[..., shift:] = density.cumsum(-1)[..., :-shift]
        joint = np.stack([(density[:, i] * np.delete(below, i, 1).prod(1)).sum(-1) for i in range(K)], 1) + 1e-300
        return joint / joint.sum(1, keepdims=True)

    def choose(self, observation, state):
        sure = self.probabilities(observation)
        first, second = np.argsort(-sure, axis=1)[:, :2].T
        rows, pulls = np.arange(len(sure)), observation["pulls"]
        rarer = np.where(pulls[rows, first] <= pulls[rows, second], first, second)
        return np.where(sure.max(1) >= 1 - self.task.delta, K, rarer)

    def recommend(self, observation, state=None, slots=None):
        sure = self.probabilities(observation)
        sure = sure if slots is None else sure[slots]
        return np.arange(K) == sure.argmax(1)[:, None]


class Ahead(Sampler):
    """Gaussian arms whose means are uniform on [0, 1], given that the best leads by GAP."""

    name = "ahead"

    def __init__(self):
        super().__init__("gaussian", K, {"uniform": [0, 1]}, spread=NOISE)

    def draw(self, key, episode):
        means, _ = super().draw(key, episode)
        means = with_gap(means)
        return means, self.pack(means[..., None])

    def to_dict(self):
        return {self.name: {"arms": K}}


def trained(kind, readers):
    """What makes the agent from a task."""
    return lambda task: kind(task, readers)


torch.set_num_threads(1)
if WHAT == "dpt":
    learned = {}
    for seed in range(SEEDS):
        reader = train_dpt(seed)
        learned |= {f"dpt, seed {seed}": trained(DPT, [reader]), f"dpt-plain, seed {seed}": trained(DPTPlain, [reader])}
    rivals = ["uniform", "sequential-halving(reuse=True)", "kl-lucb", "top-two", "evolved"]
    law = {"sampler": {"law": "gaussian", "arms": K, "spread": NOISE, "mean": {"uniform": [0, 1]}}}
    for budget in (25, 50):
        result = agents.evaluate(
            learned | {name: name for name in rivals},
            "BestArm",
            episodes=EPISODES,
            seed=2026,
            env_kwargs={"instance": law, "budget": budget},
            progress=False,
        )
        for run in result.runs:
            score, correct = run.values("score"), run.values("correct")
            print(f"| T = {budget} | {run.agent} | {1 - score.mean():.4f} | {1 - correct.mean():.4f} |", flush=True)
else:
    learned = {f"icpe, seed {seed}": trained(ICPE, train_icpe(seed)) for seed in range(SEEDS)}
    rivals = ["top-two", "evidence", "track-and-stop", "lucb"]
    for found in (learned | {"posterior": Posterior}, {name: name for name in rivals}):
        result = agents.evaluate(
            found,
            "BestArm",
            episodes=EPISODES,
            seed=2026,
            env_kwargs={"instance": Ahead(), "delta": DELTA},
            progress=False,
        )
        for run in result.runs:
            pulls, correct = run.values("total_pulls"), run.values("correct")
            print(f"| K = {K} | {run.agent} | {pulls.mean():.1f} | {1 - correct.mean():.4f} |", flush=True)
