"""`Setup` of a session: the agent, the task and the names of the arms, given as objects or as plain facts."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import product
from typing import Any
from unicodedata import normalize

import numpy as np

from bandit_envs import PROBLEMS, Task
from bandit_envs.envs import fresh_root
from bandit_envs.instances import measurements, names_alone, rows_of, unswept
from bandit_envs.kernels import flag, integer, interval, number, respelled, unknown, within_ends
from bandit_envs.problems import BLOCKS, prices_of

from ..core.agent import Agent, Floats, task_of
from ..core.certified import CERTIFICATE, Certified
from ..core.forms import forms_of
from ..models.cards import card_path
from ..registry import Recipe, recipe_of
from .design import MOST_BLOCKS, WISHES, refuse_misfit, wishes_of

FORMATS = {"arrival": 1, "asked": 2}  # of the orders in which results count: earlier versions know the first alone
WHOLE = re.compile(r"^([0-9]+)\.0$")  # as pandas writes a number in a column with gaps
MOST_DIGITS = 9  # of the number of an arm
SAMPLERS = ("evidence", "uniform")  # which arms they want with strata: see `StrataRun.wishes`
UNFIT = object()  # in place of the JSON form of what has none
RULES = ("budget", "delta", "max_pulls")
JUDGED = ("judge", "judge_slope")
OF_SAMPLES = ("range", "sigma", "binary", "dimensions", "independent", "minimize")
FACTS = ("problem", "arms", "items", *OF_SAMPLES, "reserve", *RULES, "cost", "hint", *JUDGED)
# More than the format of the order: a lower value is better, blocks, a judge, contrasts of pairs. Earlier versions
# refuse these.
TURNED_FORMAT, BLOCKS_FORMAT, JUDGE_FORMAT, PAIRS_FORMAT = 10, 20, 40, 80
# What each fact in a store is, as JSON is read.
KINDS: dict[str, Any] = {"agent": str | None, "parameters": dict | None, "task": str, "names": list, "public_seed": int}


def task_from_facts(facts: Mapping[str, Any]) -> tuple[Task, list[str] | None]:
    """The task of plain facts, and the names of the arms where they are given.

    Args:
        facts: those below, and the parameters of the problem, by their names. What is None is not there.

    Keyword Args:
        problem (str): what is asked: Threshold, AllGood, TopK, BestArm, BetterThanControl, Feasible, or "module:Class".
        arms: how many there are, or their names.
        items: rows of a table on which all arms are measured, each once: how many, or their names. What is true is then
            the mean over all rows.
        range: the lowest and the highest value of a measurement; with items such a pair for each of its dimensions.
        sigma (float): the standard deviation of the noise of a measurement, in place of a range. With blocks and a
            control also "common": nobody knows it, but it is one of all arms and blocks, and results are normal.
        binary (bool): a measurement is 0 or 1.
        dimensions (int): how many numbers a measurement is, if not 1.
        independent (bool): the numbers of a measurement are known not to depend on each other.
        budget (int): how many measurements there may be, or with `cost` how much money.
        delta (float): the allowed error probability, for agents that stop by themselves.
        max_pulls (int): a number of measurements that ends the session.
        cost: prices of a measurement, of all arms or by names, 1 of others; or "row": rows of a table cost 1 each.
        hint: of BestArm with items, a table of the same arms on other rows, or their means there, by which bets are
            made until results differ.
        judge: with items, a table of cheap scores of all N x K cells, in the range of measurements and known
            beforehand, as of a grader; good ones save measurements (prediction-powered inference, Angelopoulos et al.,
            Science 2023; docs/tables.md).
        judge_slope (float): the part of a score that is taken off, in (0, 1]. None: 0.5.
        reserve (float): the part of delta, in [0, 1), that is kept for arms that are added, or whose rivals leave.
        minimize (bool): a lower value is better; of Threshold, arms with a mean of the threshold at most are wanted.
        title (str): what the experiment is about.
        unit (str): of a measurement.
        noun (str): what an arm is called, as "compound".
        plate (int): how many wells a plate has: questions fill plates in their order.
        per_plate (int): how many wells of a plate an arm may have.
        controls: wells that an arm has of each plate, how many, or a share below 1, by the arms' names.
        raters: who may ask: each measures an arm once, or `repeats` times.
        repeats (int): how often a person may measure an arm.
        blocks: "plate", "day" or "rater": all arms are measured in each, so that its effect drops out. Of
            BetterThanControl "plate" or "day": arms are compared with the control of their own one.
        blind (bool): questions have codes, in place of the names of arms.
    """
    given = {name: value for name, value in facts.items() if value is not None}
    for name in ("problem", "arms"):
        if name not in given:
            raise ValueError(f"a session needs the fact {name!r}, got {', '.join(map(str, given)) or 'none'}")
    kind = PROBLEMS.find(given["problem"])
    if surplus := [name for name in given if name not in {*FACTS, *WISHES, *kind.parameters}]:
        raise unknown(f"fact of {kind.name}", str(surplus[0]), [*FACTS, *WISHES, *kind.parameters])
    (arms, names), stratified = (given["arms"], None), "control" in kind.parameters
    if isinstance(arms, Sequence) and not isinstance(arms, str):
        names, arms = list(arms), len(arms)
        names = names if arms < 1 else checked_names(names, arms)
    if isinstance(arms, str) or integer("arms", arms) < 1:
        raise ValueError(f"arms must be a number of arms, or a list of their names, got {given['arms']!r:.200}")
    known: list[str] = [name for name in ("range", "sigma") if name in given]
    if flag("binary", given.get("binary", False)):
        known.append("binary")
    if "binary" in known and len(known) > 1 or not known:
        raise ValueError(
            "what is a measurement like? Give its range, as in range=(0, 10), or the standard deviation of its noise, "
            f"as in sigma=1.5, or binary=True where it is 0 or 1; got {' and '.join(known) or 'none of them'}"
        )
    sample: dict[str, Any] = {"distribution": "bernoulli", "support": (0.0, 1.0), "sigma": 0.5}
    if "range" in known:
        one = given["range"]
        many = [interval("range", x) for x in one] if np.iterable(one) and all(map(np.iterable, one)) else None
        low, high = (min(many)[0], max(x[1] for x in many)) if many else interval("range", one)
        sigma = given.get("sigma", (high - low) / 2)
        sample = {"distribution": "resampled", "support": (low, high), "sigma": sigma, "ranges": many}
    elif "sigma" in known:
        common = given["sigma"] == "common"  # one of all arms, which nobody knows
        if common and ("blocks" not in given or not stratified):
            raise ValueError("sigma='common' is of a control and blocks, 'day' or 'plate': else give a number")
        sample = {"distribution": "gaussian", "support": None, "sigma": 1.0 if common else given["sigma"]}
    if "items" in given:
        if "sigma" in given:
            raise ValueError("with items, a measurement is one number, or several, in a range: leave out sigma")
        named = item_names(given["items"])
        sample["items"] = given["items"] if named is None else len(named)
        sample |= {} if "binary" in known else {"distribution": "shared"}
    if "blocks" in given and not stratified:
        if not {"items", "sigma", "binary"}.isdisjoint(given) or given.get("dimensions", 1) != 1:
            what = "items, sigma, binary and dimensions"
            raise ValueError(f"with blocks, a measurement is one number in a range: leave out {what}")
        sample |= {"items": MOST_BLOCKS, "distribution": BLOCKS}
    rules = {name: given[name] for name in RULES if name in given}
    if "cost" in given:
        if "blocks" in given:
            raise ValueError("cost does not go with blocks, in which all arms are measured")
        rules["cost"] = prices_of(by_name("cost", given["cost"]), arms, checked_names(names, arms))
        dear = max(rules["cost"]) if isinstance(rules["cost"], tuple) else 0
        if dear > given.get("budget", math.inf):
            raise ValueError(f"the budget {given['budget']} never pays for the arm that costs {dear:g}: leave it out")
    if "hint" in given:
        rules["hint"] = hint_of(given["hint"], checked_names(names, arms))
    settings = {name: given[name] for name in kind.parameters if name in given}
    if names and "control" in settings:
        try:
            settings["control"] = arm_of(settings["control"], {name: i for i, name in enumerate(names)})
        except LookupError:
            text = f"control must be one of the arms {', '.join(names):.200}, got {settings['control']!r:.200}"
            raise ValueError(text) from None
    parameters = kind.by_names(settings, names or ())
    D = given.get("dimensions", 1 + np.size(parameters.get("guardrails", ())))
    if "dimensions" not in given and "A" in parameters:
        D = np.atleast_2d(np.asarray(parameters["A"], np.float64)).shape[1]
    dependent = not flag("independent", given.get("independent", False))
    return Task(given["problem"], parameters, K=arms, D=D, **sample, **rules, dependent=dependent), names


def hint_of(given: Any, names: Sequence[str]) -> tuple[float, ...]:
    """The means of arms with these names in a hint: a table with a column for each, or a dict or list of means."""
    if isinstance(given, (list, tuple)) or isinstance(given, np.ndarray) and given.ndim == 1:
        return tuple(given)
    if isinstance(given := by_name("hint", given), Mapping):
        if strange := [name for name in given if name not in names]:
            raise unknown("arm in hint", str(strange[0]), names)
    else:
        try:
            table = measurements(given)
        except TypeError as error:
            raise TypeError(f"hint is a table, or means of the arms: a dict or a list, got {given!r:.80}") from error
        given = {name: float(np.mean(values)) for name, values in zip(table.arms, rows_of(table), strict=True)}
    if lacking := [name for name in names if name not in given]:
        raise ValueError(f"the hint has no mean of the arm {lacking[0]!r}, only of {list(given)!r:.200}")
    return tuple(given[name] for name in names)


def arm_of(arm: object, number: Mapping[str, int]) -> int:
    """The number of an arm, given its name or number, of {name: number}; where a name is a number, given its name.

    Raises:
        LookupError: where there is none. ValueError: for a number that is the name of one arm, and that of another.
    """
    text = (arm if isinstance(arm, str) else checked_name(arm)).strip()
    found, place = number.get(text, number.get(WHOLE.sub(r"\1", text))), len(number)
    if found is None and not text.isascii():  # accents in another code
        found = {normalize("NFC", name): one for name, one in number.items()}.get(normalize("NFC", text))
    if text.isdecimal() and len(text) <= MOST_DIGITS:
        place = int(text)
    if found is None and place < len(number) and not any(name.isdecimal() for name in number):
        found = place
    if found is None:
        raise LookupError(text)
    if not isinstance(arm, str) and found != place < len(number):
        which = f"it is the name of the arm number {found}, and the arm number {place} is {[*number][place]!r:.80}"
        raise ValueError(f"which arm is {arm!r:.80}? {which}: hand over the question, or the name as text")
    return found


def by_name(what: str, given: Any) -> Any:
    """A fact of arms by their names, which may be numbers; anything else as it is."""
    if not isinstance(given, Mapping):
        return given
    found = [(checked_name(name), value) for name, value in given.items()]
    if len(dict(found)) < len(found):
        raise ValueError(f"{what} names an arm twice, got {list(given)!r:.200}")
    return dict(found)


@unswept()
def judged_of(facts: Mapping[str, Any], names: Sequence[str], task: Task) -> dict[str, Any]:
    """The facts `judge`, its scores of arms with these names on all N items, (K, N), and `judge_slope`; {} without."""
    table, slope = facts.get("judge"), facts.get("judge_slope")
    if table is None:
        if slope is not None:
            raise ValueError(f"judge_slope is of a judge, and there is none, got judge_slope={slope!r:.80}")
        return {}
    if task.items is None or task.distribution == BLOCKS or task.D > 1:
        what = f"items={task.items}, D = {task.D}{', blocks' * (task.distribution == BLOCKS)}"
        raise ValueError(f"a judge goes with items, not with blocks, and one number in each cell, got {what}")
    try:
        found = measurements(table)
    except (TypeError, ValueError) as error:
        raise (TypeError if isinstance(error, TypeError) else ValueError)(f"the judge: {error}") from error
    items = item_names(facts.get("items")) or list(map(str, range(task.items)))
    if strange := [arm for arm in found.arms if arm not in names]:
        raise unknown("arm of the judge", strange[0], names)
    cells: dict[tuple[str, str], float] = {}
    for one in found.rows:
        if (one.arm, one.item) in cells or len(one.value) != 1:
            raise ValueError(f"the judge has several scores of {one.arm!r:.80} on {one.item!r:.80}: one is wanted")
        cells[one.arm, one.item] = one.value[0]
    if strange := sorted({item for _, item in cells}.difference(items)):
        raise unknown("item of the judge", strange[0], items)
    if len(cells) < len(names) * len(items):
        arm, item = next(cell for cell in product(names, items) if cell not in cells)
        raise ValueError(f"the judge has no score of {arm!r:.80} on {item!r:.80}")
    low, high = task.support or (0.0, 1.0)
    scores = within_ends(np.array([cells[cell] for cell in product(names, items)]), low, high)
    if len(beyond := np.flatnonzero(~((low <= scores) & (scores <= high)))):
        arm, item = names[beyond[0] // len(items)], items[beyond[0] % len(items)]
        text = f"a judge's scores are in the unit of the measurements, from {low:g} to {high:g},"
        raise ValueError(f"{text} got {float(scores[beyond[0]])!r} for {arm!r:.80} on {item!r:.80}")
    scores = scores.reshape(len(names), -1).tolist()
    return {"judge": scores, "judge_slope": slope_of(0.5 if slope is None else slope)}


def slope_of(value: Any) -> float:
    """The share of a judge's scores that is taken off."""
    return number("judge_slope", value, 0, 1, above=True)


def item_names(items: Any) -> list[str] | None:
    """The names of the rows that all arms share; None where they have numbers alone."""
    if items is None or (isinstance(items, int) and not isinstance(items, bool)):
        return None
    return _different("items", "an item", items, "a number of rows, or a list of their names")


def checked_names(names: Any, K: int) -> list[str]:
    """Names of K arms: those given, or their numbers."""
    allowed = f"one for each of the {K} arms"
    found = [str(k) for k in range(K)] if names is None else _different("names", "an arm", names, allowed)
    if len(found) != K:
        raise ValueError(f"names must be {allowed}, got {names!r:.200}")
    return found


def _different(what: str, one: str, names: Any, allowed: str) -> list[str]:
    """The names of arms or items, checked."""
    if isinstance(names, (str, bytes, Mapping, Set)) or not hasattr(names, "__len__") or not len(names):
        raise ValueError(f"{what} must be {allowed}, got {names!r:.200}")
    found = [checked_name(name, one) for name in names]
    if len(set(found)) < len(found):
        (twice, _), *_ = Counter(found).most_common(1)
        raise ValueError(f"{one}'s name must differ from the others, got {twice!r:.200} twice")
    return found


def checked_name(name: Any, one: str = "an arm") -> str:
    """The name of an arm or of an item."""
    number_like = isinstance(name, (int, float, np.integer, np.floating)) and not isinstance(name, bool)
    known = isinstance(name, (str, date)) and name == name or number_like and math.isfinite(name)
    found = (str(name).removesuffix(".0") if number_like else normalize("NFC", str(name)).strip()) if known else ""
    with contextlib.suppress(UnicodeError):  # bytes of a command line, where the locale knows no letters but ASCII
        found = found.encode("utf-8", "surrogateescape").decode()
    if not found or not found.isprintable():
        raise ValueError(f"{one}'s name must be text in one line, got {name!r:.200}")
    return found


@dataclass(frozen=True)
class Setup:
    """The facts of a session."""

    task: Task  # of the arms at the beginning; where a lower value is better, mirrored, as all that is reckoned
    names: list[str]  # of these arms
    public_seed: int
    agent: str | None  # text that stands for the agent, None where only the object itself does
    parameters: dict[str, Any] | None  # of the agent
    make: Callable[[Task], tuple[Any, Task]]  # makes the agent for a task, and the task as the agent takes it
    reserve: float = 0.0  # the part of delta that is kept for later arms, in [0, 1); see `promise`
    items: list[str] | None = None  # names of the rows that all arms share; None where they have numbers alone
    order: str = "asked"
    own: Task | None = None  # the task in the user's own sign, where a lower value is better
    wishes: dict[str, Any] = field(default_factory=dict)  # see `wishes`
    judged: dict[str, Any] = field(default_factory=dict)  # see `judged_of`, in the user's own sign

    def __post_init__(self) -> None:
        if self.order not in [*FORMATS]:
            raise ValueError(f"order must be 'asked' or 'arrival', got {self.order!r:.200}")
        refuse_misfit(self.wishes, self.names, self.task)

    @classmethod
    def of(
        cls, agent: object, source: object, names: Sequence[object] | None, public_seed: int | None, trust: bool = False
    ) -> Setup:
        """The facts as a user gives them; see `Session`."""
        reserve, items, wishes, judged, own = 0.0, None, dict[str, Any](), dict[str, Any](), None
        if isinstance(source, Mapping):
            wishes = wishes_of(source)
            items = item_names(source.get("items"))
            reserve = number("reserve", 0.0 if source.get("reserve") is None else source["reserve"], 0, 1, below=True)
            task, named = task_from_facts(source)
            names = named if names is None else names
            judged = judged_of(source, checked_names(names, task.K), task)
            if judged and task.hint is None and getattr(task.make_problem(), "k", 0) == 1:
                means = np.mean(judged["judge"], axis=1).clip(*(task.support or ()))
                task = task.replace(hint=tuple(means.tolist()))
            own = task if source.get("minimize") is not None and flag("minimize", source["minimize"]) else None
            source = task if own is None else mirrored(own)
        task = task_of(source).replace(claimed=True)
        if task.pull == "coordinate":
            raise ValueError("a session measures whole arms, not single coordinates (pull='coordinate')")
        recipe = recipe_of(agent, trust)
        truth = _truth(recipe, source)
        maker = functools.partial(_made, recipe, truth)
        made, task = maker(task)
        if "blocks" in wishes and task.distribution != BLOCKS and _within(made).name not in SAMPLERS:
            raise ValueError(f"blocks of a control go with the agents {' and '.join(SAMPLERS)}, got {agent!r:.200}")
        if task.distribution == BLOCKS and not hasattr(_within(made), "counted"):
            which = "paired-elimination, which asks for whole ones"
            raise ValueError(f"blocks go with the agent {which}, got {agent!r:.200}")
        text, parameters = _described(agent, recipe, truth, made)
        seed = fresh_root() if public_seed is None else integer("public_seed", public_seed, 0, 2**63 - 1)
        facts = task, checked_names(names, task.K), seed, text, parameters, maker, reserve, items
        return cls(*facts, own=own, wishes=wishes, judged=judged)

    @classmethod
    def from_facts(
        cls, facts: Mapping[str, Any], agent: Any = None, trust: bool = False, new: Setup | None = None
    ) -> Setup:
        """The facts as `facts` has returned them; a ValueError says what is damaged, or that trust is needed.

        Without trust, names in them are those of registered rows, or what the user has given: `agent`, and in `new`.
        """
        order = facts.get("order", "arrival")  # stores of before have none
        minimize = flag("minimize", facts.get("minimize", False))
        more = minimize, facts.get("wishes") or {}, facts.keys() & {*JUDGED}, "pairs" in facts
        wanted = FORMATS.get(str(order), -1) + _more(*more)
        if str(order) not in FORMATS or wanted != facts.get("format"):
            text = f"the format {facts.get('format')!r:.80} with the order {order!r:.80}"
            raise ValueError(f"this session is of {text}, this version reads {FORMATS}")
        for name, kinds in KINDS.items():
            if name not in facts or not isinstance(facts[name], kinds):
                raise ValueError(f"the store is damaged: the fact {name!r} is {facts.get(name, 'missing')!r:.80}")
        named = () if new is None else (new.agent, new.task.problem)
        with names_alone("the store", flag("trust", trust), named):
            task, parameters = Task.from_json(facts["task"], trust=trust), facts["parameters"]
            task = task.replace(claimed=True, pairs=facts.get("pairs", "product"))  # as it was begun
        if "dependent" not in json.loads(facts["task"]):  # written before it was recorded: dimensions may depend
            task = task.replace(dependent=True)
        text = facts["agent"] if agent is None else agent
        if text is None:
            raise ValueError("this session's agent is known by no name: hand it to agents.Session as before")
        own, task = (task, mirrored(task)) if minimize else (None, task)
        with names_alone("the store", trust, (named, agent)):
            recipe = recipe_of(text, trust)
        if agent is None or isinstance(agent, str):  # text gives its parameters best: a tuple has no JSON form
            recipe = replace(recipe, parameters=replace(recipe, parameters=parameters or {}).given(recipe.parameters))
        maker = functools.partial(_made, recipe, {})
        items = item_names(facts.get("items"))
        if items is not None and len(items) != task.items:
            raise ValueError(f"the store is damaged: it names {len(items)} items, and there are {task.items}")
        names, seed = checked_names(facts["names"], task.K), integer("public_seed", facts["public_seed"], 0, 2**63 - 1)
        reserve = number("reserve", facts.get("reserve", 0.0), 0, 1, below=True)
        wishes, judged = wishes_of(facts.get("wishes") or {}), {name: facts[name] for name in JUDGED if name in facts}
        if judged:
            try:
                scores, _ = np.array(judged["judge"], np.float64), slope_of(judged["judge_slope"])
            except (KeyError, TypeError, ValueError) as error:
                raise ValueError(f"the store is damaged: its judge: {error}") from error
            if scores.shape != (task.K, task.items) or not np.isfinite(scores).all():
                raise ValueError(f"the store is damaged: its judge has no scores of {task.K} arms, {task.items} items")
        return cls(task, names, seed, facts["agent"], parameters, maker, reserve, items, order, own, wishes, judged)

    def facts(self) -> dict[str, Any]:
        """What a store keeps."""
        more: dict[str, Any] = {name: getattr(self, name) for name in ("reserve", "items", "wishes")}
        more |= {"order": self.order if self.order != "arrival" else None, "minimize": self.own is not None}
        more["pairs"] = self.pairs if self.pairs == "contrast" else None
        return {
            "format": FORMATS[self.order] + _more(self.own is not None, self.wishes, self.judged, bool(more["pairs"])),
            "agent": self.agent,
            "parameters": self.parameters,
            "task": self.own_task.to_json(),
            "names": self.names,
            "public_seed": self.public_seed,
            **{name: value for name, value in more.items() if value},
            **self.judged,
        }

    @functools.cached_property
    def pairs(self) -> str | None:
        """By what pairs of arms are certified: a "contrast" or the "product"; None where no pairs of arms are."""
        compared = not PROBLEMS.find(self.task.problem).local and self.task.make_problem().control_arm is None
        return self.task.pairs if compared and not self.task.items and self.task.distribution != BLOCKS else None

    @property
    def statistic(self) -> str | None:
        """What is said of `pairs`: None too where the agent names a boundary, or samples are certified by bets."""
        given = self.parameters or {}
        distribution = given.get("distribution") or self.task.certified_distribution()
        by_contrasts = given.get("boundary", "mixture") == "mixture" and distribution in ("gaussian", "bernoulli")
        return self.pairs if by_contrasts or self.pairs is None else given.get("boundary")

    @functools.cached_property
    def own_task(self) -> Task:
        """The task in the user's own sign."""
        own, task = self.own, self.task
        return task if own is None else task.replace(parameters=own.parameters, support=own.support, hint=own.hint)

    @functools.cached_property
    def taken_off(self) -> Floats | None:
        """What a judge's scores take off each score that the certificate is given, (K, N); None without a judge."""
        if not self.judged:
            return None
        scores = np.array(self.judged["judge"])
        off: Floats = self.judged["judge_slope"] * (scores - scores.mean(axis=1, keepdims=True))
        off -= off.mean(axis=1, keepdims=True)  # scores far from 0 have a mean that is rounded
        return off if self.own is None else -off

    def refuse_gaps(self) -> None:
        """Refuse cells without a score where there is a judge, whose scores average out over all rows alone."""
        if self.judged:
            raise ValueError("with a judge each cell needs a score, got failed='skip': say what counts, as failed=0")

    def turned(self, values: Any) -> Any:
        """Values in the user's own sign as they are reckoned with, and back."""
        return values if self.own is None else pivot_of(self.own) - values

    def refuse_other(self, new: Setup, given: Mapping[str, object]) -> None:
        """Refuse to go on with another session; facts that are `given` as None do not count."""
        left = {"format": False, "pairs": False} | {name: value is not None for name, value in given.items()}
        there, wanted = (respelled({**one.facts(), "task": json.loads(one.own_task.to_json())}) for one in (self, new))
        keys = [name for name in dict.fromkeys([*there, *wanted]) if left.get(name, True)]
        diff = [said for name in keys for said in _differing(name, there.get(name), wanted.get(name))]
        if diff:
            text = f"the store holds another session: {'; '.join(diff)}."
            raise ValueError(f"{text} Choose another store, or leave out the agent and the task to go on with this one")

    def prices(self, arms: int) -> Any:
        """The prices of so many arms, 1 of those that came later; or "row", or None."""
        cost = self.task.cost
        return (*cost, *[1.0] * (arms - len(cost))) if isinstance(cost, tuple) else cost

    def made_for(self, places: Mapping[int, int], pulls: Any, ratio: float = 1.0) -> tuple[Any, Task, float | None]:
        """The agent for arms, {arm: place}, after these pulls of all, with `ratio` of delta; its task; delta."""
        lost, cost, task = np.array(pulls), self.prices(len(pulls)), self.task
        lost[list(places)] = 0
        spent = np.dot(cost, lost) if isinstance(cost, tuple) else lost.sum() * (cost is None)
        cost = tuple(cost[arm] for arm in places) if isinstance(cost, tuple) else cost
        least = math.ceil(min(cost)) if isinstance(cost, tuple) else 1  # what pays for a measurement
        left = {} if task.budget is None else {"budget": max(int(task.purse - spent), least)}
        left |= {} if task.max_pulls is None else {"max_pulls": max(task.max_pulls - int(lost.sum()), 1)}
        delta = self.task.delta
        problem, shared = self.task.make_problem(), None if delta is None else delta * (ratio or 1.0)
        moved: dict[str, Any] = {} if problem.control_arm is None else {"parameters": problem.placed(places)}
        if (hint := task.hint) is not None:  # of arms that came later, their mean
            moved["hint"] = tuple(hint[arm] if arm < len(hint) else sum(hint) / len(hint) for arm in places)
        if (off := self.taken_off) is not None:
            low, high = task.support or (0.0, 1.0)
            moved |= {"support": (low - off.max(), high - off.min()), "distribution": "shared"}
        agent, task = self.make(self.task.replace(K=len(places), **left, **moved, delta=shared, cost=cost))
        if self.judged and getattr(agent, "task", task).support != task.support:
            raise ValueError("with a judge the agent is made for the task that it is given: name it, as 'uniform'")
        own = agent.parameters.get("delta") if isinstance(agent, Agent) else None
        delta = delta if own is None else float(own)
        if ratio == 0 and delta is not None:
            text = f"arms cannot come or go in a session with a delta about {self.task.problem}: it is not known how"
            raise ValueError(f"{text} many wrong answers there may be. Begin another session with the other arms")
        if own is not None and 0 < ratio < 1:
            agent = agent.for_task(task, delta=own * ratio)
        return agent, task, delta


def _more(minimize: bool, wishes: Mapping[str, Any], judged: Collection[str], pairs: bool) -> int:
    """What the format of a store is more than that of its order."""
    more = TURNED_FORMAT * minimize + BLOCKS_FORMAT * ("blocks" in wishes) + JUDGE_FORMAT * bool(judged)
    return more + PAIRS_FORMAT * pairs


def pivot_of(task: Task) -> float:
    """y is mirrored as pivot - y: as -y, but on [0, 1] as 1 - y, which stays there."""
    return 1.0 if task.support == (0, 1) else 0.0


def mirrored(task: Task) -> Task:
    """The task of mirrored values, of which a higher one is better."""
    problem, pivot, support = task.make_problem(), pivot_of(task), task.support
    ours = type(problem).__module__.startswith("bandit_envs.")  # what derives from these may ask something else
    parameters = problem.mirrored(pivot) if ours and task.D == 1 else None
    if parameters is None:
        what = f"got {task.problem} with {dict(task.parameters)} and {task.D} numbers for each measurement"
        of = "BestArm, TopK, AllGood, Threshold, BetterThanControl, of single numbers and their differences"
        raise ValueError(f"minimize is of {of}, {what}")
    hint = task.hint and tuple(pivot - x for x in task.hint)
    return task.replace(parameters=parameters, support=support and (pivot - support[1], pivot - support[0]), hint=hint)


def _made(recipe: Recipe, parameters: Mapping[str, object], task: Task) -> tuple[object, Task]:
    """The agent for a task, and the task in the forms that go with it."""
    forms = recipe.forms()
    for _ in range(2):
        fitting = forms.of(task)
        agent = recipe.make(fitting, **parameters)
        if (wanted := forms_of(agent)) == forms:
            return agent, fitting
        forms = wanted
    raise ValueError(f"{recipe.name} makes agents that read other observations than those they are made for")


def _truth(recipe: Recipe, source: object) -> dict[str, Any]:
    """What an oracle is given of an environment's fixed instance, by the names of its parameters."""
    if isinstance(source, Task) or not getattr(recipe.target, "oracles", {}):
        return {}
    if task_of(source).observation != recipe.forms().observation:
        return {}
    agent = _within(recipe.make(source))
    return {name: value for name, value in agent.parameters.items() if name in agent.told}


def _within(agent: object) -> Any:
    """The agent that chooses the pulls."""
    return agent.agent if isinstance(agent, Certified) else agent


def _described(
    agent: object, recipe: Recipe, truth: Mapping[str, object], made: object
) -> tuple[str | None, dict[str, object] | None]:
    """Text that stands for an agent, and its parameters in JSON form; None where there are none."""
    if isinstance(agent, str):
        # What has no JSON form is in the text.
        forms = {name: _json_form(value) for name, value in {**recipe.parameters, **truth}.items()}
        return recipe.label, {name: form for name, form in forms.items() if form is not UNFIT}
    kind = agent if isinstance(agent, type) else type(_within(agent)) if isinstance(agent, Agent) else None
    if kind is None or "<" in kind.__qualname__ or "." in kind.__qualname__:
        return None, None
    text = f"{kind.__module__}:{kind.__qualname__}"
    if not isinstance(made, Agent):
        return text, None
    given = dict(_within(made).parameters)
    if isinstance(made, Certified):
        given |= {"stop": CERTIFICATE, **{name: value for name, value in made.parameters.items() if name != "agent"}}
    forms = {name: _json_form(value) for name, value in given.items()}
    return (None, None) if any(form is UNFIT for form in forms.values()) else (text, forms)


def _json_form(value: object) -> object:
    """A value in JSON form, with lists in the place of arrays; `UNFIT` where it has none."""
    try:
        return json.loads(json.dumps(value, default=lambda array: array.tolist()))
    except (TypeError, ValueError, AttributeError):
        return UNFIT


def _differing(name: str, there: object, wanted: object) -> list[str]:
    """What differs between two facts, in words; of objects, entry by entry."""
    if there == wanted:
        return []
    if isinstance(there, Mapping) and isinstance(wanted, Mapping):
        keys = dict.fromkeys([*there, *wanted])
        return [text for key in keys for text in _differing(key, there.get(key), wanted.get(key))]
    return [f"{name} is {there!r:.80} there, {wanted!r:.80} asked for"]


def suggested(task: Task, blocks: bool = False) -> str:
    """The name of an agent for a task, where none is named."""
    if blocks and task.distribution != BLOCKS:
        return SAMPLERS[0]
    certified = task.problem in recipe_of("evidence").solves
    if task.items and certified:
        by_budget = task.delta is None and task.distribution != BLOCKS and task.problem in recipe_of("ucb-e").solves
        return "ucb-e" if by_budget else "paired-elimination"
    if task.budget is None and task.delta is not None and certified:
        return "evidence"
    if PROBLEMS.find(task.problem).local:
        return "lsa"
    if task.budget is None:
        known = task.delta is not None and task.level_certifier() is not None
        return "uniform(stop='certificate')" if known else "uniform"
    return "evolved" if card_path("evolved", task).is_file() else "track-and-stop" if certified else "uniform"
