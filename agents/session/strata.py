"""A control within strata, days or plates, whose effects drop out: `blocks` of a session about BetterThanControl.

A stratum is a plate of the design, or what `tell` and tables name as its `item` (columns of days, or "plate"), or else
the day on which a question was asked, or a result without one recorded, in UTC. It is closed once none of its questions
waits and a later one has begun, or, of a plate of the design, once it is full. It counts once it and all earlier ones
are closed; until then it counts nothing, and what comes later is refused. So which results count does not depend on
what they are.

Claims go by `bandit_envs.stopping.Stratified`. Each open arm gets wells in turn, first those that need fewest more.
"""

from __future__ import annotations

import copy
import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs.instances import Count, Measurements, Strata, day_of, strata_of
from bandit_envs.stopping import Stratified

from .claims import Claim
from .course import Part, Result, Run, Statistics
from .design import Rules, controls_of
from .log import ASKED, RESULTS, Event
from .setup import checked_name
from .within import compared_within, refutation, within_strata

if TYPE_CHECKING:
    from pandas import DataFrame

State = Any  # that of `fold`, which needs this module
MOST, FAR = 1000, 30.0  # strata that are played; for a log odds ratio without an end
UNLIKE = (
    "spreads differ between arms or {0}s: one sigma of all is refuted. Nothing is claimed, and what was claimed is "
    "withdrawn. Results vary most on {1!r}: where that was read wrongly, undo its table (undo --table), or its {0}; "
    "else begin another session with sigma, the largest one that is known"
)


class Blocks:
    """The strata of a session, in the order in which they have begun.

    Attributes:
        names: {number of a question's first event, or of a result without one: the name of its stratum}.
        sums: {name: {arm: [n, mean, squares about it]}}, of the results that count so far, in their own sign.
    """

    def __init__(self, state: State) -> None:
        self.state, wishes = state, state.setup.wishes
        self.kind: str = wishes["blocks"]
        self.plate: int = wishes.get("plate", 0)
        self.names = dict[int, str]()
        self.sums = dict[str, dict[int, list[float]]]()
        self._rules, self._full = Rules(state, None), set[str]()  # that fills plates
        self.played = False  # in a rehearsal, in which nothing waits
        self.filling = ""  # a plate of the design that lacks questions

    def asked(self, event: Event) -> None:
        """Give a question its stratum; one that was undone keeps its well."""
        if self.plate:
            name = f"plate {self._rules.asked(event)}"
            self._full |= {name} if self._rules.wells == self.plate else set()
            self.filling = name if name not in self._full else ""
        else:
            name = f"{event.at:%Y-%m-%d}"
        self.names[event.number] = name
        self.sums.setdefault(name, {})

    def of(self, event: Event) -> str:
        """The stratum of a result."""
        about = self.state.places.get(event.about or 0)
        return event.stratum or self.names.get(about or 0) or f"{event.at:%Y-%m-%d}"

    def named(self, item: Any) -> str:
        """The name of a stratum, checked; the same of a day in all forms and times."""
        text = checked_name(item, "a stratum").removesuffix(".0")
        text = f"plate {text}" if self.plate and f"plate {text}" in self.sums else text
        return str(day_of(text)) if self.kind == "day" else text

    def shown(self, event: Event) -> str | None:
        """The stratum of a question or result, for the history."""
        if event.kind == ASKED:
            return self.names.get(self.state.places.get(event.number, event.number))
        return self.of(event) if event.kind in RESULTS else None

    def told(self, event: Event, arm: int, sample: Any) -> None:
        """Take in a result that counts, or several."""
        n, x, square = 1.0, float(sample[0]) if not isinstance(sample, Part) else 0.0, 0.0
        if isinstance(sample, Part):
            n, x, square = float(sample.n), sample.moments[0], sample.n * sample.moments[1]
        add(self.sums.setdefault(self.of(event), {}).setdefault(arm, [0.0, 0.0, 0.0]), n, x, square)

    @property
    def over(self) -> dict[str, bool]:
        """Whether each is over."""
        asks, late = ((), ()) if self.played else (self.state.asks, self.state.late)
        waits = {self.names[self.state.places[one]] for one in asks} | {*map(self.of, late)}
        last = next(reversed(self.sums), "")
        return {name: name not in waits and (name != last or name in self._full) for name in self.sums}

    @property
    def closed(self) -> list[str]:
        """The names of those that count: all up to the first that is open, which cannot be kept so for its results."""
        return [name for name, _ in itertools.takewhile(operator.itemgetter(1), self.over.items())]

    def said_over(self, text: str) -> set[str]:
        """The stratum of which a remark says that it is over, as "NAME is over"; none of another remark."""
        name = text.removesuffix(" is over")
        return {name} & {*self.sums} if name != text else set()

    def remark(self, text: str) -> None:
        """Take in a remark, which may close a stratum."""
        self._full |= self.said_over(text) - {self.filling}

    def is_of(self, asked: int, name: str | None) -> bool:
        """Whether a question is of the stratum that a user calls so: a plate by its number, too."""
        there = self.names[self.state.places[asked]]
        return name in (None, there) or there == f"{self.kind} {name}"

    def refuse_late(self, event: Event) -> None:
        """Refuse a result, or question, of a stratum that is closed, or would close a plate that is being filled."""
        if event.kind == ASKED and self.plate:
            return
        if self.plate and not event.about and not event.stratum:
            name = self.state.called(event.arm or 0)
            raise ValueError(f"on which plate is {name}? No question about it waits there: hand one over, or say item=")
        name = self.of(event) if event.at or event.about or event.stratum else f"{datetime.now(UTC):%Y-%m-%d}"
        if self.over.get(name):
            later = f"{next(reversed(self.sums))!r} has begun" if name not in self._full else "it is full or over"
            text = f"the {self.kind} {name!r:.80} is closed, as {later}: it counts as it is, whatever comes later"
            raise ValueError(f"{text}. Undo its results to record them once more")
        if self.filling and name not in self.sums:
            raise ValueError(f"{name!r:.80} would close {self.filling!r}: ask for its other wells first")

    def ordered(self, found: Measurements, rows: list[Any]) -> list[Any]:
        """The rows of a table with their strata: its column of items, or of plates or days, in the order of these."""
        by = [head for head in found.rest if head.lower() == self.kind] or [*found.days][:1]
        if any(one.item for one in found.rows) or not by:
            return [(*row[:3], one.item or None) for row, one in zip(rows, found.rows, strict=True)]
        of, cells = strata_of(found, by, True, "", date.max).of, found.rest[by[0]]
        named = [(*row[:3], cell) for row, cell in zip(rows, cells, strict=True)]
        return [named[i] for i in sorted(range(len(rows)), key=of.__getitem__)]

    def fresh(self, rows: list[Any], of: str) -> list[Any]:
        """The rows of a table but for cells, an arm in a stratum, that are known; others of these are refused."""
        state, kept, cells = self.state, list[Any](), dict[tuple[int, str], list[Any]]()
        waits = {(arm, self.names[state.places[one]]) for one, (arm, _) in state.asks.items()}
        for row in rows:
            cell = (-1, "") if row[3] is None else (state.arm(row[1]), self.named(row[3]))
            cells.setdefault(cell, []).append(row)
        for (arm, name), part in cells.items():
            known, found = self.sums.get(name, {}).get(arm), [0.0, 0.0, 0.0]
            if known is None or (arm, name) in waits:
                kept += part
                continue
            for _, _, one, _ in part:
                n, ones, mean, _ = one if isinstance(one, Count) else (1, None, one, None)
                add(found, n, state.setup.turned(mean if ones is None else ones / n))
            if found[0] != known[0] or not math.isclose(found[1], known[1], rel_tol=1e-9, abs_tol=1e-12):
                where = f"{of}, {self.kind} {name!r:.80}: {known[0]:.0f} results of {state.names[arm]!r:.80} are known"
                how = "If they are further ones, say again=True (--again)"
                raise ValueError(f"{where}, and are {found[0]:.0f} here. {how}")
        return kept

    def arrays(self, arms: Sequence[int]) -> NDArray[np.float64]:
        """n, means and squares of these arms in the strata that count, (3, S, K)."""
        none = [0.0, 0.0, 0.0]
        found = [[self.sums[name].get(arm, none) for arm in arms] for name in self.closed]
        return np.moveaxis(np.array(found, np.float64).reshape(len(found), len(arms), 3), -1, 0)


def add(known: list[float], n: float, x: float, square: float = 0.0) -> None:
    """Add n results of the mean x, and their squares about it, to [n, mean, squares about it]."""
    every, off = known[0] + n, x - known[1]
    known[:] = every, known[1] + off * n / every, known[2] + square + off * off * known[0] * n / every


class StrataRun(Run):
    """The course of a session with strata: claims decide, and each open arm gets what its claim needs.

    Attributes:
        strata: those of the session. found: what they show, None before one counts. sides, since: (K,) what is claimed
            of each arm that there is, 1, -1 or 0, and after how many results.
    """

    def __init__(self, *facts: Any, strata: Blocks) -> None:
        super().__init__(*facts)
        self.problem: Any
        self.strata, self.control = strata, int(self.problem.control_arm or 0)
        self.found: Stratified | None = None
        self.sides, self.since = np.zeros((2, self.task.K), np.int64)
        self.evidence = np.zeros((self.task.K, 2))  # the largest so far
        self._counted, self.plays = (0, 0.0), False  # a rehearsal, whose arms have one spread

    certifier = None  # none goes by sums over strata
    wary = False

    def begin(self, results: Sequence[Result]) -> None:
        self.tell(results)

    def tell(self, results: Sequence[Result]) -> None:
        if self.over:
            return
        for arm, sample in results:
            self.told += sample.n if isinstance(sample, Part) else 1
            self._take_in(arm, sample)
        self.catch_up()
        self._look_at_the_end()
        if not self.over and self.delta is not None and not self.open.any():
            self._end(self.plug_in())

    def catch_up(self) -> None:
        """Look, where more counts than at the last look."""
        closed = self.strata.closed
        counted = len(closed), sum(cell[0] for name in closed for cell in self.strata.sums[name].values())
        if counted != self._counted:
            self._counted = counted
            self.look()

    def decide(self) -> None:
        """The strata decide."""

    @property
    def need(self) -> float:
        """What the evidence of an arm must reach."""
        return math.log((self.task.K - 1) / (self.level * (self.share.ratio or 1e-300)))

    @property
    def open(self) -> NDArray[np.bool_]:
        """The arms of which nothing is claimed, (K,)."""
        found: NDArray[np.bool_] = np.equal(self.sides, 0)
        found[self.control] = False
        return found

    def look(self) -> None:
        """Take in what counts."""
        self.found = self.stratified()
        if self.found is None or self.refuted and not self.plays:
            self.sides[:], self.since[:], self.evidence[:] = 0, 0, 0.0
            return
        largest = np.maximum.accumulate(self.found.evidence, axis=0)
        self.evidence, sure = largest[-1], largest >= self.need
        strata = sure.sum(axis=0)  # since which each is sure
        side = np.where(strata.any(axis=1), np.where(strata[:, 0] >= strata[:, 1], 1, -1), 0)
        new = np.flatnonzero((side != 0) & self.open)
        self.sides[new], self.since[new] = side[new], self.told

    @property
    def refuted(self) -> str:
        """Why results within strata refute what is known of their spread; "" where they do not."""
        if self.found is None or math.isnan(self.found.spread):
            return ""
        n, _, squares = self.strata.arrays(self.strata.state.active.tolist())
        if self.found.unlike:
            ratio = squares.sum(axis=1) / np.maximum(np.maximum(n - 1.0, 0.0).sum(axis=1), 1.0)
            return UNLIKE.format(self.strata.kind, self.strata.closed[int(np.argmax(ratio))])
        is_common = self.strata.state.setup.wishes.get("common")
        return "" if is_common else refutation(n, squares, self.task.sigma, self.strata.kind)

    def stratified(self) -> Stratified | None:
        """The strata that count, as they show arms against the control."""
        n, mean, squares = self.strata.arrays(self.strata.state.active.tolist())
        near = self.problem.tolerance
        return within_strata(n, mean, squares, self.problem, self.sigma, near) if len(n) else None

    @property
    def sigma(self) -> Any:
        """That of results: None of rates, or "common"."""
        common = self.strata.state.setup.wishes.get("common")
        return None if self.task.distribution == "bernoulli" else "common" if common else self.task.sigma

    def comparison(self, rate: str) -> DataFrame:
        """See `Session.comparison`."""
        state, kind = self.strata.state, self.strata.kind
        names, cells = [state.names[arm] for arm in state.active], self.strata.arrays(state.active.tolist())
        opened = [repr(name) for name in [*self.strata.sums][len(cells[0]) :]]
        said = f"{(cells[0].sum(axis=1) > 0).sum()} {kind}s count" + f"; not yet {', '.join(opened[:3])}" * bool(opened)
        cut = Strata([], np.ones(len(cells[0]), np.bool_), [], kind, said)
        level = self.level * (self.share.ratio or 1e-300)
        table = compared_within(names, cells, cut, self.problem, self.sigma, level=level, rate=rate)
        if state.setup.own is not None:  # in the user's own sign
            ends = {"difference": "difference", "low": "high", "high": "low"}
            turned = {name: -table[other] for name, other in ends.items()} | {"mean": state.setup.turned(table["mean"])}
            odds = {"odds": "odds", "odds_low": "odds_high", "odds_high": "odds_low"} if "odds" in table else {}
            table = table.assign(**turned, **{name: 1.0 / table[other] for name, other in odds.items()})
            table[["lift", "lift_low", "lift_high"]] = math.nan
        if self.refuted:
            flags = [name for name in table.columns if table[name].dtype == bool]
            table[flags] = False
            table.attrs["open"] = dict.fromkeys(set(names) - {names[self.control]}, self.refuted)
        table.attrs |= {"minimize": state.setup.own is not None, "doubts": []}
        return table

    def claim(self, place: int) -> Claim:
        """What is claimed of an arm."""
        side, kind = int(self.sides[place]), self.strata.kind
        if not side:
            return Claim()
        name, problem = self.strata.state.names[self.strata.state.control_arm or 0], self.problem
        by = f" by more than {problem.least:g}" * bool(problem.least)
        by += ", or within the tolerance" * bool(problem.tolerance)
        beyond = f"{'not ' * (side < 0)}better than {name}{by}"
        text = f"{beyond} on at least one {kind}; on each, if the effect is the same"
        return Claim(side, int(self.since[place]), text)

    # --- what follows -------------------------------------------------------------------------------------------------

    def plug_in(self) -> NDArray[np.bool_]:
        """The answer as of now: what is claimed, and of other arms what their effects say."""
        edge = 0.0 if self.task.distribution == "bernoulli" else self.problem.least
        effect = np.full(self.task.K, math.nan) if self.found is None else self.found.effect
        return np.where(self.sides == 0, effect > edge, self.sides > 0)

    def _recommended(self, seen: Any) -> NDArray[np.bool_]:
        return self.plug_in()

    def present_answer(self, all_seen: Any) -> NDArray[np.bool_]:
        return self.plug_in() if self.answer is None else self.answer

    def level_of(self, answer: NDArray[np.bool_], seen: Any) -> float | None:
        if self.found is None or self.refuted:
            return 1.0
        least = np.delete(np.where(answer, self.evidence[:, 0], self.evidence[:, 1]), self.control).min()
        return min((self.task.K - 1) * math.exp(-max(least, 0.0)) / (self.share.ratio or 1e-300), 1.0)

    def wishes(self, pending: Sequence[int]) -> Iterator[int]:
        """The arms to measure next: open ones in turn, those that need fewest more first; the control has its share."""
        asked = np.bincount(np.array(pending, np.int64), minlength=self.task.K)
        open_arms = np.flatnonzero(self.open)
        if self.over or not len(open_arms):
            return
        wishes = self.strata.state.setup.wishes
        share = 0.0 if controls_of(wishes) else 1.0 / (1.0 + math.sqrt(len(open_arms)))
        needs = self._needs()[open_arms]
        while (self.seen.pulls + asked).sum() < self.most and self.task.left(self.seen.pulls + asked) != 0:
            arm = int(open_arms[np.lexsort((needs, asked[open_arms]))[0]])
            arm = self.control if asked[self.control] < share * (asked.sum() + 1) else arm
            yield arm
            asked[arm] += 1

    def _needs(self) -> NDArray[np.float64]:
        """About how many more results each arm needs, (K,), 0 where it has none; of `uniform` how many it has."""
        if self.found is None or getattr(self.agent, "agent", self.agent).name == "uniform":
            return self.seen.pulls.astype(np.float64)
        unit = 2.0 if math.isnan(self.found.spread) else max(self.found.spread, 1e-300)
        edge = 0.0 if self.task.distribution == "bernoulli" else self.problem.least
        off = np.abs(np.nan_to_num(self.found.effect, posinf=FAR, neginf=-FAR) - edge)
        off += max(self.problem.tolerance, 0.15 * unit)
        more = np.maximum(self.need + 1.0 - self.evidence.max(axis=1), 0.3) / (0.5 * (off / unit) ** 2)
        return np.where(self.found.counts > 0, more, 0.0)

    @property
    def shown(self) -> Statistics:
        """What arms have shown beside the control, whose mean is that of its results, within strata."""
        n, mean, squares = self.strata.arrays(self.strata.state.active.tolist())
        seen, counts = self.seen.at(slice(None)), n.sum(axis=0).astype(np.int64)
        if self.found is None:
            return Statistics.of(self.task)
        base = float((n * mean)[:, self.control].sum() / max(counts[self.control], 1))
        effect = np.nan_to_num(self.found.effect, posinf=FAR, neginf=-FAR)
        if self.task.distribution == "bernoulli":
            odds = math.log(max(base, 1e-6) / max(1.0 - base, 1e-6)) + effect
            effect = 1.0 / (1.0 + np.exp(-odds)) - base
        means, spread = base + effect, squares.sum(axis=0) / np.maximum(counts, 1)
        there = counts * ((self.found.counts > 0) | (np.arange(self.task.K) == self.control))
        return seen._replace(pulls=there, mean=means[:, None], variance=spread[:, None])

    def play(self, means: NDArray[np.float64], noise: Any, batch: int, rng: Any, look: Any) -> tuple[StrataRun, bool]:
        """A copy that has measured arms of these means, (K,), in strata of `batch`; whether it ended by itself."""
        run, strata, active = copy.copy(self), copy.copy(self.strata), self.strata.state.active
        run.strata, run.seen, run.plays = strata, self.seen.at(slice(None)), True
        run.sides, run.since, run.evidence = self.sides.copy(), self.since.copy(), self.evidence.copy()
        strata.sums = {name: strata.sums[name] for name in strata.closed}
        strata._full, strata.played = {*strata.sums}, True
        wishes, names = strata.state.setup.wishes, strata.state.names
        kept = {names.index(name): many for name, many in controls_of(wishes).items()}
        while run.open.any() and len(strata.sums) < MOST and (left := run.most - run.seen.spent) > 0:
            look()
            k = np.array([kept.get(int(arm), 0) for arm in active])
            if strata.plate:
                more = list(itertools.islice(run.wishes([]), max(batch - int(k.sum()), 1)))
                k += np.bincount(np.array(more, np.int64), minlength=len(active))
            else:
                there = run.open | (np.arange(len(active)) == self.control)
                k = there * max(batch // int(there.sum()), 1)
            if k.sum() > left:
                break
            run.seen.pulls[:] += k
            run.told += int(k.sum())
            if self.task.distribution == "bernoulli":
                x, squares = rng.binomial(k, means) / np.maximum(k, 1), np.zeros(len(k))
            else:
                x = rng.normal(means, noise / np.sqrt(np.maximum(k, 1)))
                squares = noise**2 * rng.chisquare(np.maximum(k - 1, 1e-9)) * (k > 1)
            name = f"ahead {len(strata.sums)}"
            rows = zip(active.tolist(), k.tolist(), x.tolist(), squares.tolist(), strict=True)
            strata.sums[name] = {arm: [float(many), mean, square] for arm, many, mean, square in rows if many}
            strata._full.add(name)
            run.look()
        return run, not run.open.any()

    def doubts(self, names: Sequence[str]) -> list[str]:
        """Sentences on what claims count on: spreads, and one effect in all strata."""
        if self.found is None or self.refuted:
            return [self.refuted] if self.found is not None else []
        moved = [names[arm] for arm in self.strata.state.active[self.found.same * self.task.K <= self.level]]
        named, kind = ", ".join(moved[:5]) + ", .." * (len(moved) > 5), self.strata.kind
        text = f"the effect of {named} changes by {kind}: a claim says no more than on one {kind} at least"
        return [f"{text} (tests of one effect, p {self.found.same.min():.2g})"] if moved else []
