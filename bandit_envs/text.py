"""`TextView`: an environment in words, for language models. Messages are observations, and text is the action.

The episodes are the same as everybody's: a command `PULL teal 3` is the action of that arm, and `ANSWER teal, red` that
of the answer. `Narrator` is what says a task and reads replies; it knows the task and the statistics, and no truth.
"""

from __future__ import annotations

import json
import math
import re
import string
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from .envs import PureExplorationEnv
from .kernels import agent_uniforms, choice, flag, integer
from .problems import Problem, Task
from .simulation.simulator import MOST_TIMES

__all__ = ["STORIES", "TOOLS", "Command", "Narrator", "Story", "TextView", "Unreadable"]
VIEWS = ("table", "history", "raw")
MOST_ARMS = 1000  # each has a name in the first message
LONGEST = 2**14  # characters of an action; more is not read
NAMES = 2**32 - 2  # the seed of the names among the streams of agents


class Story(NamedTuple):
    """In whose words a task is."""

    one: str  # an arm
    pulled: str  # what is done to it, a noun
    presses: str  # several of these
    result: str  # what a pull yields
    names: str  # of arms

    @property
    def many(self) -> str:
        """Several arms."""
        return f"{self.one}s"


COLOURS = """amber aqua beige black blue bronze brown coral cream crimson cyan gold green grey indigo ivory jade khaki
lemon lilac lime maroon mint navy ochre olive orange peach pink plum purple red rose ruby rust sand scarlet tan teal"""
THINGS = """anchor arrow balloon bicycle bridge candle castle clover comet compass crown dolphin eagle feather forest
garden guitar harbor island kite ladder lantern lighthouse maple meadow mirror mountain orchard parrot pearl rainbow"""
CODES = " ".join(f"{a}{b}-{17 + 11 * n}" for n, a in enumerate("BCDFGHJ") for b in "KLMNPR")
STORIES = {
    "buttons": Story("button", "press", "presses", "payout", COLOURS),
    "adverts": Story("advert", "view", "views", "response", THINGS),
    "assays": Story("compound", "assay", "assays", "reading", CODES),
}


def _tool(name: str, does: str, must: str, **of: Any) -> dict[str, Any]:
    """A tool in the form that chat endpoints take."""
    form = {"type": "object", "properties": of, "required": [must]}
    return {"type": "function", "function": {"name": name, "description": does, "parameters": form}}


STRING, TIMES = {"type": "string"}, {"type": "integer", "minimum": 0}
TOOLS = [
    _tool("pull", "Pull an arm, and see what it yields.", "arm", arm=STRING, times=TIMES),
    _tool("answer", "End with the answer, names of arms.", "arms", arms={"type": "array", "items": STRING}),
]


def _exact(x: float) -> str:
    """A number in as few digits as say it."""
    return f"{x:.15g}"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, in which each name stands once."""
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("a name stands twice")
    return found


class Unreadable(ValueError):
    """A reply that is no command, with what is allowed in its place."""


class Command(NamedTuple):
    """What a reply asks for: an arm and how often, or an answer."""

    arm: int  # K: the answer
    times: int = 1
    answer: tuple[int, ...] = ()

    def action(self, K: int) -> dict[str, Any]:
        """As the full action of an environment."""
        answer = np.zeros(K, np.int8)
        answer[[*self.answer]] = 1
        return {"arm": self.arm, "times": self.times, "answer": answer}


class Narrator:
    """A task in words: what is said in an episode, and how replies are read.

    Args:
        task: with pulls of whole arms, an action that stops, and at most 1,000 arms.
        story: "buttons", "adverts" or "assays", the words in which arms and results are said.
        view: what is shown after each action: "table", the statistics of all arms; "history", the new results alone;
            "raw", the observation in JSON, whose floats read back exactly (the first message has the task in JSON).
        tool_calls: replies are JSON, calls of the tools `TOOLS`, in place of commands.

    Raises:
        ValueError: for other values, naming what is allowed.
    """

    def __init__(self, task: Task, story: str = "buttons", view: str = "table", tool_calls: bool = False) -> None:
        self.task, self.problem, self.view = task, task.make_problem(), choice("view", view, VIEWS)
        self.story, self.tool_calls = STORIES[choice("story", story, tuple(STORIES))], flag("tool_calls", tool_calls)
        if task.pull != "arm" or not task.can_stop or task.K > MOST_ARMS:
            needed = f"pulls of whole arms, an action that stops, and at most {MOST_ARMS:,} arms,"
            raise ValueError(f"text needs {needed} got pull={task.pull!r}, stop={task.can_stop}, K={task.K:,}")
        self.digits = int(np.clip(2 - math.floor(math.log10(task.sigma)), 0, 17))  # behind the point
        self.many = f"{task.K:,} {self.story.many if task.K > 1 else self.story.one}"

    def names(self, public_seed: int) -> list[str]:
        """Of the arms in an episode, (K,), drawn: the same for the same public seed."""
        pool, K = self.story.names.split(), self.task.K
        rounds = -(-K // len(pool))
        u = agent_uniforms(np.array([public_seed]), np.zeros(1, np.int64), rounds * len(pool), seed=NAMES)[0]
        every = [name + (f"-{i + 1}" if i else "") for i in range(rounds) for name in pool]
        return [every[place] for place in np.argsort(u, kind="stable")[:K]]

    # What is said

    def asks(self, names: Sequence[str]) -> list[str]:
        """The task in words."""
        task, story = self.task, self.story
        drawn = "0 or 1" if task.distribution == "bernoulli" else "a number"
        if drawn != "0 or 1" and task.support is not None:
            drawn = f"a number from {_exact(task.support[0])} to {_exact(task.support[1])}"
        each = drawn if task.D == 1 else f"{task.D} values, each {drawn}"
        spread = f", with a standard deviation of {_exact(task.sigma)} at most" * (task.distribution == "gaussian")
        said = [
            f"{'There are' if task.K > 1 else 'There is'} {self.many}: {', '.join(names)}.",
            f"Each {story.pulled} of one {story.one} shows its {story.result}, {each}. Each {story.one} has a mean "
            f"{story.result}{'' if task.D == 1 else ' of each value'} that stays the same and that you do not know; "
            f"single results scatter around it{spread}.",
            self.problem.in_words(f"Which of the {self.many}", self.many),
        ]
        if self.problem.control_arm is not None:
            said.append(f"The control is {names[self.problem.control_arm]}; it is in no answer.")
        if task.items:
            said.append(f"All are scored on the same {task.items:,} questions, in one random order.")
        if task.budget is not None and task.cost is None:
            presses = story.presses if task.budget > 1 else story.pulled
            said.append(f"You have {task.budget:,} {presses}. Then you answer.")
        elif task.budget is not None:
            said.append(f"You can spend {task.budget:,}. Then you answer.")
        if task.cost is not None:
            prices = "A question costs 1 with the first that is asked it, and nothing with others."
            if not isinstance(task.cost, str):
                own = ", ".join(f"{name} {_exact(price)}" for name, price in zip(names, task.cost, strict=True))
                prices = f"Prices of one {story.pulled}: {own}."
            said.append(prices)
        if task.delta is not None:
            share = f"of such answers a share of {_exact(task.delta)} may be wrong"
            said.append(f"Answer as soon as you are sure: {share}. Use as few {story.presses} as you can.")
        if task.pull_cost:
            cost = f"Each {story.pulled} costs {_exact(task.pull_cost)}"
            said.append(f"{cost}, which comes off the score of your answer.")
        if task.max_pulls is not None:
            end = f"After {task.max_pulls:,} {story.presses} in all it is over"
            said.append(f"{end}; without an answer the score is 0.")
        if task.waits:
            mean = f"{_exact(task.mean_delay)} {story.presses} later{' on average' * isinstance(task.delay, str)}"
            late = " and ".join([f"in batches of {task.batch}"] * (task.batch > 1) + [mean] * (task.delay != 0))
            said.append(f"Results come {late}; 0 for the number of {story.presses} waits for the next one.")
        if task.delta is None:
            how = self.problem.scored if self.problem.has_latest("scored", "verdict", "_score") else Problem.scored
            scored = how.format_map(self.problem.settings | {"many": self.many})
            said.append(f"Your answer is scored from 0 to 1: {scored}.")
        return said

    def opening(self, names: Sequence[str], seen: Mapping[str, NDArray[Any]]) -> str:
        """The task in words, and how to reply; in the view "raw" in JSON too."""
        said, size = self.asks(names), self.problem.answer_size
        some = "" if size is None else f" It holds {size} {self.story.one if size == 1 else self.story.many}."
        said.append(f"{self.allowed(names, seen)}{some}")
        if self.view == "raw":
            facts = {"task": json.loads(self.task.to_json()), "names": [*names]}
            said += [json.dumps(facts), self._numbers(seen)]
        return "\n".join(said)

    def allowed(self, names: Sequence[str], seen: Mapping[str, NDArray[Any]]) -> str:
        """How to reply to an observation."""
        spent = seen["remaining"][0] == 0
        some, size = [name for k, name in enumerate(names) if k != self.problem.control_arm], self.problem.answer_size
        first, last = names[0], [*some[:1], *some[-1:]][: min(len(some), size or 2)]
        empty = size is None and not self.problem.never_empty  # where an answer may be
        if self.tool_calls:
            calls = {"pull": {"arm": first, "times": 3}, "answer": {"arms": last}}
            pull, answer = (json.dumps({"name": name, "arguments": given}) for name, given in calls.items())
            answer += " (an empty list where there is none)" * empty
            more = f"{pull} (times may be left out: 1), or, to end, " * (not spent)
            return f"Reply with JSON, one call: {more}{answer}."
        more = f"'PULL {first}', 'PULL {first} 3' for three, or " * (not spent)
        none = "; 'ANSWER none' where there is none" * empty
        return f"The last line of your reply is one command: {more}'ANSWER {', '.join(last)}' to end{none}."

    def shown(self, names: Sequence[str], before: Mapping[str, NDArray[Any]], seen: Mapping[str, NDArray[Any]]) -> str:
        """The message after an action, by the observations before and after it, of one episode each."""
        if self.view == "raw":
            return self._numbers(seen)
        new = seen["pulls"] - before["pulls"]
        said, total = [], seen["total"] - before["total"]
        for k in np.flatnonzero(new).tolist():
            of = f"{names[k]}: " if new[k] == 1 else f"{names[k]}, {new[k]:,} times, on average: "
            said.append(of + self._value(total[k] / new[k], int(new[k])))
        if not said:
            said.append("No new result.")
        if self.view == "table":
            said += ["", *self._table(names, seen)]
        return "\n".join([*said, *self._state(seen)])

    def _state(self, seen: Mapping[str, NDArray[Any]]) -> list[str]:
        """What is left, and what is pending."""
        task, asked, said = self.task, self.asked(seen), list[str]()
        if (pending := int(np.sum(seen.get("pending", 0)))) > 0:
            said.append(f"Results still to come: {pending:,}.")
        if seen["remaining"][0] == 0:
            said.append("Nothing is left: answer now.")
        elif task.budget is not None and task.cost is None:
            said.append(f"Left: {int(seen['remaining'][0]):,}.")
        elif task.budget is not None:
            left = max(0.0, round(task.budget - task.paid(asked), 9))
            said.append(f"Left to spend: {_exact(left)}" + ("." if left else f"; some {self.story.presses} are free."))
        if task.max_pulls is not None:
            said.append(f"So far: {int(asked.sum()):,} of at most {task.max_pulls:,}.")
        return [" ".join(said)] * bool(said)

    def _table(self, names: Sequence[str], seen: Mapping[str, NDArray[Any]]) -> list[str]:
        """The statistics of all arms, as lines."""
        counts = [int(n) for n in seen["pulls"]]
        rows = [
            f"{name}: {n:,}" + (f", mean {self._value(seen['mean'][k], n)}" if n else "")
            for k, (name, n) in enumerate(zip(names, counts, strict=True))
        ]
        return [f"{self.story.one}: number of {self.story.presses}, mean {self.story.result}", *rows]

    def _value(self, value: Any, n: int) -> str:
        """A mean of n results in digits that say what it is worth; of single results that are 0 or 1, this number."""
        digits = 0 if n == 1 and self.task.distribution == "bernoulli" else self.digits + (n > 1)
        return ", ".join(f"{x:.{digits}f}" for x in np.atleast_1d(value))

    def _numbers(self, seen: Mapping[str, NDArray[Any]]) -> str:
        """An observation in JSON."""
        return json.dumps({name: array.tolist() for name, array in seen.items()})

    # How replies are read

    def asked(self, seen: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
        """How often each arm has been pulled, (K,), with what is pending."""
        found: NDArray[np.int64] = seen["pulls"] + seen.get("pending", 0)
        return found

    def read(self, text: Any, names: Sequence[str], seen: Mapping[str, NDArray[Any]]) -> Command:
        """The command of a reply, given the observation that it answers; `Unreadable` says what is wrong with it."""
        if not isinstance(text, str) or len(text) > LONGEST:
            found = type(text).__name__ if not isinstance(text, str) else f"{len(text):,} characters"
            raise Unreadable(f"A reply is text of at most {LONGEST:,} characters, got {found}.")
        text = re.sub(r"(?is)<think(?:ing)?>.*?(?:</think(?:ing)?>|$)", "", text)
        text = re.split(r"(?i)</think(?:ing)?>", text)[-1]  # a template may have begun it
        word, given, times = self._called(text) if self.tool_calls else self._commanded(text, names)
        if word == "answer":
            return Command(self.task.K, 1, self._answer(given, names))
        arm = self._arms(given, names)
        if len(arm) != 1:
            raise Unreadable(f"One {self.story.one} is pulled at a time, got {len(arm)}.")
        if not (least := 0 if self.task.waits else 1) <= times <= MOST_TIMES:
            raise Unreadable(f"A number of times is from {least} to {MOST_TIMES:,}, got {times}.")
        if times == 0 and not np.any(seen["pending"]):
            raise Unreadable("No result is still to come.")
        if seen["remaining"][0] == 0:
            raise Unreadable("Nothing is left to pull: answer now.")
        if times and not self.task.affords(self.asked(seen))[arm[0]]:
            raise Unreadable(f"What is left does not pay for {names[arm[0]]}.")
        return Command(arm[0], times)

    def _commanded(self, text: str, names: Sequence[str]) -> tuple[str, list[str], int]:
        """The command in the last line of a text: its word, the names, and how often. No other line is a command."""
        lines = [re.sub(r"[*`\ufeff\u200b]", "", line.replace("\xa0", " ")) for line in text.splitlines()]
        lines = [re.sub(r"^(?:[0-9]{1,3}[.)]|[-#>•])\s+", "", line.strip(" \t.")).strip(" \t'\".") for line in lines]
        *others, last = [line for line in lines if line] or [""]
        if (found := self._line(last)) is None:
            raise Unreadable(f"{ascii(last[:80])} is no command.")
        known = {"none", *(name.casefold() for name in names)}
        for line in others:
            if (other := self._line(line, strict=False)) and {name.casefold() for name in other[1] or "?"} <= known:
                raise Unreadable(f"A reply has one command, got another one too, {ascii(line[:80])}.")
        return found

    @staticmethod
    def _line(line: str, strict: bool = True) -> tuple[str, list[str], int] | None:
        """The parts of a line that begins as a command; None: it does not. strict: refuse what is none then."""
        begun = re.match(r"(?i)(pull|answer)\b[\s:]*", line)
        if begun is None:
            return None
        rest = line[begun.end() :]
        if begun[1].lower() == "answer":
            return "answer", [name for name in re.split(r"[\s,;&]+|\band\b", rest) if name], 1
        parts = re.fullmatch(r"(\S+?)[,:]?(?:\s+x?\s*([0-9][0-9,]{0,14})(?:\s*(?:x|times?))?)?", rest)
        if parts is None and not strict:
            return None
        if parts is None:
            raise Unreadable(f"PULL is followed by one name and maybe a number, got {ascii(rest[:80])}.")
        return "pull", [parts[1]], int((parts[2] or "1").replace(",", ""))

    def _called(self, text: str) -> tuple[str, list[str], int]:
        """The same of a tool call in JSON."""
        try:
            body = "\n".join(line for line in text.splitlines() if not line.startswith("```"))
            call = json.loads(body, object_pairs_hook=_once)
            given = call["arguments"]
            given = json.loads(given, object_pairs_hook=_once) if isinstance(given, str) else given
            name, times = call["name"], given.get("times", 1)
            arms = given["arms" if name == "answer" else "arm"]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise Unreadable("A reply is one call of a tool in JSON, and this is none.") from None
        arms = [arms] if isinstance(arms, str) else arms
        takes = {"pull": {"arm", "times"}, "answer": {"arms"}}.get(name, set()) if isinstance(name, str) else set()
        named = isinstance(arms, list) and all(isinstance(one, str) for one in arms)
        if type(times) is not int:
            raise Unreadable(f"times is a whole number, got {ascii(times)[:40]}.")
        if not named or call.keys() != {"name", "arguments"} or not given.keys() <= takes:
            raise Unreadable("The tools are pull, with arm and times, and answer, with arms, which are names.")
        return name, arms, times

    def _arms(self, given: Sequence[str], names: Sequence[str]) -> list[int]:
        """The numbers of arms that are named, each once."""
        places = {name.casefold(): k for k, name in enumerate(names)}
        found = []
        for name in given:
            plain = name.strip(" \t'\"`*()[]{}.").casefold()
            if plain not in places:
                raise Unreadable(f"There is no {self.story.one} {ascii(name[:40])}: they are {', '.join(names)}.")
            if (k := places[plain]) in found:
                raise Unreadable(f"{names[k]} is named twice.")
            found.append(k)
        return found

    def _answer(self, given: Sequence[str], names: Sequence[str]) -> tuple[int, ...]:
        size, control = self.problem.answer_size, self.problem.control_arm
        if not self.tool_calls and [name.casefold() for name in given] == ["none"]:
            given = []
        elif not given and not self.tool_calls:
            raise Unreadable("ANSWER is followed by names" + (", or by none." if size is None else "."))
        arms = self._arms(given, names)
        if size is not None and len(arms) != size:
            raise Unreadable(f"An answer holds {size}, got {len(arms)}.")
        if control in arms:
            raise Unreadable(f"{names[control]} is the control, which is in no answer.")
        return tuple(arms)


class TextView(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """An environment in words: messages are observations, and text is the action.

    The first message says the task, and how to reply; each further one what the action has shown. Text that cannot be
    read changes nothing and costs nothing: the message says what is allowed, and `info["unreadable"]` what is wrong.
    After `patience` of these in a row the episode is terminated with reward 0, and a score of 0 in its info, where
    `info["unreadable"]` is there too. All other rewards and infos are those of the environment.

    Args:
        env: of `gym.make(.., actions="full")`, with observation="statistics", and no wrapper that changes either.
        story, view, tool_calls: as for `Narrator`.
        patience: how many replies in a row may be unreadable, >= 1.

    Raises:
        ValueError: for another environment, and other values.
    """

    def __init__(
        self,
        env: gym.Env[Any, Any],
        story: str = "buttons",
        view: str = "table",
        tool_calls: bool = False,
        patience: int = 3,
    ) -> None:
        RecordConstructorArgs.__init__(self, story=story, view=view, tool_calls=tool_calls, patience=patience)
        gym.Wrapper.__init__(self, env)
        base: Any = env.unwrapped
        if not isinstance(base, PureExplorationEnv):
            raise ValueError(f"TextView needs an environment of bandit_envs, got {base!r:.200}")
        task, ranked = base.task, base.setting.ranked
        if task.actions != "full" or task.observation != "statistics" or ranked:
            got = f"actions={task.actions!r}, observation={task.observation!r}, ranked={ranked}"
            raise ValueError(f"TextView needs gym.make(.., actions='full'), with statistics and no ranks, got {got}")
        if env.observation_space != base.observation_space or env.action_space != base.action_space:
            raise ValueError(f"TextView needs an environment whose actions and observations no wrapper changes: {env}")
        self.narrator, self.patience = Narrator(task, story, view, tool_calls), integer("patience", patience, 1)
        charset = string.printable + "".join({*" ".join(self.narrator.asks(["a"] * task.K))} - {*string.printable})
        most = 2**16 + 128 * task.K * (1 + task.D) * (1 + (task.items or 0))  # characters of a message
        self.observation_space = spaces.Text(most, min_length=0, charset=charset)
        self.action_space = spaces.Text(LONGEST, min_length=0, charset=string.printable)
        self._over, self._names = True, list[str]()

    @property
    def names(self) -> list[str]:
        """Those of the arms in this episode, by number."""
        return [*self._names]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        """Start an episode, as the environment does; the message says the task."""
        self._seen: Any
        self._seen, info = self.env.reset(seed=seed, options=options)
        self._names = self.narrator.names(int(self._seen["public_seed"][0]))
        self._unread, self._over = 0, False
        return self.narrator.opening(self._names, self._seen), info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Do what a text asks for."""
        if self._over:
            raise gym.error.ResetNeeded("the episode has ended: call reset first")
        try:
            command = self.narrator.read(action, self._names, self._seen)
        except Unreadable as error:
            return self._unreadable(str(error))
        self._unread, before = 0, self._seen
        self._seen, reward, terminated, truncated, info = self.env.step(command.action(self.narrator.task.K))
        self._over = terminated or truncated
        if terminated:
            answer = [self._names[k] for k in np.flatnonzero(info["answer"])]
            paid = self.narrator.task.pull_cost * info["total_pulls"]
            said = f"Your answer is {', '.join(answer) or 'none'}. It scores {info['score']:.4g}"
            said += f", less {_exact(paid)} for what it took." if paid else "."
        else:
            said = self.narrator.shown(self._names, before, self._seen) + "\nIt is over, without an answer." * truncated
        return said, float(reward), terminated, truncated, info

    def _unreadable(self, why: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._unread += 1
        info: dict[str, Any] = {"unreadable": why}
        if self._unread < self.patience:
            return f"{why} {self.narrator.allowed(self._names, self._seen)}", 0.0, False, False, info
        self._over = True
        info |= {"score": 0.0, "correct": False, "is_success": False, "answer": np.zeros(len(self._names), np.bool_)}
        info["total_pulls"] = int(self.narrator.asked(self._seen).sum())
        return f"{why} It is over, as {self.patience} replies in a row could not be read.", 0.0, True, False, info
