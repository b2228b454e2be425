"""How CPU time grows with the number of arms: agents on problems with K = 100, 1,000 and 10,000 arms, slopes by log K.

    python tests/campaigns/slopes.py                     all agents that play such tasks, in some minutes
    python tests/campaigns/slopes.py --agents clucb st2  these agents alone
    python tests/campaigns/slopes.py --arms 1000 10000 --pulls 50

An episode has --pulls times K pulls at most, so that agents whose pull costs the same for any K have the slope 1.
Agents that can spend a budget are given one, the others stop by delta = .05. Few arms are played in more episodes: each
cell of an agent has about as many pulls, one episode after the other. What an evaluation costs without any, taken from
one of a few arms, is not counted. A cell that would take more than --most seconds, at 100 times the cost of a tenth of
the arms, is left out.

A slope above 1.3 is named with its reason; the command fails where there is none.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import agents
from agents.registry import LEARNED, recipe_of

__all__ = ["REASONS", "STEEP", "Row", "main", "measured", "rows"]

ARMS = (100, 1_000, 10_000)
PROBLEMS: dict[str, dict[str, Any]] = {
    "Threshold": {"threshold": 0.5},
    "AllGood": {"epsilon": 0.2},
    "TopK": {"k": 10, "epsilon": 0.1},
    "BestArm": {"epsilon": 0.1},
    "BetterThanControl": {},
}
STEEP = 1.3
DRAWS = "an arm is drawn by a running sum over all arms, whose weights move with the two arms at the boundary"
CONTROL = "each pull of the control, one in sqrt(K) of all, moves the index of every arm"
LEVEL = "up to 1,000 arms the level at the end of an episode looks at all pairs"
REASONS = {
    "evidence": "with a budget each Bernoulli arm has a penalty of its own, so that arms have rows: O(K) a choice",
    "top-two": "a choice on Threshold goes through all arms; " + LEVEL,
    "track-and-stop": "its proportions are of all arms",
    "pi1": "an arm is drawn by a running count over all arms",
    "pi2": "an arm is drawn by a running count over all arms",
    "pi3": DRAWS,
    "adapt": DRAWS,
    "ocba-m": DRAWS + ", and its targets with every pull",
    "apt": CONTROL,
    "lsa": CONTROL,
    "jamieson-jain": "levels of all arms are counted before each pull, as each depends on how many reach it",
    "dp-index": "its table is of K times as many pulls, up to 6000 of an arm",
    "look-ahead": "each pull is compared with pulls of all other arms, over what each may show",
    "evolved": "its network reads features of all arms that move with each other",
}
GIVEN = {"ocba-m": "ocba-m(n0=5)"}  # agents whose first passes take all pulls as they are
FEW = 12  # arms of an evaluation that costs no more than any does


class Row(NamedTuple):
    """An agent on a problem: CPU seconds of an episode with each number of arms, NaN where it was left out."""

    problem: str
    agent: str
    seconds: tuple[float, ...]
    slope: float  # of log seconds by log K, least squares

    @property
    def reason(self) -> str:
        """Why the slope is above 1.3, where it is."""
        if np.isnan(self.seconds[0]):
            return "it plays no such task"
        other = LEVEL if self.problem == "AllGood" else "no reason is known"
        return REASONS.get(self.agent, other) if self.slope > STEEP else ""


def _seconds(agent: str, problem: str, K: int, pulls: int, episodes: int) -> float:
    """CPU seconds of an evaluation; NaN for tasks that the agent does not take."""
    needs = " ".join(recipe_of(agent).needs)
    if "table" in needs:
        return np.nan
    budget = "budget" in needs or "delta" not in needs
    limit = {"budget": pulls * K} if budget else {"delta": 0.05, "max_pulls": pulls * K}
    kwargs = {"instance": f"sampler(arms={K})", **PROBLEMS[problem], **limit}
    begun = time.process_time()
    try:
        agents.evaluate(agent, problem, episodes=episodes, env_kwargs=kwargs, batch=1, progress=False)
    except ValueError:  # it plays no such task: oracles of other instances, plans with more pulls
        return np.nan
    return time.process_time() - begun


def measured(agent: str, problem: str, arms: Sequence[int], pulls: int, most: float) -> Row:
    """The CPU time of an agent's episodes on a problem."""
    name, found = GIVEN.get(agent, agent), list[float]()
    if np.isnan(_seconds(name, problem, FEW, pulls, 1)):  # kernels are compiled
        return Row(problem, agent, (np.nan,) * len(arms), np.nan)
    spent = min(_seconds(name, problem, FEW, 2 * pulls, 1) for _ in range(2))
    for K in arms:
        episodes = max(1, 1000 // K)
        expected = found[-1] * (K / arms[len(found) - 1]) ** 2 if found else 0.0
        cell = np.nan if not expected * episodes <= most else _seconds(name, problem, K, pulls, episodes)
        found.append(max(cell - spent, 1e-5) / episodes)
    seen = [(np.log(K), np.log(x)) for K, x in zip(arms, found, strict=True) if np.isfinite(x)]
    slope = float(np.polyfit(*np.transpose(seen), 1)[0]) if len(seen) > 1 else np.nan
    return Row(problem, agent, tuple(found), slope)


def rows(names: Sequence[str], problems: Sequence[str], arms: Sequence[int], pulls: int, most: float) -> Iterator[Row]:
    """The rows of these agents; those that do not take a problem are left out."""
    for problem in problems:
        able = agents.names(problem)
        for agent in (one for one in names if one in able):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield measured(agent, problem, arms, pulls, most)


def main(given: Sequence[str] | None = None) -> int:
    """Print the table; 1 where a slope is above 1.3 without a reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agents", nargs="*", default=[one for one in agents.names() if one not in LEARNED])
    parser.add_argument("--problems", nargs="*", default=[*PROBLEMS], choices=[*PROBLEMS])
    parser.add_argument("--arms", nargs="*", type=int, default=ARMS)
    parser.add_argument("--pulls", type=int, default=20, help="pulls of an episode, times K")
    parser.add_argument("--most", type=float, default=20.0, help="seconds of a cell")
    asked = parser.parse_args(given)
    print(f"{'problem':18}{'agent':22}" + "".join(f"{K:>12,}" for K in asked.arms) + "   slope")
    steep = 0
    for row in rows(asked.agents, asked.problems, asked.arms, asked.pulls, asked.most):
        cells = "".join(f"{x:12.5f}" if np.isfinite(x) else f"{'left out':>12}" for x in row.seconds)
        print(f"{row.problem:18}{row.agent:22}{cells}{row.slope:8.2f}  {row.reason}", flush=True)
        steep += row.slope > STEEP and row.agent not in REASONS
    return int(steep > 0)


if __name__ == "__main__":
    sys.exit(main())
