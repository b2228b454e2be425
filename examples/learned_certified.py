"""The table of docs/learned.md on certified answers: pulls of `evolved` and of agents that stop by the same boundary.

All play the same episodes. Ratios are of mean pulls, to the best of the handcrafted agents. The first argument is the
number of episodes (default 2,000), the second, if any, a regular expression for problems; more are cards of further
agents. For BestArm, limits are printed too, on a tenth of the episodes: T* ln(9 / delta), which no rule of pulls can
beat, and the pulls of an oracle that knows the means and tracks the proportions that are best for them.

    python examples/learned_certified.py
    python examples/learned_certified.py 500 BestArm results/certified.json
"""

import math
import re
import sys

import gymnasium as gym
import numpy as np
from numba import njit

import agents
from bandit_envs import BestArm, nearest_way

EPISODES = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
ROWS = re.compile(sys.argv[2] if len(sys.argv) > 2 else ".")
SEED, DELTAS = 2028, (0.1, 0.01)
CARDS = {path: path for path in sys.argv[3:]}
RIVALS = ["evidence", "track-and-stop", "top-two", "lucb(stop='certificate')"]
LEVELS = {"sampler": {"arms": 10, "mean": {"choice": [0.1, 0.5, 0.9]}}}
LAWS = {
    "BestArm": (RIVALS, {"epsilon": 0.1}),
    "TopK": (RIVALS, {"k": 3, "epsilon": 0.1}),
    "AllGood": (RIVALS[:2], {"instance": LEVELS, "epsilon": 0.2}),
    "Threshold": (RIVALS[:3], {"tolerance": 0.05}),
}


class Oracle(agents.Agent):
    """Pulls in given proportions: (E, K), a row for each episode."""

    name, solves = "oracle", ("BestArm",)

    def __init__(self, task, proportions):
        super().__init__(task)
        self.proportions = proportions

    def choose(self, observation, state):
        pulls = observation["pulls"]
        return np.argmax(self.proportions * (pulls.sum(1, keepdims=True) + 1) - pulls, axis=1)


def row(name, pulls, best, errors):
    """A line of the table: mean pulls, their ratio to those of the best with its 95 % interval, wrong answers."""
    ratio = pulls.mean() / best.mean()
    error = 1.96 * (pulls - ratio * best).std(ddof=1) / math.sqrt(len(best)) / best.mean()
    print(f"  {name:26} {pulls.mean():9.1f} {ratio:6.3f} [{ratio - error:.3f}, {ratio + error:.3f}] {errors:5} wrong")


@njit
def fewest(sums, pulls, level, address, numbers, size):
    """The fewest pulls that certify an answer.

    sums: (K, L), sums of the first samples of each arm. pulls: so many are known to be enough. The rest: of the
    certificate of a pair of arms.
    """
    room, n, mean, answer = np.zeros(size), np.zeros(2, np.int64), np.zeros(2), np.array([1, 0], np.int8)
    variance, out = np.zeros(2), np.zeros(8)
    for i in range(len(sums)):  # the answer
        for of_i in range(1, pulls):
            spent, n[0], mean[0] = of_i, of_i, sums[i, of_i - 1] / of_i
            for j in range(len(sums)):
                n[1], out[0] = 0, -math.inf
                while j != i and out[0] <= level and spent < pulls:
                    n[1], spent = n[1] + 1, spent + 1
                    mean[1] = sums[j, n[1] - 1] / n[1]
                    nearest_way(address, n, mean, variance, answer, numbers, room, out)
            pulls = min(pulls, spent)
    return pulls


def hindsight(episodes, delta, kwargs, options):
    """The mean of `fewest` over the first episodes."""
    tried = agents.evaluate(
        "evolved", "BestArm", episodes=episodes, seed=SEED, env_kwargs=kwargs | {"delta": delta}, progress=False
    )
    enough = tried.runs[0].values("total_pulls").ravel().astype(int)
    forms = {"observation": "statistics", "autoreset_mode": gym.vector.AutoresetMode.DISABLED}
    envs = gym.make_vec("bandit_envs/BestArm-v0", episodes, budget=10 * enough.max() + 1, **forms, **kwargs)
    observation, _ = envs.reset(seed=SEED, options={"episode": np.arange(episodes)})
    sums = np.empty((episodes, 10, enough.max()))
    for t in range(sums[0].size):
        observation, *_ = envs.step(np.full(episodes, t % 10))
        sums[:, t % 10, t // 10] = observation["total"][:, t % 10]
    pair = BestArm(**options).certifier(2, law="bernoulli", sigma=0.5)
    told = math.log(9 / delta), pair.address, pair.numbers, pair.room
    return np.mean([fewest(own, most, *told) for own, most in zip(sums, enough.tolist(), strict=True)])


def limits(episodes, options):
    """The limit of BestArm and the pulls of the oracle and in hindsight, on the first episodes."""
    kwargs = {"instance": "sampler(arms=10)", **options}
    forms = {"actions": "arm", "observation": "statistics", "autoreset_mode": gym.vector.AutoresetMode.DISABLED}
    problem, times, proportions = BestArm(**options), None, None
    for delta in DELTAS:
        envs = gym.make_vec("bandit_envs/BestArm-v0", episodes, delta=delta, **forms, **kwargs)
        observation, _ = envs.reset(seed=SEED, options={"episode": np.arange(episodes)})
        if times is None:
            means = envs.true_means()
            times = np.array([problem.characteristic_time(mu, law="bernoulli") for mu in means])
            proportions = np.array([problem.optimal_proportions(mu, law="bernoulli") for mu in means])
        agent = agents.make(Oracle(envs.task, proportions), envs, stop="certificate")
        state, over = None, np.zeros(episodes, bool)
        while not over.all():
            action, state = agent.predict(observation, state)
            observation, _, terminated, truncated, _ = envs.step(action)
            over = terminated | truncated
        need = math.log((envs.task.K - 1) / delta)
        told = f"limit {need * times.mean():.1f}, oracle {envs.total_pulls.mean():.1f}"
        told += f", in hindsight {hindsight(episodes, delta, kwargs, options):.1f}"
        print(f"BestArm, delta = {delta}, the first {episodes} episodes: {told}")


for problem, (rivals, options) in LAWS.items():
    if not ROWS.search(problem):
        continue
    for delta in DELTAS:
        kwargs = {"instance": "sampler(arms=10)", **options}
        names = {name: name for name in (*rivals, "evolved")} | CARDS
        result = agents.evaluate(
            names, problem, episodes=EPISODES, seed=SEED, env_kwargs=kwargs | {"delta": delta}, progress=False
        )
        made = result.episodes.sort_values("episode")
        pulls = {name: made[made["agent"] == name]["total_pulls"].to_numpy(float) for name in names}
        best = min(rivals, key=lambda name: pulls[name].mean())
        print(f"{problem}, delta = {delta}, {EPISODES} episodes; best of the handcrafted: {best}")
        for name in names:
            wrong = int((~made[made["agent"] == name]["correct"].astype(bool)).sum())
            row(name, pulls[name], pulls[best], wrong)
    if problem == "BestArm":
        limits(max(EPISODES // 10, 2), options)
