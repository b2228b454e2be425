"""In-context learners: one network that reads raw histories, trained on recorded trajectories, and then by PPO.

BestArm, K = 8 arms, T = 80 pulls, samples 0 or 1. A GRU reads the samples of each arm, with the same weights for all
arms; a small network compares the arms. It says four numbers of each arm: how probable it is that the arm is the best,
the mean of the arm, how good it is to pull it, and what is still to be gained.

1. `agents.record` writes down episodes of two agents with their truth.
2. The labels: the right answer and the true means, after each pull of any of them, and the next pull of `evolved`.
   Played by the first number, an arm is drawn by how probable it is that it is the best: DPT, after Lee et al.
   (Supervised pretraining can learn in-context reinforcement learning, NeurIPS 2023). Played by the third, `evolved` is
   imitated. The answer is the arm whose mean is told to be the largest.
3. PPO goes on from there, with the gains of the environment as rewards.

The arguments are the steps by labels (default 3500), the iterations of PPO (default 60), the number of episodes of
the judgement (default 20,000), and the instance. The same arguments give the same numbers on one machine.

    python examples/in_context.py
    python examples/in_context.py 20 1 40
    python examples/in_context.py 1000 30 4000 "score-tables(K=8, N=80)"
"""

import copy
import functools
import sys
import time

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.nn import functional

import agents
from bandit_envs import agent_uniforms

K, T, WIDTH = 8, 80, 16
BEST, MEAN, PULL, GAIN = range(4)  # what is said of each arm
SCALE = 100.0  # of the rewards


class Reader(nn.Module):
    """What histories say of their arms; arms are treated alike."""

    def __init__(self):
        super().__init__()
        self.read = nn.GRU(1, WIDTH, batch_first=True)
        self.own, self.all = (nn.ModuleList(nn.Linear(WIDTH + i, WIDTH) for i in more) for more in ((0, 0), (1, 0)))
        self.say = nn.Linear(WIDTH, 4)

    def compare(self, h, share):
        """What was read of each arm, h (..., K, WIDTH), and the share of the pulls made (...), to (..., K, 4)."""
        x = functional.gelu(self.own[0](h) + self.all[0](torch.cat([h.mean(-2), share[..., None]], -1))[..., None, :])
        x = x + functional.gelu(self.own[1](x) + self.all[1](x.mean(-2))[..., None, :])
        return self.say(x)

    def next(self, h, sample):
        """What is known of arms, h (n, WIDTH), after one more sample (n,) of each."""
        return self.read(2 * sample[:, None, None] - 1, h[None])[1][0]

    def forward(self, arms, samples):
        """Whole histories, arms and samples (B, T), to what is said after 0, 1, .. T pulls (B, T + 1, K, 4)."""
        episode = torch.arange(len(arms))[:, None]
        pulls = functional.pad(functional.one_hot(arms, K).cumsum(1), (0, 0, 1, 0))  # (B, T + 1, K)
        before = pulls[:, :-1].gather(2, arms[..., None])[..., 0]
        of_arms = torch.zeros(len(arms), K, int(pulls.max()))
        of_arms[episode, arms, before] = 2 * samples - 1
        read = self.read(of_arms.flatten(0, 1)[..., None])[0].unflatten(0, (len(arms), K))
        read = functional.pad(read, (0, 0, 1, 0))  # zeros before the first sample
        h = read[episode[..., None], torch.arange(K), pulls]
        return self.compare(h, (torch.arange(T + 1) / T).expand(len(arms), -1))


class InContext(agents.Agent):
    """Draws the next arm by one of the numbers that a reader says, and answers the arm with the largest mean."""

    name, source, solves, observation = "in-context", "see the example", ("BestArm",), "history"

    def __init__(self, task, reader, by):
        super().__init__(task)
        self.reader, self.by = reader, by

    def initial_state(self, observation):
        E = len(observation["length"])
        return torch.zeros(E, K, WIDTH), np.zeros(E, np.int64)  # what was read, and how many pulls of it

    @torch.no_grad()
    def said(self, observation, state):
        """Read what has not been read; what is said then (E, K, 4)."""
        (h, done), length = state, observation["length"][:, 0]
        begun = length < done  # another episode
        h[torch.from_numpy(begun)], done[begun] = 0.0, 0
        while len(rows := np.flatnonzero(done < length)):
            arms, samples = (observation[name][rows, done[rows]] for name in ("arms", "samples"))
            h[rows, arms] = self.reader.next(h[rows, arms], torch.from_numpy(samples).float())
            done[rows] += 1
        return self.reader.compare(h, torch.from_numpy(length).float() / T)

    def choose(self, observation, state):
        shares = self.said(observation, state)[..., self.by].softmax(-1).cumsum(-1).numpy()
        lots = agent_uniforms(observation["public_seed"][:, 0], observation["length"][:, 0])[:, :1]
        return (lots * shares[:, -1:] > shares[:, :-1]).sum(1)

    def recommend(self, observation, state=None, slots=None):
        state = self.initial_state(observation) if state is None else state
        means = self.said(observation, state)[..., MEAN].numpy()
        means = means if slots is None else means[slots]
        return np.arange(K) == means.argmax(1)[:, None]


def step(optimiser, loss, reader, rate):
    """One step of the optimiser at this rate."""
    optimiser.param_groups[0]["lr"] = rate
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
    optimiser.step()


def losses_of_labels(said, episodes):
    """Cross entropies of the best arm and of the pulls, and the squared error of the means."""
    best = episodes["right_answer"].float().argmax(1)[:, None].expand(-1, T + 1)
    best_loss = functional.cross_entropy(said[..., BEST].flatten(0, 1), best.flatten())
    means = episodes["means"].float()[:, None].expand(-1, T + 1, -1)
    pull = functional.cross_entropy(said[:, :-1, :, PULL].flatten(0, 1), episodes["arms"].flatten(), reduction="none")
    imitated = episodes["imitated"].repeat_interleave(T)
    return best_loss, functional.mse_loss(said[..., MEAN], means), (pull * imitated).sum() / imitated.sum().clamp(min=1)


def by_labels(reader, recorded, steps, rate=4e-3, batch=64):
    """Supervised learning from recorded episodes."""
    optimiser = torch.optim.Adam(reader.parameters(), lr=rate)
    for i in range(steps):
        rows = torch.randint(len(recorded["arms"]), (batch,))
        episodes = {name: values[rows] for name, values in recorded.items()}
        best, means, pull = losses_of_labels(reader(episodes["arms"], episodes["samples"]), episodes)
        step(optimiser, best + 10 * means + pull, reader, rate * max(1 - i / steps, 0.02))


def by_ppo(reader, rules, iterations, rate=3e-4, E=512, batch=128, epochs=3, decay=0.8):
    """PPO whose rewards are the gains of the environment; the means go on being learned from the truth."""
    envs = gym.make_vec("bandit_envs/BestArm-v0", E, reward="gain", stop=False, observation="history", **rules)
    optimiser = torch.optim.Adam(reader.parameters(), lr=rate)
    for i in range(iterations):
        observation, _ = envs.reset(seed=1, options={"episode": np.arange(E) + i * E})
        h, every = torch.zeros(E, K, WIDTH), torch.arange(E)
        arms, chances, rewards, values = torch.zeros(E, T).long(), *torch.zeros(3, E, T + 1)
        for t in range(T):
            with torch.no_grad():
                said = reader.compare(h, torch.full((E,), t / T))
                policy = torch.distributions.Categorical(logits=said[..., PULL])
                arm = arms[:, t] = policy.sample()
                chances[:, t], values[:, t] = policy.log_prob(arm), said[..., GAIN].mean(-1)
                observation, reward, *_ = envs.step(arm.numpy())
                rewards[:, t] = SCALE * torch.from_numpy(reward)
                h[every, arm] = reader.next(h[every, arm], torch.from_numpy(observation["samples"][:, t]).float())
        advantages = torch.zeros(E, T + 1)
        for t in reversed(range(T)):
            advantages[:, t] = rewards[:, t] + values[:, t + 1] - values[:, t] + decay * advantages[:, t + 1]
        advantages, values, chances = advantages[:, :-1], values[:, :-1], chances[:, :-1]
        returns, gains = advantages + values, (advantages - advantages.mean()) / advantages.std()
        samples, means = (torch.from_numpy(x).float() for x in (observation["samples"], envs.unwrapped.true_means()))
        for rows in (rows for _ in range(epochs) for rows in torch.randperm(E).split(batch)):
            said = reader(arms[rows], samples[rows])[:, :-1]
            ratio = (said[..., PULL].log_softmax(-1).gather(2, arms[rows][..., None])[..., 0] - chances[rows]).exp()
            better = torch.min(ratio * gains[rows], ratio.clamp(0.8, 1.2) * gains[rows]).mean()
            error = functional.mse_loss(said[..., GAIN].mean(-1), returns[rows])
            error += 100 * functional.mse_loss(said[..., MEAN], means[rows, None].expand(-1, T, -1))
            step(optimiser, 0.1 * error - better, reader, rate * max(1 - i / iterations, 0.02))


def main(steps, iterations, episodes, instance="sampler(arms=8)"):
    """Record, train, and judge on fresh episodes."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    began, rules, rows = time.process_time(), {"instance": instance, "budget": T}, []
    how = {"episodes": max(64, min(30000, 20 * steps)), "env_kwargs": rules}
    for seed, teacher in ((2, "top-two"), (3, "evolved")):
        kept = agents.record(teacher, "BestArm", seed=seed, **how)
        kept |= {"arms": kept["arms"].astype(np.int64), "imitated": np.full(how["episodes"], teacher == "evolved")}
        rows.append({name: kept[name] for name in ("arms", "samples", "means", "right_answer", "imitated")})
    recorded = {name: torch.from_numpy(np.concatenate([row[name] for row in rows])) for name in rows[0]}
    reader = Reader()
    by_labels(reader, recorded, steps)
    players = {"DPT": (copy.deepcopy(reader), BEST), "imitation": (copy.deepcopy(reader), PULL), "PPO": (reader, PULL)}
    by_ppo(reader, rules, iterations)
    print(f"trained in {time.process_time() - began:.0f} s of processor time")
    learners = {name: functools.partial(InContext, reader=own, by=by) for name, (own, by) in players.items()}
    learners |= {name: name for name in ("uniform", "top-two", "evolved")}
    result = agents.evaluate(learners, "BestArm", episodes=episodes, seed=2026, env_kwargs=rules)
    for run in result.runs:
        print(f"| {run.agent} | {run.mean('score', 0):.4f} |", end="")
        if run.agent != "uniform":
            ahead = result.compare(run.agent, "uniform", "score")
            print(f" {ahead.difference:+.4f} [{ahead.low:.4f}, {ahead.high:.4f}] |", end="")
        print(flush=True)


if __name__ == "__main__":
    main(*(int(x) for x in (sys.argv[1:4] + ["3500", "60", "20000"][len(sys.argv[1:4]) :])), *sys.argv[4:])
