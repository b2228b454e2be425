"""R-go tracking on three Bernoulli arms: a network, trained for the worst case, tells which share each arm should get.

After Komiyama, Tsuchiya & Honda (Minimax optimal algorithms for fixed-budget best arm identification, NeurIPS 2022).
The network r maps the empirical means Q to shares of the pulls, and is trained to raise

    min over means P and Q with another best arm of   H(P) sum over k of r_k(Q) kl(Q_k, P_k)

by the pair where it is least, of pairs drawn at random; H(P) is the sum of 1 / gap^2. The agent pulls the arm that is
farthest behind its share. The arguments are the number of training seeds (default 5), the steps of training (default
3,000: 20 seconds) and the number of episodes (default 5,000).

    python examples/learned_rgo.py
    python examples/learned_rgo.py 1 1000 500
"""

import sys
import time
from typing import NamedTuple

import numpy as np
import torch
from torch import nn

import agents
from agents.core import count_pulls, pull, setting

SEEDS, STEPS, EPISODES = (
    int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((1, 5), (2, 3000), (3, 5000))
)
GROUPS, TRUE, EMPIRICAL = 32, 15, 90  # minima in a step, and of how many P and Q each is the least
PAPER = ([0.5, 0.45, 0.3], [0.5, 0.45, 0.05], [0.5, 0.45, 0.45])
RIVALS = ["uniform", "successive-rejects", "sequential-halving(reuse=True)", "kl-lucb", "top-two", "evolved"]
CELLS = [
    *((str(means), {"distribution": "bernoulli", "mean": means}, budget) for means in PAPER for budget in (500, 2000)),
    ("uniform means", "sampler(arms=3)", 100),
    ("uniform means", "sampler(arms=3)", 500),
]


class Shares(nn.Module):
    """The network of the paper: nine units, two residual layers."""

    def __init__(self):
        super().__init__()
        self.first, self.inner = nn.Linear(3, 9), nn.ModuleList([nn.Linear(9, 9) for _ in range(2)])
        self.last = nn.Linear(9, 3)

    def forward(self, means):
        h = torch.relu(self.first(means))
        for layer in self.inner:
            h = torch.relu(h + layer(h))
        return torch.softmax(self.last(h), dim=-1)


class Weights(NamedTuple):
    """The same as arrays, and scratch for three layers."""

    first: np.ndarray
    first_bias: np.ndarray
    inner: np.ndarray
    inner_bias: np.ndarray
    last: np.ndarray
    last_bias: np.ndarray
    scratch: np.ndarray


def train(seed):
    """A network, by so many steps of AdamW."""
    torch.manual_seed(seed)
    net = Shares()
    optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-7)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
    for _ in range(STEPS):
        P, Q = torch.rand(GROUPS, TRUE, 1, 3), torch.rand(GROUPS, 1, EMPIRICAL, 3)
        P, Q = P.clamp(1e-6, 1 - 1e-6), Q.clamp(1e-6, 1 - 1e-6)  # so that no divergence is infinite
        best = P.max(-1, keepdim=True).values
        H = (torch.where(best == P, 0.0, 1 / (best - P).clamp(min=1e-5) ** 2)).sum(-1)
        kl = torch.special.xlogy(Q, Q / P) + torch.special.xlogy(1 - Q, (1 - Q) / (1 - P))
        other = P.argmax(-1) != Q.argmax(-1)
        exponent = torch.where(other, H * (net(Q) * kl).sum(-1), torch.inf)
        loss = -exponent.flatten(1).min(1).values.mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    arrays = {name: value.detach().numpy().astype(np.float64) for name, value in net.state_dict().items()}
    inner = [np.stack([arrays[f"inner.{i}.{kind}"] for i in range(2)]) for kind in ("weight", "bias")]
    ends = [arrays[f"{layer}.{kind}"] for layer in ("first", "last") for kind in ("weight", "bias")]
    return Weights(*ends[:2], *inner, *ends[2:], np.zeros((3, 9)))


class RGo(agents.Algorithm):
    """Tracks the shares that a network tells."""

    name, source, solves = "r-go", "Komiyama, Tsuchiya & Honda, NeurIPS 2022", ("BestArm",)
    reads = ()
    net = setting(Weights)

    def __init__(self, task, net):
        super().__init__(task)
        self.net = Weights(*net)

    def sample(ep, own):
        """Pull the arm that lacks most pulls of its share."""
        net, x = own.net, own.net.scratch
        for i in range(9):
            x[0, i] = net.first_bias[i]
            for j in range(3):
                x[0, i] += net.first[i, j] * ep.mean[j]
            x[0, i] = max(x[0, i], 0.0)
        for layer in range(2):
            for i in range(9):
                x[layer + 1, i] = x[layer, i] + net.inner_bias[layer, i]
                for j in range(9):
                    x[layer + 1, i] += net.inner[layer, i, j] * x[layer, j]
                x[layer + 1, i] = max(x[layer + 1, i], 0.0)
        total = 0.0
        for k in range(3):
            x[0, k] = net.last_bias[k]
            for j in range(9):
                x[0, k] += net.last[k, j] * x[2, j]
            x[0, k] = np.exp(x[0, k])
            total += x[0, k]
        which, most, spent = 0, -np.inf, 1.0 + count_pulls(ep)
        for k in range(3):
            behind = spent * x[0, k] / total - ep.pulls[k]
            if behind > most:
                which, most = k, behind
        pull(ep, which)


def trained(net):
    """What makes the agent from a task."""
    return lambda task: RGo(task, tuple(net))


torch.set_num_threads(1)
began, nets = time.process_time(), {}
for seed in range(SEEDS):
    nets[f"r-go, seed {seed}"] = trained(train(seed))
print(f"{SEEDS} trainings of {STEPS} steps: {time.process_time() - began:.0f} s of processor time")
for label, instance, budget in CELLS:
    kwargs = {"instance": instance, "budget": budget, "shuffle_arms": True}
    result = agents.evaluate(
        {**nets, **{name: name for name in RIVALS}},
        "BestArm",
        episodes=EPISODES,
        seed=2026,
        env_kwargs=kwargs,
        progress=False,
    )
    errors = {run.agent: 1 - run.values("correct").mean() for run in result.runs}
    mine = [errors.pop(name) for name in nets]
    print(f"| {label}, {budget} | {np.median(mine):.4f} ({', '.join(f'{x:.4f}' for x in mine)}) |", end=" ")
    print(" | ".join(f"{x:.4f}" for x in errors.values()), "|", flush=True)
