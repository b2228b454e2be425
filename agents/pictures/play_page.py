"""A game: a person plays episodes of a problem in the browser, and is scored beside agents on the same samples.

The page holds, of each episode, the result of every pull that a player can ask for and the score of every answer. It
computes no score, and takes nothing from elsewhere. Whoever reads its source sees the true means.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from string import ascii_uppercase as LETTERS
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs.envs import outline
from bandit_envs.kernels import EPISODES_LIMIT, integer, root_number

from ..evaluation import play
from ..evaluation.environment import plain
from ..evaluation.plan import keywords, make_envs
from ..registry import recipe_of
from .race_page import MOST_BYTES, number_bytes
from .template import check_page, filled, json_text

# Of the handcrafted agents made for a problem, the best one at ten pulls of each arm or one level with it
# (docs/which-agent.md; BetterThanControl: 1,500 episodes of 100 pulls); and that for problems of one's own.
RIVALS = {"Threshold": "lsa", "AllGood": "st2(delta=0.1)", "TopK": "top-two", "Feasible": "lsa"}
RIVALS |= {"BetterThanControl": "lsa", "": "look-ahead"}
BUDGET, MOST_ARMS, MOST_RESULTS = 100, 12, 50_000  # of an episode
PLAYED = {"max_pulls": None, "pull_cost": 0, "cost": None, "batch": 1, "delay": 0, "pull": "arm"}


def game(
    env_id: str,
    *,
    agent: object = None,
    out: str | Path | None = None,
    env_kwargs: Mapping[str, object] | None = None,
    seed: int = 0,
    episode: int = 0,
    episodes: int = 20,
    force: bool = False,
    trust: bool = False,
) -> str:
    """Make a page on which a person plays a problem in any browser, by mouse, touch or keys: one HTML file.

    The player's n-th pull of an arm shows what an agent's n-th pull of it shows in this episode of `evaluate`. In the
    end the page compares the answer with those of two agents, and with the right one. The truth is in the file.

    Args:
        env_id, env_kwargs, seed, trust: as for `play`; without a budget there are 100 pulls.
        agent: the player's rival, beside `uniform`; None: one that was made for the problem.
        out: file to write the page into, .html; None: it is returned only.
        episode: number of the first one. episodes: at most, one after another; fewer where the file gets too large.
        force: overwrite a file that is no page of this package.

    Returns:
        The HTML.

    Raises:
        ValueError: for more than 12 arms, for prices, batches, delays and a delta, and as `play`.
    """
    path = None if out is None else check_page(out, force)
    env_id, kwargs = plain(env_id, {"budget": BUDGET, **keywords(env_kwargs)})
    root, first = root_number(seed), integer("episode", episode, 0, EPISODES_LIMIT - 1)
    last = min(EPISODES_LIMIT, first + integer("episodes", episodes, 1, 1000))
    if kwargs.get("delta") is not None:
        raise ValueError(f"a game ends with its budget, and takes no delta, got delta={kwargs['delta']!r:.80}")
    make = functools.partial(make_envs, env_id, kwargs=kwargs)
    _, envs, forms = recipe_of("uniform", False).paired(functools.partial(make, 1), kwargs)
    with closing(envs):
        task, problem = envs.task, envs.problem
    for name, usual in PLAYED.items():
        if (value := getattr(task, name)) != usual:
            raise ValueError(f"a game has {name}={usual!r} alone, got {name}={value!r:.80}")
    if task.K > MOST_ARMS:
        raise ValueError(f"a game has at most {MOST_ARMS} arms, got {task.K:,}")
    if task.budget is None or task.budget > (most := MOST_RESULTS // (task.K * task.D)):
        raise ValueError(f"a game of these arms has a budget in 1 .. {most:,}, got {task.budget}")
    rival = RIVALS.get(problem.family or problem.name, RIVALS[""]) if agent is None else agent
    players = {recipe_of(one, trust).label: one for one in (rival, "uniform")}
    games, size = list[Any](), 0
    with closing(make(task.K, forms)) as slots:
        for number in range(first, last):
            how: Any = {"env_kwargs": kwargs, "seed": root, "episode": number, "trust": trust}
            one = _episode(slots, root, number, [play(player, env_id, **how) for player in players.values()])
            size += len(json_text(one))
            if games and size > MOST_BYTES:
                break
            games.append(one)
    found = [x for one in games for row in one["samples"]["values"] for x in row]
    low, high = task.support or (min(found), max(found))
    pad, plane = 0.06 * (high - low or 1.0), problem.polyhedron if task.D == 2 else None
    box = np.full(2, low - pad), np.full(2, high + pad)
    facts: dict[str, Any] = {name: getattr(task, name) for name in ("K", "D", "budget", "sigma")}
    facts |= {name: getattr(problem, name) for name in ("answer_size", "boundary", "control_arm")}
    facts |= {"limits": [low, high], "hits": task.distribution == "bernoulli", "agents": list(players), "plane": None}
    if plane is not None:
        corners = outline(plane, *box).tolist()
        facts["plane"] = {"low": box[0].tolist(), "high": box[1].tolist(), "corners": corners}
    words = "".join(f"<p>{html.escape(text)}</p>" for text in _words(task, problem, next(iter(players))))
    title = html.escape(f"{problem.name}: you against {next(iter(players))}")
    return filled("drawing play", {"TITLE": title, "WORDS": words, "DATA": json_text(facts | {"games": games})}, path)


def _episode(envs: Any, root: int, number: int, traces: list[Any]) -> dict[str, Any]:
    """An episode as the page plays it, JSON-able; envs: one with a slot for each arm."""
    problem, K, arms = envs.problem, envs.task.K, np.arange(envs.task.K)
    envs.reset(seed=root, options={"episode": np.full(K, number)})
    pulls = {"arm": arms, "times": np.ones(K, np.int64), "answer": np.zeros((K, K), np.int8)}
    samples = np.array([envs.step(pulls)[-1]["sample"].copy() for _ in range(envs.task.budget)], np.float64)
    masks = (np.arange(2**K)[:, None] >> arms & 1).astype(np.bool_)  # of answer i: arm k is in it where i has bit k
    masks = masks if problem.answer_size is None else masks[masks.sum(axis=1) == problem.answer_size]
    verdict, means = envs.assess(np.zeros(len(masks), np.int64), masks), envs.true_means()[0]
    order = np.argsort(envs.as_listed(np.zeros(1, np.int64), arms[None])[0])  # traces are by the instance's list
    return {
        "samples": _coded(samples.reshape(-1, envs.task.D).T),
        "verdicts": _coded(np.array([verdict["score"].round(6), verdict["correct"]])),
        "means": means.reshape(K, -1).tolist(),
        "right": int(problem.right_answer(means) @ (1 << arms)),
        "answers": [int(trace.answer[order] @ (1 << arms)) for trace in traces],
        "pulls": [trace.pulls[order].tolist() for trace in traces],
    }


def _coded(columns: NDArray[np.float64]) -> dict[str, Any]:
    """The distinct columns of a table, and as text which of them comes where."""
    values, at = np.unique(columns, axis=1, return_inverse=True)
    return {"values": values.T.tolist(), "at": number_bytes(at.ravel(), "u1" if values.shape[1] <= 256 else "u2")}


def _words(task: Any, problem: Any, rival: str) -> list[str]:
    """The task for somebody who knows nothing of bandits."""
    hits, K, D = task.distribution == "bernoulli", task.K, task.D
    shown = f"{f'{D} values, each ' if D > 1 else ''}{'a hit (1) or a miss (0)' if hits else 'a number'}"
    mean = ("The mean of each value, its" if D > 1 else "Its mean, the") + " chance of a hit," if hits else "The mean"
    question = problem.in_words(f"Which of the {K} arms", f"{K} arms")
    if problem.control_arm is not None:
        question += f" Arm {LETTERS[problem.control_arm]} is the control, and is in no answer."
    elif problem.boundary is None and problem.polyhedron is None:
        question += " Better means a higher mean."
    score = "The score goes from 0 to 1; arms left out by mistake, and arms taken by mistake, lower it."
    if problem.scores_arms:
        score = "The score is the share of arms that your answer puts on the right side."
    elif problem.answer_size is not None:
        score = "The score compares the means of your arms: 1 for the best choice, 0 for the worst."
    return [
        f"Pull an arm, A to {LETTERS[K - 1]}, and it shows {shown}. {hidden} "
        f"You have {task.budget:,} pulls in all. Spend them as you like, then answer:",
        question,
        f"{score} In the end you see how {rival}, an algorithm made for this, and uniform, which pulls all arms "
        "equally often, did on the same results.",
    ]
