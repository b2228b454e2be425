"""Environments in words: the same episodes, what is said, and how replies are read."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from bandit_envs import INSTANCES, PROBLEMS
from bandit_envs.text import STORIES, TOOLS, Narrator, TextView, Unreadable

PLAIN: dict[str, dict[str, Any]] = {
    "Threshold": {"instance": "tao2019-1"},
    "AllGood": {"epsilon": 0.2},
    "TopK": {"k": 3},
    "Feasible": {},
    "BestArm": {"delta": 0.1, "max_pulls": 40},
    "BetterThanControl": {"control": 2, "margin": 0.1},
}
MORE: dict[str, tuple[str, dict[str, Any]]] = {
    "guardrails": ("BetterThanControl", {"instance": {"sampler": {"dimensions": 3}}, "guardrails": [0.1, 0.2]}),
    "batch": ("Threshold", {"batch": 4}),
    "delay": ("TopK", {"delay": 3, "k": 2}),
    "drawn delay": ("AllGood", {"delay": "exponential(4)", "batch": 2}),
    "prices": ("BestArm", {"instance": "sampler(arms=4)", "budget": 30, "cost": [1.0, 2.0, 3.0, 40.0]}),
    "a table": ("BestArm", {"instance": "score-tables(K=5, N=30)", "budget": 60, "cost": "row"}),
    "pull_cost": ("Threshold", {"pull_cost": 0.001}),
    "units": (
        "Threshold",
        {"instance": {"distribution": "gaussian", "mean": [1e8, 2e8], "sd": 1e6}, "threshold": 1.5e8},
    ),
    "one arm": ("Threshold", {"instance": {"distribution": "bernoulli", "mean": [0.4]}, "budget": 9}),
}
ALL = {**{name: (name, how) for name, how in PLAIN.items()}, **MORE}


def pair(problem: str, how: dict[str, Any], **words: Any) -> tuple[Any, TextView]:
    """An environment, and another one in words."""
    kwargs: dict[str, Any] = {"actions": "full", "budget": None if "delta" in how else 60} | how
    envs = [gym.make(f"bandit_envs/{problem}-v0", **kwargs) for _ in range(2)]
    return envs[0], TextView(envs[1], **words)


def alike(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(alike(a[name], b[name]) for name in a)
    return bool(np.array_equal(a, b, equal_nan=True))


def written(names: list[str], action: dict[str, Any], tools: bool) -> str:
    """An action as text."""
    arms = [names[k] for k in np.flatnonzero(action["answer"])]
    if action["arm"] < len(names):
        arm, times = names[action["arm"]], int(action["times"])
        call = {"name": "pull", "arguments": {"arm": arm, "times": times}}
        return json.dumps(call) if tools else f"I think of it.\n\nPULL {arm} {times}"
    call = {"name": "answer", "arguments": {"arms": arms}}
    return json.dumps(call) if tools else f"ANSWER {', '.join(arms) or 'none'}"


def actions(env: Any, rng: np.random.Generator, most: int = 12) -> Iterator[dict[str, Any]]:
    """Pulls, and an answer at the end, drawn at random among those that are allowed."""
    task, problem = env.unwrapped.task, env.unwrapped.problem
    for _ in range(most):
        arms = np.flatnonzero(task.affords(env.unwrapped._core.pulls[0]))  # pulls asked for come on top below
        if not len(arms):
            break
        yield {"arm": int(rng.choice(arms)), "times": int(rng.integers(1, 4)), "answer": np.zeros(task.K, np.int8)}
    size = problem.answer_size
    answer = np.zeros(task.K, np.int8)
    some = [k for k in range(task.K) if k != problem.control_arm]
    answer[rng.choice(some, size=int(rng.integers(0, len(some) + 1)) if size is None else size, replace=False)] = 1
    yield {"arm": task.K, "times": 1, "answer": answer}


def compared(problem: str, how: dict[str, Any], seed: int, **words: Any) -> None:
    """The same actions by number and by text: the same statistics, rewards, ends and infos."""
    env, text = pair(problem, how, **words)
    rng = np.random.default_rng(seed)
    (seen, first), (_, info) = env.reset(seed=seed), text.reset(seed=seed)
    assert alike(first, info)
    for action in actions(env, rng):
        if int(seen["remaining"][0]) == 0 and action["arm"] < env.unwrapped.task.K:
            continue
        asked = seen["pulls"] + seen.get("pending", 0)
        if action["arm"] < len(asked) and not env.unwrapped.task.affords(asked)[action["arm"]]:
            continue
        seen, *rest = env.step(action)
        _, *other = text.step(written(text.names, action, text.narrator.tool_calls))
        assert alike(seen, text._seen)
        assert rest[:3] == other[:3]
        assert alike(rest[3], other[3])
        if rest[1] or rest[2]:
            return
    raise AssertionError("the episode has not ended")


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("what", ALL)
def test_text_and_numbers_give_the_same_episode(what: str, story: str) -> None:
    problem, how = ALL[what]
    for seed, (view, tools) in enumerate([("table", False), ("history", True), ("raw", False)]):
        compared(problem, how, seed, story=story, view=view, tool_calls=tools)


@pytest.mark.parametrize("name", [name for name, row in INSTANCES.items() if row.ships and row.problem])
def test_the_same_over_the_catalogue(name: str) -> None:
    env = gym.make(f"bandit_envs/{INSTANCES[name].problem}-v0", instance=name, actions="full")
    task = env.unwrapped.task
    if task.K > 1000 or task.pull != "arm":
        with pytest.raises(ValueError, match="text needs"):
            TextView(env)
        return
    limits = {"budget": task.budget, "delta": task.delta, "max_pulls": task.max_pulls}
    limits |= {} if task.delta or task.budget else {"budget": 50}
    compared(INSTANCES[name].problem, {"instance": name, **limits}, 3, view="history")


def test_vector_environments_of_text() -> None:
    """A slot of the native vector environment has the episode of a text environment with the seed of the slot."""
    made = lambda: TextView(gym.make("bandit_envs/TopK-v0", actions="full", k=2, budget=20))
    texts: Any = gym.vector.SyncVectorEnv([made] * 3)
    native: Any = gym.make_vec("bandit_envs/TopK-v0", num_envs=3, actions="full", k=2, budget=20)
    said, _ = texts.reset(seed=5)
    assert len(said) == 3
    assert all("Which 2 of the 10 buttons" in one for one in said)
    native.reset(seed=5)
    for arm in (3, 3, 7, 1):
        _, rewards, *_ = texts.step([f"PULL {env.names[arm]} 2" for env in texts.envs])
        seen, other, *_ = native.step(
            {"arm": np.full(3, arm), "times": np.full(3, 2), "answer": np.zeros((3, 10), np.int8)}
        )
        for e, env in enumerate(texts.envs):
            assert alike({name: one[e] for name, one in seen.items()}, env._seen)
        assert (rewards == other).all()


@pytest.mark.parametrize("what", PLAIN)
def test_raw_numbers_read_back_exactly(what: str) -> None:
    problem, how = ALL[what]
    _, text = pair(problem, how, view="raw")
    said, _ = text.reset(seed=3)
    facts = json.loads(said.splitlines()[-2])
    assert type(text.narrator.task).from_json(json.dumps(facts["task"])) == text.narrator.task
    assert facts["names"] == text.names
    for k in range(6):
        said, *_ = text.step(f"PULL {text.names[k % text.narrator.task.K]} 3")
        assert alike(json.loads(said), {name: array.tolist() for name, array in text._seen.items()})


def test_the_same_seed_says_the_same() -> None:
    def messages(seed: int, **words: Any) -> list[str]:
        _, text = pair("Threshold", {}, **words)
        said = [text.reset(seed=seed)[0]]
        return said + [text.step(f"PULL {name}")[0] for name in text.names]

    assert messages(4) == messages(4)
    assert messages(4) != messages(5)
    _, text = pair("Threshold", {})
    text.reset(seed=4)
    first, again = text.names, text.reset()[0]  # the next episode
    assert text.names != first
    assert text.reset(seed=4, options={"episode": 1})[0] == again


def test_names_are_drawn_evenly() -> None:
    """Each name is as likely for the first arm: chi-squared beyond its 1 - 1e-6 quantile is the false alarm."""
    from scipy.stats import chi2

    narrator = Narrator(pair("Threshold", {})[1].narrator.task)
    pool = STORIES["buttons"].names.split()
    first = [narrator.names(seed)[0] for seed in range(4000)]
    counts = np.array([first.count(name) for name in pool])
    assert counts.sum() == 4000
    assert ((counts - 4000 / len(pool)) ** 2 / (4000 / len(pool))).sum() < chi2.ppf(1 - 1e-6, len(pool) - 1)


@pytest.mark.parametrize("story", STORIES)
def test_names_are_different_and_read_back(story: str) -> None:
    env = gym.make("bandit_envs/Threshold-v0", instance="sampler(arms=300)", actions="full")
    text = TextView(env, story=story)
    text.reset(seed=1)
    assert len({name.casefold() for name in text.names}) == 300
    for k in (0, 77, 299):
        for given in (text.names[k], text.names[k].upper(), f"'{text.names[k]}'"):
            assert text.narrator.read(f"PULL {given}", text.names, text._seen).arm == k
    command = text.narrator.read(f"ANSWER {', '.join(text.names)}", text.names, text._seen)
    assert command.answer == tuple(range(300))


READ: dict[str, tuple[int, int] | tuple[int, ...]] = {
    "PULL teal": (0, 1),
    "pull TEAL 3": (0, 3),
    "Pull: teal": (0, 1),
    "I would like to pull it.\n**PULL teal x 3**": (0, 3),
    "```\nPULL teal, 3 times\n```": (0, 3),
    "> PULL `teal` 3": (0, 3),
    "- PULL teal.": (0, 1),
    "1. PULL teal": (0, 1),
    "• PULL teal 2": (0, 2),
    "'PULL teal 3'": (0, 3),
    "**PULL** teal 1,000": (0, 1000),
    "PULL teal: 3": (0, 3),
    "\u200bPULL\xa0teal\r\n\r\n": (0, 1),
    "Pull counts: 3\nAnswer so far: it is red\nPULL teal": (0, 1),
    "PULL red\n</think>\nPULL teal": (0, 1),
    "<THINKING>PULL red</THINKING>PULL teal": (0, 1),
    "<think>\nPULL red 3\nNo, the other one.\n</think>\n\nPULL teal 2": (0, 2),
    "PULL teal 0003": (0, 3),
}
UNREAD = {
    "": "is no command",
    "I am done": "is no command",
    "PULLteal": "is no command",
    "PULL": "is followed",
    "PULL nothing": "There is no button",
    "PULL teal red": "PULL is followed",
    "PULL teal 0": "from 1 to",
    "PULL teal -3": "PULL is followed",
    "PULL teal 1.5": "PULL is followed",
    "PULL teal 1e3": "PULL is followed",
    "PULL teal 99999999999": "from 1 to",
    "PULL teal 999999999999999999999999": "PULL is followed",
    "PULL teal ٣": "PULL is followed",
    "PULL teal\nPULL teal": "another one too",
    "I would not\nPULL teal 9\nbut maybe `PULL red 3`": "is no command",
    "ANSWER teal,\nred,\nblue": "is no command",
    "<think>\nPULL teal": "is no command",
    "PULL teal\nPULL red": "another one too",
    "PULL teal\nANSWER red": "another one too",
    "ANSWER": "ANSWER is followed",
    "ANSWER teal, teal": "named twice",
    "ANSWER red and none": "There is no button 'none'",
    "ANSWER a": "There is no",
    "x" * 20_000: "20,000 characters",
}


def reader(**words: Any) -> Callable[[Any], Any]:
    env = gym.make("bandit_envs/Threshold-v0", actions="full", instance="sampler(arms=3)")
    narrator, seen = Narrator(env.unwrapped.task, **words), env.reset(seed=0)[0]
    return lambda given: narrator.read(given, ["teal", "red", "blue"], seen)


@pytest.mark.parametrize("given", READ)
def test_commands_are_read(given: str) -> None:
    assert reader()(given)[:2] == READ[given]


@pytest.mark.parametrize("given", UNREAD, ids=lambda given: repr(given[:24]))
def test_what_is_unreadable_is_said(given: str) -> None:
    with pytest.raises(Unreadable) as found:
        reader()(given)
    assert UNREAD[given] in str(found.value)


def test_answers_are_read() -> None:
    assert reader()("**ANSWER** teal & red").answer == (0, 1)
    for given, answer in {
        "teal": (0,),
        "red, teal": (1, 0),
        "blue red": (2, 1),
        "teal and blue": (0, 2),
        "none": (),
    }.items():
        assert reader()(f"ANSWER {given}").answer == answer


CALLS = {
    '{"name": "pull", "arguments": {"arm": "teal"}}': (0, 1, ()),
    '```json\n{"name": "pull", "arguments": {"arm": "Teal", "times": 4}}\n```': (0, 4, ()),
    '{"name": "pull", "arguments": "{\\"arm\\": \\"blue\\", \\"times\\": 2}"}': (2, 2, ()),
    '{"name": "answer", "arguments": {"arms": ["red", "teal"]}}': (3, 1, (1, 0)),
    '{"name": "answer", "arguments": {"arms": []}}': (3, 1, ()),
    '<think>{"name": "pull"}</think>\n```JSON\n{"name": "pull", "arguments": {"arm": "red"}}\n```': (1, 1, ()),
}
NO_CALLS = [
    "PULL teal",
    "{",
    "[]",
    "3",
    "null",
    '{"name": "pull"}',
    '{"name": "pull", "arguments": {"arm": 0}}',
    "[" * 5000,
    '{"name": "pull", "arguments": {"arm": "teal", "times": 1.0}}',
    '{"name": "stop", "arguments": {"arm": "teal"}}',
    '{"name": "pull", "arguments": {"arm": "teal", "times": true}}',
    "{}",
    '{"name": "pull", "arguments": {"arm": "teal", "times": 1' + "0" * 5000 + "}}",
    '{"name": "pull", "arguments": {"arm": "teal", "number": 5}}',
    '{"name": "pull", "arguments": {"arm": "teal", "times": 1, "times": 5}}',
    '{"name": "pull", "arguments": {"arm": "teal"}, "then": "answer"}',
    '{"name": "answer", "arguments": {"arms": [["teal"]]}}',
    '{"name": "answer", "arguments": {"arms": {"teal": 1}}}',
]


def test_calls_of_tools_are_read() -> None:
    assert {tool["function"]["name"] for tool in TOOLS} == {"pull", "answer"}
    for given, command in CALLS.items():
        assert reader(tool_calls=True)(given) == command
    for given in NO_CALLS:
        with pytest.raises(Unreadable):
            reader(tool_calls=True)(given)


def test_what_is_unreadable_costs_nothing_until_patience_ends() -> None:
    env, text = pair("TopK", {"k": 3})
    env.reset(seed=2)
    text.reset(seed=2)
    for _ in range(2):  # a command in between begins the count again
        for _ in range(2):
            said, reward, over, cut, info = text.step("ANSWER " + text.names[0])
            assert (reward, over, cut) == (0.0, False, False)
            assert info == {"unreadable": "An answer holds 3, got 1."}
            assert "The last line of your reply is one command" in said
        text.step(f"PULL {text.names[4]} 2")
        env.step({"arm": 4, "times": 2, "answer": np.zeros(10, np.int8)})
    assert alike(text._seen, env.unwrapped._observe())
    for _ in range(3):
        said, reward, over, cut, info = text.step("hm")
    assert (reward, over, cut) == (0.0, True, False)
    assert (info["score"], info["correct"], info["total_pulls"]) == (0.0, False, 4)
    assert "3 replies in a row" in said
    with pytest.raises(gym.error.ResetNeeded):
        text.step("PULL " + text.names[0])
    text.reset()
    text.step("PULL " + text.names[0])


def test_a_spent_budget_asks_for_the_answer() -> None:
    _, text = pair("Threshold", {"budget": 5, "instance": "sampler(arms=3)"})
    text.reset(seed=0)
    said, *_ = text.step(f"PULL {text.names[1]} 9")
    assert "5 times, on average" in said
    assert "Nothing is left: answer now." in said
    _, _, over, _, info = text.step(f"PULL {text.names[1]}")
    assert not over
    assert "answer now" in info["unreadable"]
    assert "PULL" not in text.step("hm")[0]  # of what is allowed
    said, reward, over, *_ = text.step("ANSWER none")
    assert over
    assert f"It scores {reward:.4g}." in said


def test_what_cannot_be_paid_is_not_pulled() -> None:
    _, text = pair(*ALL["prices"])
    said, _ = text.reset(seed=0)
    assert f"{text.names[3]} 40" in said
    assert "does not pay for" in text.step(f"PULL {text.names[3]}")[4]["unreadable"]


def test_late_results_are_said() -> None:
    _, text = pair("Threshold", {"batch": 3})
    said, _ = text.reset(seed=0)
    assert "in batches of 3" in said
    assert "No result is still to come." in text.step(f"PULL {text.names[0]} 0")[0]
    said, *_ = text.step(f"PULL {text.names[0]} 2")
    assert said.startswith("No new result.")
    assert "Results still to come: 2." in said
    said, *_ = text.step(f"PULL {text.names[0]} 0")  # closes the batch
    assert said.startswith(f"{text.names[0]}, 2 times")


def test_digits_fit_the_unit() -> None:
    _, text = pair(*ALL["units"])
    text.reset(seed=0)
    assert re.match(r"\w+: \d{8,9}\n", text.step(f"PULL {text.names[0]}")[0])
    small = {"distribution": "gaussian", "mean": [1 + 1e-7, 1.0], "sd": 1e-8}
    _, text = pair("Threshold", {"instance": small, "threshold": 1.0})
    text.reset(seed=0)
    one, two = (float(text.step(f"PULL {name}")[0].split()[1]) for name in text.names)
    assert one - two == pytest.approx(1e-7, rel=0.5)


def test_the_control_and_guardrails_are_said() -> None:
    _, text = pair(*ALL["guardrails"])
    said, _ = text.reset(seed=0)
    assert "value 2 at most 0.1 below, value 3 at most 0.2 below it" in said
    assert f"The control is {text.names[0]}" in said
    assert "is the control" in text.step(f"ANSWER {text.names[0]}")[4]["unreadable"]


DRAWN = ["Threshold", "AllGood", "TopK", "Feasible", "BestArm", "guardrails", "batch", "delay", "pull_cost"]


def leaks(what: str, extra: str = "") -> list[float]:
    """The true means, drawn evenly on [0, 1], that stand in a message of an episode, to three digits or more.

    Means of k results, k up to 40, are left out: no false alarm is by these.
    """
    problem, how = ALL[what]
    _, text = pair(problem, {**how, "instance": "sampler(arms=6)"} if what == "Threshold" else how)
    said = [text.reset(seed=8)[0]]
    names = text.names
    while not text._over and len(said) < 16 and int(text._seen["remaining"][0]):
        said.append(text.step(f"PULL {names[len(said) % len(names)]}")[0])
    assert len(said) > 12
    means = np.ravel(text.unwrapped._core.means).tolist()
    known = {f"{k / n:.3f}" for n in range(1, 41) for k in range(n + 1)}
    wanted = [mean for mean in means if f"{mean:.3f}" not in known]
    assert wanted
    said.append(extra.format(mean=wanted[0]))
    return [mean for mean in wanted if any(f"{mean:.3f}"[1:] in one or repr(mean)[1:6] in one for one in said)]


@pytest.mark.parametrize("what", DRAWN)
def test_no_truth_is_said(what: str) -> None:
    assert leaks(what) == []
    assert leaks(what, "teal: {mean:.4f}")
    assert leaks(what, "teal: {mean!r}")


def test_numbers_are_said_exactly() -> None:
    """Defect: six digits made another task of them."""
    close = {"distribution": "gaussian", "mean": [10000.02, 10000.05, 10000.08], "sd": 0.01}
    _, text = pair("Threshold", {"instance": close, "threshold": 10000.0512})
    assert "a mean of 10000.0512 or more" in text.reset(seed=0)[0]
    _, text = pair("BestArm", {"instance": "sampler(arms=2)", "budget": 10**8, "cost": [1234567.25, 1.0]})
    assert "1234567.25" in text.reset(seed=0)[0]
    _, text = pair("AllGood", {"epsilon": 0.12345678})
    assert "0.12345678" in text.reset(seed=0)[0]


def test_what_a_press_costs_is_said_with_the_score() -> None:
    _, text = pair("BestArm", {"instance": {"distribution": "bernoulli", "mean": [0.9, 0.1]}, "pull_cost": 0.05})
    said, _ = text.reset(seed=0)
    assert "Each press costs 0.05, which comes off the score" in said
    text.step(f"PULL {text.names[0]} 4")
    said, reward, *_ = text.step(f"ANSWER {text.names[0]}")
    assert "less 0.2 for what it took" in said


def test_what_is_left_to_spend_is_said() -> None:
    """Defect: it was rounded up to 1 while some arm could be paid."""
    _, text = pair("BestArm", {"instance": "sampler(arms=2)", "budget": 2, "cost": [0.6, 0.2]})
    text.reset(seed=0)
    assert "Left to spend: 0.8." in text.step(f"PULL {text.names[0]} 2")[0]
    assert "Left to spend: 0.6." in text.step(f"PULL {text.names[1]}")[0]
    _, text = pair("BestArm", {"instance": "score-tables(K=3, N=20)", "budget": 5, "cost": "row"})
    text.reset(seed=0)
    assert "Left to spend: 0; some presses are free" in text.step(f"PULL {text.names[0]} 5")[0]
    assert "does not pay for" in text.step(f"PULL {text.names[0]}")[4]["unreadable"]


def test_none_is_offered_where_it_can_be() -> None:
    for tools, word in ((False, "ANSWER none"), (True, "an empty list")):
        for problem, there in (("Threshold", True), ("AllGood", False), ("TopK", False)):
            _, text = pair(problem, {"k": 2} if problem == "TopK" else {}, tool_calls=tools)
            assert (word in text.reset(seed=0)[0]) == there


def test_it_is_an_environment_as_gymnasium_has_them() -> None:
    text = pair("Threshold", {})[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is wrapped
        check_env(text, skip_render_check=True, skip_close_check=True)
    assert text.spec is not None
    again: Any = gym.make(text.spec)
    assert isinstance(again, TextView)
    assert again.reset(seed=1)[0] == text.reset(seed=1)[0]


BAD: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "actions": ({"actions": "arm"}, {}, "actions='full'"),
    "observation": ({"observation": "features"}, {}, "observation='features'"),
    "story": ({}, {"story": "poems"}, "poems"),
    "view": ({}, {"view": "picture"}, "picture"),
    "tools": ({}, {"tool_calls": "yes"}, "tool_calls"),
    "patience": ({}, {"patience": 0}, "patience"),
    "stop": ({"stop": False}, {}, "stop=False"),
    "coordinates": ({"pull": "coordinate", "instance": {"sampler": {"dimensions": 2}}}, {}, "pull='coordinate'"),
    "many": ({"instance": "sampler(arms=1001)"}, {}, "1,001"),
}


@pytest.mark.parametrize("what", BAD)
def test_other_environments_and_words_are_refused(what: str) -> None:
    kwargs, words, said = BAD[what]
    problem = "Threshold"
    if what == "coordinates":
        problem, kwargs = "Feasible", {**kwargs, "A": [[1.0, 0.0]], "b": [0.5]}
    with pytest.raises(ValueError, match=re.escape(said)):
        TextView(gym.make(f"bandit_envs/{problem}-v0", **{"actions": "full", **kwargs}), **words)
    with pytest.raises(ValueError, match="bandit_envs"):
        TextView(gym.make("CartPole-v1"))
    one = gym.make("bandit_envs/Threshold-v0", actions="full")
    with pytest.raises(ValueError, match="no wrapper changes"):
        TextView(gym.wrappers.TransformObservation(one, lambda seen: seen, gym.spaces.Discrete(2)))


def words_of(problem: str, **how: Any) -> str:
    """What is asked, of three buttons."""
    kwargs: dict[str, Any] = {"actions": "full", "budget": 9, "instance": "sampler(arms=3)"} | how
    return " ".join(Narrator(gym.make(f"bandit_envs/{problem}-v0", **kwargs).unwrapped.task).asks("ABC"))


SCORED: dict[str, tuple[str, dict[str, Any], Callable[[Any, Any, int], float]]] = {
    "share of the 3 buttons that you put on the right side": (
        "Threshold",
        {"tolerance": 0.1},
        lambda answer, means, _: float(np.mean((answer == (means >= 0.5)) | (np.abs(means - 0.5) < 0.1))),
    ),
    "F1, twice those asked for in the answer, divided by all in it plus all asked for": (
        "AllGood",
        {"epsilon": 0.2, "slack": 0.2},
        lambda answer, means, _: (
            2 * (answer & (right := means >= max(means) - 0.2)).sum() / (answer.sum() + right.sum())
        ),
    ),
    "1 for the best 2, 0 for the worst 2, and between the two by the true means": (
        "TopK",
        {"k": 2, "epsilon": 0.1},
        lambda answer, means, k: (
            (means[answer].sum() - sum(sorted(means)[:2])) / (sum(sorted(means)[-2:]) - sum(sorted(means)[:2]))
        ),
    ),
    "1 for the best, 0 for the worst, and between the two by the true mean": (
        "BestArm",
        {},
        lambda answer, means, k: (means[answer].sum() - min(means)) / (max(means) - min(means)),
    ),
}


@pytest.mark.parametrize("said", SCORED)
def test_the_score_is_what_is_said(said: str) -> None:
    """Scores by the sentence of the first message are those of the environment, for all answers."""
    name, how, score = SCORED[said]
    assert f"scored from 0 to 1: {'the ' * (name == 'Threshold')}{said}" in words_of(name, **how)
    problem, rng = PROBLEMS[name](**how), np.random.default_rng(4)
    for _ in range(20):
        means = rng.random(3)
        for mask in range(8):
            answer = np.array([mask >> k & 1 for k in range(3)], bool)
            if problem.answer_size in (None, answer.sum()):
                assert problem.score(answer, means) == pytest.approx(score(answer, means, 2))


def test_a_problem_that_scores_otherwise_says_no_more_than_it_knows() -> None:
    class Doubled(PROBLEMS["Threshold"]):  # type: ignore[misc]
        def _score(self, verdict: Any, K: int) -> Any:
            return super()._score(verdict, K) ** 2

    assert not Doubled.has_latest("scored", "verdict", "_score")
    assert PROBLEMS["BestArm"].has_latest("scored", "verdict", "_score")


def test_one_is_said_as_one() -> None:
    said = words_of("Threshold", budget=1, instance="sampler(arms=1)")
    assert "There is 1 button: " in said
    assert "You have 1 press. Then" in said
    assert "You have 9 presses. Then" in words_of("Threshold")


@pytest.mark.parametrize(
    ("how", "by"),
    [
        ({}, "above"),
        ({"lift": 0.1}, "more than 10 % above"),
        ({"lift": 0.0005}, "more than 0.05 % above"),
        ({"lift": -0.05}, "no more than 5 % below"),
        ({"lift": 0.0}, "above"),
        ({"margin": 0.02}, "more than 0.02 above"),
        ({"margin": -0.02}, "no more than 0.02 below"),
    ],
)
def test_how_much_better_than_the_control(how: dict[str, Any], by: str) -> None:
    assert f"buttons have a mean {by} that of the control?" in words_of("BetterThanControl", **how)


def test_limits_in_words() -> None:
    how = {"instance": {"sampler": {"dimensions": 2, "arms": 3}}, "A": [[1, 0], [0.123456, -2]], "b": [0.55, 1234.5]}
    said = "have, on average, a value 1 of 0.55 or less, and 0.1235 x value 1 - 2 x value 2 of about 1234 or less?"
    assert said in words_of("Feasible", **how)


def test_all_problems_are_in_words() -> None:
    assert {*PLAIN} == {name for name in PROBLEMS if PROBLEMS[name].__module__.startswith("bandit_envs.")}


def test_the_page_shows_what_is_said(capsys: Any) -> None:
    page = (Path(__file__).parents[2] / "docs" / "language-models.md").read_text()
    code, printed = re.findall(r"^```python\n(.*?)^```\n\n```\n(.*?)^```", page, re.M | re.S)[0]
    exec(code, {})
    assert capsys.readouterr().out == printed
