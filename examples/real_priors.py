"""Train `evolved` and PPO on real arms, and judge them on real arms that they never saw: docs/learned-results.md.

The best handcrafted agent is chosen on half as many other episodes with the held-out arms; then all play
the same episodes. The environment variable BANDIT_ENVS_DATA names the folder of the data. The first argument is the
number of episodes (default 4,000), the second the seconds of a training (default 120, of processor time), the third, if
any, a regular expression for rows. Models that are in results/real already are not trained again.

    python examples/real_priors.py > docs/learned-results/real.md
    python examples/real_priors.py 200 2 "prompts, K = 10"
"""

import functools
import os
import pickle
import re
import sys
from pathlib import Path

import pandas as pd

import agents
from bandit_envs import Resampled

EPISODES = int(sys.argv[1]) if len(sys.argv) > 1 else 4000
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 120.0
ROWS = re.compile(sys.argv[3] if len(sys.argv) > 3 else ".")
DATA = Path(os.environ.get("BANDIT_ENVS_DATA", "data"))
OUT = Path("results/real")
STEPS_PER_SECOND = 1500  # of PPO
TOP_K = ["top-two", "kl-lucb", "adapt", "ocba-m(n0=5)", "lucb(delta=0.1)"]
BEST = [*TOP_K, "evidence", "successive-rejects", "sequential-halving(reuse=True)"]
SIZES = [(10, 100), (10, 200), (15, 300)]  # arms and budgets of the training; that of PPO has the first


class Numbers(pickle.Unpickler):
    """Reads arrays of numbers, and nothing else."""

    def find_class(self, module, name):
        """The class or function of this name, if an array needs it."""
        if not module.startswith("numpy") or name not in ("_reconstruct", "ndarray", "dtype"):
            raise ValueError(f"{module}.{name} is no part of an array of numbers")
        return super().find_class(module, name)


def means(name):
    """The mean score of each model in a table of scores."""
    path = DATA / name
    if path.suffix == ".pkl":  # models in rows
        with path.open("rb") as file:
            return Numbers(file).load().mean(axis=1).tolist()
    return pd.read_csv(path, index_col=0).mean().div(100 if "livecodebench" in name else 1).tolist()


def translations(pair):
    """Errors of the translations of ten systems and humans, 0 where there is none: a pull is one of the segments."""
    table = pd.read_csv(DATA / f"mqm/newstest2020_{pair}.tsv", sep=r"\s+")
    return Resampled([part.to_numpy() for _, part in table.groupby("system")["mqm_avg_score"]], (-25, 0))


def pools(*found):
    """Arms of these pools."""
    return lambda arms: {"pools": {"pools": list(found), "arms": arms}}


PRIORS = {  # the problem, its parameters, handcrafted agents; the arms of the training, and those held out
    "prompts": (
        *("BestArm", {}, BEST),
        *((lambda arms, split=split: f"real-prompts(arms={arms}, split={split!r})") for split in ("train", "test")),
    ),
    "captions": ("TopK", {"k": 3}, TOP_K, pools("captions-651"), pools("captions-627")),
}
if (DATA / "sysrs").is_dir():
    seen = [means(name) for name in ("alpaca_eval_2_scores.csv", "sysrs/musr.pkl", "sysrs/wmt_14.pkl")]
    fresh = [means(name) for name in ("livecodebench_repair.csv", "sysrs/gsm.pkl", "sysrs/legalbench.pkl")]
    PRIORS["models"] = ("BestArm", {}, BEST, pools(*seen), pools(*fresh))


@functools.cache
def trained(name):
    """`evolved` on a mix of all sizes, and PPO on the first of them."""
    problem, parameters, _, arms, _ = PRIORS[name]
    mix = [{"instance": arms(K), "budget": T, "episodes": 60_000 // T} for K, T in SIZES]
    evolved, ppo = OUT / f"evolved-{name}.json", OUT / f"ppo-{name}.safetensors"
    if not evolved.exists():
        more = {"env_kwargs": parameters, "mix": mix, "held_out": 20, "every": 10, "out": evolved}
        agents.evolve(problem, seconds=SECONDS, **more)
    if not ppo.exists():
        kwargs = {"instance": mix[0]["instance"], "budget": mix[0]["budget"], **parameters}
        agents.train("ppo", problem, steps=int(STEPS_PER_SECOND * SECONDS), env_kwargs=kwargs, out=ppo)
    return {"`evolved`, trained": str(evolved), "PPO, trained": str(ppo)}


def played(players, problem, episodes, seed, kwargs):
    """All agents on the same episodes."""
    return agents.evaluate(players, problem, episodes=episodes, seed=seed, env_kwargs=kwargs, progress=False)


def row(label, name, instance, T):
    """Print a row: the score of the best handcrafted agent, and how far the others are ahead of it."""
    problem, parameters, rivals, *_ = PRIORS[name]
    kwargs = {"instance": instance, "budget": T, **parameters}
    trial = played(rivals, problem, max(EPISODES // 2, 20), 1, kwargs)
    scores = {run.agent: run.values("score")[:, -1].mean() for run in trial.runs}
    best = max(scores, key=scores.__getitem__)
    stored = {f"stored `{one}`": one for one in ("evolved", "ppo")}
    others = {**trained(name), **stored, "`look-ahead`": "look-ahead", "`uniform`": "uniform"}
    result = played({best: best, **others}, problem, EPISODES, 2026, kwargs)
    cells = [f"{problem}, {label}", f"`{best}` {result.runs[0].values('score')[:, -1].mean():.4f}"]
    for one in others:
        gap = result.compare(one, best, "score")
        cells.append(f"{gap.difference:+.4f} [{gap.low:+.4f}, {gap.high:+.4f}]")
    gap = result.compare("`evolved`, trained", "`look-ahead`", "score")
    cells.append(f"{gap.difference:+.4f} [{gap.low:+.4f}, {gap.high:+.4f}]")
    if not HEADS:
        HEADS.extend(
            ["held-out arms", "best handcrafted but `look-ahead`", *others, "`evolved`, trained, less `look-ahead`"]
        )
        print(f"| {' | '.join(HEADS)} |\n|{'---|' * len(HEADS)}")
    print(f"| {' | '.join(cells)} |", flush=True)


HEADS = []
CASES = [(f"{name}, K = {K}, T = {T}", name, PRIORS[name][4](K), T) for name in PRIORS for K, T in SIZES[::2]]
if "models" in PRIORS:
    pairs = {"en-de": translations("ende"), "zh-en": translations("zhen")}
    CASES += [(f"MQM {pair}, K = 10, T = 300", "models", arms, 300) for pair, arms in pairs.items()]
OUT.mkdir(parents=True, exist_ok=True)
for case in CASES:
    if ROWS.search(case[0]):
        row(*case)
