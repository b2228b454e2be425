"""A game: a person plays episodes of a problem in the browser, and is scored beside agents on the same samples.

The page holds, of each episode, the result of every pull that a player can ask for and the score of every answer. It
computes no score, and takes nothing from elsewhere. Whoever reads its source sees the true means.
"""

from __future__ import annotations

import html
import zlib
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from string import ascii_uppercase as LETTERS
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs.kernels import EPISODES_LIMIT, integer, root_number
from bandit_envs.text import Narrator

from ..core.forms import Forms
from ..evaluation import play
from ..evaluation.environment import plain
from ..evaluation.plan import keywords, make_envs
from ..registry import recipe_of
from .race_page import MOST_BYTES, number_bytes, plane_of
from .template import check_page, filled, json_text

# The best handcrafted agents at ten pulls of each arm, or one that is level with them: docs/which-agent.md.
RIVALS = {"Threshold": "lsa", "Feasible": "lsa", "BetterThanControl": "lsa", "TopK": "top-two"}
RIVALS |= {"AllGood": "st2(delta=0.1)", "": "look-ahead"}
BUDGET, MOST_ARMS, MOST_BUDGET = 100, 12, 2000  # of an episode


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

    The samples are those of `evaluate`, for the player and for the two agents whose scores are shown in the end. Arms
    that may change places do so from game to game, unless `shuffle_arms` is given. The truth is in the file.

    Args:
        env_id, env_kwargs, seed, trust: as for `play`; without a budget there are 100 pulls.
        agent: the player's rival, beside `uniform`; None: one that was made for the problem.
        out: file to write the page into, .html; None: it is returned only.
        episode: number of the first one. episodes: at most, one after another; fewer where the file gets too large.
        force: overwrite a file that is no page of this package.

    Returns:
        The HTML.

    Raises:
        ValueError: for more than 12 arms or 2,000 pulls, for prices, delays and a delta, and as `play`.
    """
    path = None if out is None else check_page(out, force)
    env_id, kwargs = plain(env_id, {"budget": BUDGET, **keywords(env_kwargs)})
    kwargs["budget"] = integer("budget", kwargs["budget"], 1, MOST_BUDGET)
    root, first = root_number(seed), integer("episode", episode, 0, EPISODES_LIMIT - 1)
    last = min(EPISODES_LIMIT, first + integer("episodes", episodes, 1, 1000))
    task = make_envs(env_id, 1, Forms("full", "statistics"), kwargs).task
    problem = task.make_problem()
    if problem.any_order or problem.control_arm is not None:  # the control keeps its place
        kwargs.setdefault("shuffle_arms", True)
    for name in ("batch", "delay", "cost", "delta", "max_pulls", "pull_cost"):
        if (given := getattr(task, name)) not in (None, 0, int(name == "batch")):
            raise ValueError(f"a game has no batches, delays, prices, delta and max_pulls, got {name}={given!r:.80}")
    if task.K > MOST_ARMS or task.pull != "arm":
        raise ValueError(f"a game has at most {MOST_ARMS} arms, pulled as a whole, got {task.K:,}, pull={task.pull!r}")
    rival = RIVALS.get(problem.family or problem.name, RIVALS[""]) if agent is None else agent
    players = {recipe_of(one, trust).label: one for one in (rival, "uniform")}
    games, size = list[Any](), 0
    with closing(make_envs(env_id, task.K, Forms("full", "statistics"), kwargs)) as slots:
        for number in range(first, last):
            how: Any = {"env_kwargs": kwargs, "seed": root, "episode": number, "trust": trust}
            one = _episode(slots, root, number, [play(player, env_id, **how) for player in players.values()])
            size += len(json_text(one))
            if games and size > MOST_BYTES:
                break
            games.append(one)
    means, shape = np.array([one["means"] for one in games]), problem.polyhedron
    low, high = task.support or (float(means.min() - task.sigma), float(means.max() + task.sigma))
    limits = [] if shape is None else [*zip(shape.A.tolist(), shape.b.tolist(), strict=True)]
    facts: dict[str, Any] = {name: getattr(task, name) for name in ("K", "D", "budget", "sigma", "distribution")}
    facts |= {"answer_size": problem.answer_size, "control_arm": problem.control_arm, "full": problem.never_empty}
    facts |= {"range": [low, high], "agents": list(players), "games": games, "plane": None, "limits": limits}
    parts = [[end / row[d] for row, end in limits if row[d] and np.count_nonzero(row) == 1] for d in range(task.D)]
    facts["parts"] = parts if problem.boundary is None else [[problem.boundary]]
    if task.D == 2 and shape is not None:
        facts["plane"] = plane_of(shape, np.array([[low, low], [high, high]]))
    facts["id"] = zlib.crc32(json_text([(one["pulls"], one["answers"]) for one in games]).encode())  # of what is kept
    said = [html.escape(text) for text in Narrator(task).asks(LETTERS[: task.K])]
    said[2] = f"<strong>{said[2]}</strong>"  # the question
    if len(games) > 1 and len({tuple(sorted(map(tuple, one["means"]))) for one in games}) == 1:
        said.append(f"They are the same buttons in each game{', in another order' * bool(kwargs.get('shuffle_arms'))}.")
    words = {"TITLE": f"{problem.name}: you against an algorithm", "AGENTS": html.escape(" and ".join(players))}
    return filled("drawing play", words | {"WORDS": " ".join(said), "DATA": json_text(facts)}, path)


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
    known = getattr(envs.setting.source, "arm_names", ())
    return {
        "names": [known[i] for i in order] if known else None,
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
