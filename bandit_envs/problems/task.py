"""The task: the facts of an environment that an agent may know. The true means are not among them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..instances.registry import names_alone
from ..kernels.checks import LARGEST, SLACK, Bools, called, choice, flag, integer, interval, number
from ..kernels.naming import json_of, unknown
from ..kernels.rng import ARMS_LIMIT, PULLS_LIMIT
from ..stopping import RHO, Certifier
from ..stopping.asking import paired_certifier
from . import own
from .base import Problem
from .lookahead import BELIEFS, Lookahead
from .registry import PROBLEMS, bound_name
from .sampled import Sampled

MOST_ITEMS = 2**24  # rows of a table
LEVEL = 0.05  # of certificates of tables, which depend on it, where nothing is said
EXPONENTIAL = re.compile(r"exponential\((.+)\)")  # delays that are drawn, with their mean
ROW = "row"  # the cost of tables in which rows have prices, and arms have none
BLOCKS = "blocks"  # the distribution of rows without an end: blocks of a session, whose effects are unknown
MOST_PAIRED = 1000  # arms, all pairs of which are looked at for the level of a certificate
INDEPENDENT = ("bernoulli", "gaussian", "uniform", "tabulated")  # distributions that draw each coordinate by itself
ACTIONS, PULLS = ("arm", "full"), ("arm", "coordinate")
OBSERVATIONS = ("statistics", "features", "history", *BELIEFS)
LATER = {"can_stop", "items", "batch", "delay", "ranges", "cost", "hint"}  # in JSON where they are no defaults
BEFORE = "belief"  # an observation of 0.2.0, which tasks in results of models have


def observation_form(value: object) -> str:
    """What observations an environment is to show, checked."""
    if value == BEFORE:
        text = f"observation={BEFORE!r} is no more since 0.3.0:"
        raise ValueError(f"{text} give observation='relative', and train models that read beliefs again")
    return choice("observation", value, OBSERVATIONS)


def delay_of(value: Any) -> float | str:
    """A delay, checked: pulls, an int where they are whole, or "exponential(mean)"."""
    found, x = EXPONENTIAL.fullmatch(value.strip()) if isinstance(value, str) else None, value
    try:
        x = number("delay", float(found[1]) if found else value, 0, PULLS_LIMIT, above=found is not None)
    except ValueError:
        text = f"delay must be a number of pulls in [0, {PULLS_LIMIT:g}], or one drawn with a mean above 0,"
        raise ValueError(f"{text} as 'exponential(8)', got {value!r:.200}") from None
    x = int(x) if x.is_integer() else x
    return f"exponential({x})" if found else x


def prices_of(value: Any, K: int, names: Sequence[str] = ()) -> tuple[float, ...] | str:
    """Prices of K arms, checked: K numbers > 0, those of some of the named arms (1 of the others), or "row"."""
    if isinstance(value, Mapping):
        if strange := [name for name in value if name not in names]:
            raise unknown("arm in cost", strange[0], names)
        value = [value.get(name, 1.0) for name in names]
    if isinstance(value, str):
        return choice("cost", value, (ROW,))
    if not isinstance(value, (list, tuple, np.ndarray)) or len(value) != K:
        text = f"cost must be a list of {K} prices, a dict by the names of arms,"
        raise ValueError(f"{text} or 'row', got {value!r:.200}")
    return tuple(number(f"cost[{i}]", one, 0, LARGEST, above=True) for i, one in enumerate(value))


@dataclass(frozen=True)
class Task:
    """What is asked, what is known of the arms, and the rules of an episode.

    The class of a problem is the one that its name stands for when the task is made, or is read from JSON or a pickle:
    a class of that name that is registered later does not change the task, nor its copies with other attributes.

    Attributes:
        problem: name of the problem, or "module:Class" of one that is not registered.
        parameters: of the problem; those that are not given have its defaults.
        K, D: number of arms, coordinates of a sample.
        budget: pulls of an episode, with `cost` money, or None; delta: allowed error probability, or None.
        max_pulls: safety cap, or None; pull_cost: price of a pull in units of the score.
        distribution: family of the arms; support: (lowest, highest) sample or None.
        sigma: sub-Gaussian scale of a sample, the largest of all arms: half the width of a support, or the largest
            standard deviation of Gaussian arms.
        actions, observation: the forms that the environment takes and gives.
        can_stop: whether there is an action that stops (the keyword `stop` of environments); else a budget is needed.
        items: of arms that are the columns of one table, its number of rows N: the n-th pull of every arm is its score
            in the n-th row of an order that is drawn at random. None: samples are independent. ranges: of D > 1
            metrics in such a table, the (lowest, highest) value of each, within support; None: that of all.
        pull: what a pull samples, an "arm" or one "coordinate" of one.
        dependent: whether the coordinates of a sample may depend on each other. None: they may unless the distribution
            is one that draws them independently; False for scalar arms.
        batch: results are shown when so many pulls have been asked, 1: at once. delay: and when so many further pulls
            have been; or "exponential(8)", a delay of 8 pulls on average, drawn for each pull by itself.
        cost: the price of a pull of each arm, K numbers > 0, or None: 1 each. The budget is then money. Or "row", of
            tables: a row costs 1 with the first arm that is pulled in it, and nothing with others.
        claimed: whether `sigma` is somebody's word, as in a session, which certificates count on as long as the results
            bear it out. It is no part of the JSON form.
        pairs: how certificates by boundary="mixture" compare two arms, by a "contrast" or by the "product" of their own
            mixtures, as sessions of before 0.3.0 do. It is no part of the JSON form.
        hint: of BestArm on a table, K means that its arms may have, by which the certificate bets as long as the rows
            bear them out. What it promises does not rest on them.
    """

    problem: str
    parameters: Mapping[str, Any]
    K: int
    D: int = 1
    budget: int | None = None
    delta: float | None = None
    max_pulls: int | None = None
    pull_cost: float = 0.0
    distribution: str = "bernoulli"
    support: tuple[float, float] | None = (0.0, 1.0)
    sigma: float = 0.5
    actions: str = "full"
    observation: str = "statistics"
    pull: str = "arm"
    dependent: bool | None = None
    claimed: bool = False
    pairs: str = "contrast"
    can_stop: bool = True
    items: int | None = None
    batch: int = 1
    delay: float | str = 0
    ranges: tuple[tuple[float, float], ...] | None = None
    cost: tuple[float, ...] | str | None = None
    hint: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        def given(name: str, check: Callable[..., Any], *ends: float, **open_ends: bool) -> Any:
            value = getattr(self, name)
            return None if value is None else check(name, value, *ends, **open_ends)

        apart = self.distribution in INDEPENDENT  # what is said comes first
        object.__setattr__(self, "problem", bound_name(self.problem))
        problem, most = self.make_problem(), PULLS_LIMIT - 1
        checked = {
            "parameters": problem.settings,
            "K": integer("K", self.K, 1, ARMS_LIMIT),
            "D": integer("D", self.D, 1, ARMS_LIMIT),
            "budget": given("budget", integer, 1, most),
            "delta": given("delta", number, 0, 1, above=True, below=True),
            "max_pulls": given("max_pulls", integer, 1, most),
            "pull_cost": number("pull_cost", self.pull_cost, 0, LARGEST),
            "support": given("support", interval),
            "sigma": number("sigma", self.sigma, 0, LARGEST, above=True),
            "actions": choice("actions", self.actions, ACTIONS),
            "observation": BEFORE if self.observation == BEFORE else observation_form(self.observation),
            "pull": choice("pull", self.pull, PULLS),
            "dependent": self.D > 1 and (not apart if self.dependent is None else flag("dependent", self.dependent)),
            "claimed": flag("claimed", self.claimed),
            "pairs": choice("pairs", self.pairs, ("contrast", "product")),
            "can_stop": flag("can_stop", self.can_stop),
            "items": given("items", integer, 1, MOST_ITEMS),
            "batch": integer("batch", self.batch, 1, most),
            "delay": delay_of(self.delay),
            "cost": None if self.cost is None else prices_of(self.cost, self.K),
            "hint": None if self.hint is None else tuple(self.hint),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if not isinstance(self.distribution, str):
            raise ValueError(f"distribution must be the name of a family, got {self.distribution!r:.200}")
        if self.items is not None and (self.pull == "coordinate" or self.support is None):
            raise ValueError(f"items={self.items}: columns of a table have scores in a range, pulled row by row")
        if self.ranges is not None:
            ends = tuple(interval("ranges", one) for one in self.ranges)
            low, high = self.support or (math.inf, -math.inf)
            if not self.items or len(ends) != self.D or min(ends)[0] < low or max(one[1] for one in ends) > high:
                of = f"a pair within support={self.support} for each of D = {self.D} metrics of a table (items)"
                raise ValueError(f"ranges must be {of}, got {self.ranges!r:.200}")
            object.__setattr__(self, "ranges", ends if self.D > 1 else None)
            object.__setattr__(self, "support", self.support if self.D > 1 else ends[0])
        if self.pull == "coordinate" and self.D == 1:
            raise ValueError("pull='coordinate' needs arms of 2 dimensions or more, got scalar arms")
        if not self.can_stop and self.budget is None:
            raise ValueError("stop=False (can_stop=False) needs a budget, got budget=None: no episode would ever end")
        if self.stop > ARMS_LIMIT:
            raise ValueError(f"K * D must be at most {ARMS_LIMIT} for pull='coordinate', got {self.K} * {self.D}")
        if self.observation == "history" and self.budget is None and self.max_pulls is None:
            raise ValueError("observation='history' needs a budget or max_pulls: a history holds so many pulls")
        if self.hint is not None:
            if self.items is None or len(self.hint) != self.K or getattr(problem, "k", 0) != 1:
                allowed = f"{self.K} means, of the arms of a table, for BestArm"
                raise ValueError(f"hint must be {allowed}, got {self.hint!r:.200} for {problem!r:.80}")
            means = tuple(number(f"hint[{i}]", x, *(self.support or ())) for i, x in enumerate(self.hint))
            object.__setattr__(self, "hint", means)
        if self.cost is not None and self.pull_cost > 0:
            raise ValueError(f"pull_cost={self.pull_cost} is a price in units of score, beside cost: give one of them")
        if self.cost is not None and not self.affords([0] * self.K).any():
            raise ValueError(f"budget={self.budget} is money, and pays for no pull at the prices {self.cost!r:.80}")
        if self.cost == ROW and (self.items is None or self.waits or self.observation == "history"):
            raise ValueError("cost='row' is of rows of a table that all arms share, without batch, delay and histories")
        own.check(problem, self)

    @cached_property
    def payable(self) -> int | None:
        """How many pulls the budget can pay at most, or None: it sets no limit."""
        if self.budget is None or self.cost == ROW:
            return None
        return min(int(self.purse / min(self.cost or [1.0])), PULLS_LIMIT - 1)  # type: ignore[operator]

    @property
    def purse(self) -> float:
        """The budget, inf without one, with what may be the rounding of sums of prices."""
        budget = math.inf if self.budget is None else self.budget
        return budget * (1.0 + SLACK if isinstance(self.cost, tuple) else 1.0)

    def paid(self, pulls: Any) -> float:
        """What so many pulls of the arms, (K,), cost; of cost="row" the rows that they are of."""
        if self.cost == ROW:
            return float(min(np.max(pulls), self.items))
        return float(np.sum(pulls) if self.cost is None else np.dot(self.cost, pulls))

    def affords(self, pulls: Any) -> Bools:
        """Which arms the budget pays for once more after so many pulls of the arms, (K,)."""
        if self.cost == ROW:
            return np.asarray(pulls) < (self.purse if self.purse < (self.items or 0) else math.inf)
        left = self.purse if self.purse == math.inf else self.purse - self.paid(pulls)
        return np.full(self.K, left >= 1.0) if self.cost is None else np.asarray(self.cost) <= left

    def left(self, pulls: Any) -> int:
        """What an environment shows as `remaining` after so many pulls of the arms, (K,); -1 without a budget."""
        if self.budget is None:
            return -1
        known = self.cost == ROW and self.budget >= (self.items or 0) <= np.min(pulls)
        return max(int(self.purse - self.paid(pulls)), 1) if not known and self.affords(pulls).any() else 0

    @cached_property
    def stop(self) -> int:
        """The action that stops: K, or K * D where the actions below it are arm * D + coordinate."""
        return self.K * self.D if self.pull == "coordinate" else self.K

    @cached_property
    def last(self) -> int:
        """The largest action: `stop`, or the one before it where no action stops."""
        return self.stop if self.can_stop else self.stop - 1

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape of the counts `pulls` of one episode: (K,), or (K, D) where coordinates are pulled."""
        return (self.K, self.D) if self.pull == "coordinate" else (self.K,)

    @cached_property
    def waits(self) -> bool:
        """Whether results are shown later than they are asked for: `batch` or `delay` is set."""
        return self.batch > 1 or self.delay != 0

    @property
    def mean_delay(self) -> float:
        """The delay of a result in pulls, or its mean."""
        return float(self.delay[12:-1] if isinstance(self.delay, str) else self.delay)

    @property
    def entries(self) -> int:
        """How many pulls a history holds: the budget or max_pulls, the smaller one; 0 where there is neither."""
        return min((limit for limit in (self.payable, self.max_pulls) if limit is not None), default=0)

    def make_problem(self) -> Problem:
        """The problem itself: margins, plug-in answers; its evidence and bounds are those of these arms."""
        kind = PROBLEMS.find(self.problem)
        if not isinstance(self.parameters, Mapping):
            raise ValueError(f"parameters must be a dict, got {self.parameters!r:.200}")
        problem: Problem = called(f"the problem {kind.name!r}", kind, self.parameters)
        object.__setattr__(problem, "_task", self)  # by which evidence and bounds count on these arms
        return problem

    def certifier(
        self,
        *,
        distribution: str | None = None,
        boundary: str = "mixture",
        rho: float | None = RHO,
        centre: float | None = None,
    ) -> Certifier:
        """How much the statistics of an episode certify of an answer, for compiled code; see `Problem.certifier`.

        `distribution`: see `certified_distribution`. No centre: that of the task.
        """
        choice("boundary", boundary, ("mixture", "product", "kaufmann-koolen"))
        if self.items and self.certified_distribution(distribution) == "paired":
            choice("boundary", boundary, ("mixture", "product"))
            return self._paired(LEVEL if self.delta is None else self.delta)
        asked: dict[str, Any] = {"boundary": self.boundary_of(boundary)}
        asked |= {"distribution": self.certified_distribution(distribution)}
        asked |= {"rho": rho, "centre": self.centre if centre is None else centre}
        asked |= {"sigma": self.sigma, "dependent": bool(self.dependent)}
        return self.make_problem().certifier(self.K, self.D, **asked).doubting(self.sigma, self.known_sigma)

    def boundary_of(self, boundary: str) -> str:
        """The boundary that a name stands for, by `pairs`."""
        return "product" if boundary == "mixture" and self.pairs == "product" else boundary

    def certified_distribution(self, distribution: str | None = None, exact: bool = False) -> str:
        """The distribution of arms that certificates count on, checked.

        Args:
            distribution: "paired" for the columns of a table, and nothing else there; "gaussian" with a sub-Gaussian
                scale; "bernoulli", for samples in [0, 1]; "student", for Gaussian arms of unknown variances; "bounded",
                for samples in a known range; None: "bounded" or, of samples known to be 0 or 1, "bernoulli", where a
                range is known, no smaller scale than that of the range is claimed, and the problem has it; else
                "gaussian".
            exact: None is never "bounded", which has no exact evidence: "bernoulli" where samples lie in [0, 1].

        Raises:
            ValueError: for a distribution that the arms do not have, and for pulls of single coordinates.
        """
        if self.pull == "coordinate":
            raise ValueError("certificates are of pulls of whole arms, not of single coordinates (pull='coordinate')")
        if self.items and not exact:
            choice("distribution", "paired" if distribution is None else distribution, ("paired",))
            self._paired(LEVEL)
            return "paired"
        support, binary = self.support, exact or self.distribution == "bernoulli"
        unit = support is not None and 0 <= support[0] <= support[1] <= 1
        narrow = support is not None and self.sigma < 0.5 * (support[1] - support[0]) * (1.0 - 1e-9)  # by its scale
        ranged = support is not None and self.distribution != "gaussian" and not (narrow and (self.claimed or binary))
        if distribution is None and ranged:
            likelihood: tuple[str, ...] = ("bernoulli",) if unit and self.D == 1 else ()
            for name in likelihood if binary else ("bounded", *likelihood):  # the sharpest first
                with contextlib.suppress(ValueError):
                    self.make_problem().certifier(self.K, self.D, distribution=name)
                    return name
        chosen = "gaussian" if distribution is None else distribution
        choice("distribution", chosen, ("gaussian", "bernoulli", "student", "bounded"))
        needed = ""
        if chosen == "bounded" and support is None:
            needed = "samples in a known range, and these arms have none"
        elif chosen == "bernoulli" and not unit:
            needed = f"samples in [0, 1], and these arms have support={support}"
        elif chosen == "student" and self.distribution != "gaussian":
            needed = f"Gaussian arms, and these are of the distribution {self.distribution!r}"
        elif chosen in ("bernoulli", "student") and self.dependent:
            needed = f"independent coordinates, and those of these arms (D = {self.D}) may depend on each other"
        if needed:
            raise ValueError(f"distribution={chosen!r} is for {needed}: leave it out, or say distribution='gaussian'")
        return chosen

    def _paired(self, delta: float) -> Certifier:
        """The certifier of the rows of a table or, of the distribution "blocks", of rows without an end."""
        blocks, ranges = self.distribution == BLOCKS, self.ranges or (self.support or (0.0, 1.0),) * self.D
        return paired_certifier(self.make_problem(), self.K, self.items or 0, ranges, delta, blocks, self.hint)

    @cached_property
    def keeps_moments(self) -> bool:
        """Whether environments keep the third and fourth moments of arms, for certificates of samples in a range."""
        if self.pull == "coordinate" or self.items or (self.delta is None and self.budget is not None):
            return False
        return self.certified_distribution() == "bounded"

    def lookahead(self, asked: str = "the look-ahead potential") -> Lookahead:
        """The look-ahead potential of the task: expected gains of pulls, and what is believed of the arms.

        That of the problem, or else by worlds drawn from the posteriors of the arms (`bandit_envs.problems.sampled`). A
        ValueError names what is `asked`, for pulls of single coordinates, and for margins that are always the same.
        """
        if self.pull == "coordinate":
            raise ValueError(f"{asked} is of pulls of whole arms, not of single coordinates (pull='coordinate')")
        potential = own.potential_of(self.make_problem(), self.K, self.D)
        return Sampled(self, asked) if potential is None else Lookahead(self, potential)

    @property
    def known_sigma(self) -> float:
        """A sub-Gaussian scale that is known to hold: `sigma`; where that is claimed, half the range, inf without."""
        if not self.claimed:
            return self.sigma
        return math.inf if self.support is None else 0.5 * (self.support[1] - self.support[0])

    @cached_property
    def centre(self) -> float:
        """About where means lie, for certificates with unknown variances: the boundary, where the problem names one."""
        boundary = self.make_problem().boundary
        return 0.0 if boundary is None else float(boundary)

    def level_certifier(self, own: Certifier | None = None) -> Certifier | None:
        """The certifier of the level beside results: an agent's own, or the default one.

        None where the problem has no evidence, and where the arms have too many pairs to look at.
        """
        problem = self.make_problem()
        few = problem.local or (problem.answer_size == 1 and not self.items)  # pairs of one arm
        if not few and self.K > MOST_PAIRED:
            return None
        with contextlib.suppress(ValueError):
            return self.certifier() if own is None else own
        return None

    @property
    def width(self) -> float:
        """The range W of a sample for bounds that need one: 2 sigma, and 6 sigma for Gaussian arms."""
        return (6.0 if self.distribution == "gaussian" else 2.0) * self.sigma

    @property
    def scale(self) -> float:
        """The number of pulls at which the feature `pulls` reaches 1."""
        return float(self.payable or self.max_pulls or 10**6)

    def replace(self, **changes: Any) -> Task:
        """The same task with some attributes changed."""
        return dataclasses.replace(self, **changes)

    def to_json(self) -> str:
        """JSON text that `from_json` reads; a TypeError names a parameter of the problem that has no JSON form."""
        for name, value in self.parameters.items():
            try:
                json.dumps(value)
            except (TypeError, ValueError, RecursionError) as error:
                place = f"parameter {name!r} of the problem {self.problem!r}"
                raise TypeError(f"the {place} has no JSON form, got {value!r:.200}") from error
        left = {one.name for one in dataclasses.fields(self) if getattr(self, one.name) == one.default} & LATER
        left |= {"claimed", "pairs", *["dependent"] * (self.D == 1)}
        return json.dumps({name: value for name, value in dataclasses.asdict(self).items() if name not in left})

    @classmethod
    def from_json(cls, text: str, *, trust: bool = False) -> Task:
        """The task of a JSON text.

        Args:
            text: what `to_json` has returned.
            trust: import a problem "module:Class" that is not registered, which runs the code of its module.

        Raises:
            ValueError: for another text, and for such a problem where it is not trusted.
        """
        form = json_of(text)
        if not isinstance(form, dict):
            raise ValueError(f"a task in JSON form is an object, got {text!r:.200}")
        with names_alone("a task in JSON form", flag("trust", trust)):
            return called("a task in JSON form, of this or a newer version", cls, form)  # type: ignore[no-any-return]
