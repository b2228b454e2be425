"""DPT: a transformer that reads raw history and names the best arm, trained on the right answers.

After Lee et al. (Supervised pretraining can learn in-context reinforcement learning, NeurIPS 2023): 5 arms with means
uniform on [0, 1], N(mean, .3^2), and what any fixed sampling has shown. It pulls an arm drawn from what it predicts,
and answers the most probable one.

The arguments are the number of training seeds (default 5), the steps of each training (default 2000, about 70 s on
one core) and the number of episodes (default 2000). The same arguments give the same numbers, bit for bit on
one machine.

    python examples/learned_dpt.py
    python examples/learned_dpt.py 1 100 200
"""

import functools
import sys

import numpy as np
import torch
from history_reader import Historian, Reader, step, tokens_of
from torch.nn import functional

import agents
from bandit_envs import agent_uniforms

K, LONGEST, NOISE, BATCH, RATE = 5, 50, 0.3, 64, 3e-3
PRIOR = {"sampler": {"distribution": "gaussian", "arms": K, "spread": NOISE, "mean": {"uniform": [0, 1]}}}
RIVALS = ["uniform", "sequential-halving(reuse=True)", "kl-lucb", "top-two", "evolved"]


def train(seed, steps):
    """A reader that predicts the best arm from what random shares of the pulls have shown."""
    torch.manual_seed(seed)
    random, reader = np.random.default_rng(seed), Reader(K, LONGEST, K)
    optimiser = torch.optim.AdamW(reader.parameters(), lr=RATE, weight_decay=1e-4)
    for i in range(steps):
        means, one = random.random((BATCH, K)), np.eye(K)[random.integers(K, size=BATCH)]
        mass = random.integers(11, size=(BATCH, 1)) / 10  # on a single arm; the rest is Dirichlet
        shares = np.cumsum((1 - mass) * random.dirichlet(np.ones(K), BATCH) + mass * one, axis=1)
        arms = (random.random((BATCH, LONGEST, 1)) > shares[:, None, :-1]).sum(-1)
        samples = np.take_along_axis(means, arms, 1) + NOISE * random.standard_normal(arms.shape)
        tokens = tokens_of(torch.from_numpy(arms), torch.from_numpy(samples), K)
        told = reader(functional.pad(tokens, (0, 0, 1, 0)))
        best = torch.from_numpy(means.argmax(1))[:, None].expand(BATCH, LONGEST + 1)
        loss = functional.cross_entropy(told.flatten(0, 1), best.flatten())
        step(optimiser, loss, reader, RATE * (1 - i / steps))
    return reader


class DPT(Historian):
    """Pulls an arm that is drawn from what is predicted."""

    name = "dpt"

    def choose(self, observation, state):
        self.catch_up(observation, state)
        shares = np.exp(state.told[0] - state.told[0].max(1, keepdims=True)).cumsum(1)
        lots = agent_uniforms(observation["public_seed"][:, 0], observation["length"][:, 0])[:, :1]
        return (lots * shares[:, -1:] > shares[:, :-1]).sum(1)


class DPTPlain(DPT):
    """The same, but its answer is the arm with the best empirical mean."""

    name = "dpt-plain"

    def recommend(self, observation, state=None, slots=None):
        return agents.Agent.recommend(self, observation, state, slots)


def main(seeds, steps, episodes):
    """Train, and evaluate beside handcrafted agents."""
    torch.set_num_threads(1)
    learned = {}
    for seed in range(seeds):
        readers = [train(seed, steps)]
        for kind in (DPT, DPTPlain):
            learned[f"{kind.name}, seed {seed}"] = functools.partial(kind, readers=readers)
    for budget in (25, 50):
        result = agents.evaluate(
            learned | {name: name for name in RIVALS},
            "BestArm",
            episodes=episodes,
            seed=2026,
            env_kwargs={"instance": PRIOR, "budget": budget},
            progress=False,
        )
        for run in result.runs:
            score, correct = run.values("score"), run.values("correct")
            print(f"| T = {budget} | {run.agent} | {1 - score.mean():.4f} | {1 - correct.mean():.4f} |", flush=True)


if __name__ == "__main__":
    main(*(int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((1, 5), (2, 2000), (3, 2000))))
