"""The design of a session: which arms may be asked for now, and codes that stand for questions; and all wishes.

A design is a function of the facts and the events, so that nothing is stored for it. Certificates hold whichever arm is
measured when, so that no design voids them.

Plates   Questions fill plates in the order of asking, each a well, row by row, of the smallest standard plate that has
         so many. A question that was undone keeps its well. A plate holds `plate` questions. It ends early where no arm
         may be added: at most `per_plate` of each.
Controls A fixed number of the wells of each plate, spread evenly, is for these arms.
Raters   A person who asks measures an arm at most `repeats` times, and first those that he has measured no more often
         than the others. Controls do not count. A question stays with its rater, however silent.
Blocks   Each call of `ask` asks for whole blocks: once for each arm that the certificate still counts, in random order.
         The effect of a block is that of its plate, day or rater, who do not change within a call. A question that was
         undone leaves its place empty, and its block counts for the other arms.
Codes    Of the question with the number n the code is a bijection of n, shifted by the public seed.

Where the agent wants an arm that may not be asked for now, the arm is asked for that it would want next if that one
were being measured. After `TRIES` such steps, or where it would stop, it is the arm with the fewest measurements.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import zip_longest
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

import numpy as np

from bandit_envs import Task
from bandit_envs.instances import Measurements, wells_of_plate
from bandit_envs.kernels import choice, flag, integer, number, orders, root_key

from ..core.optional import pandas
from ..registry import names, recipe_of
from .course import UNDECIDED
from .log import ASKED, LARGEST, RESULTS, Event

if TYPE_CHECKING:
    from pandas import DataFrame

State = Any  # that of `fold`, which needs this module
AHEAD = 100  # blocks that are asked for beyond the first that lacks a result
MOST_BLOCKS = 5000  # of a session
MOST_WELLS = 10**6
TRIES = 16  # steps from an arm that may not be asked for to one that may
MOST_AT_ONCE = 32  # results that are imagined in such a step: twice as many each time an arm comes back
LETTERS, DIGITS = "BCDFGHJKLMNPQRSTVWXZ", "23456789"
CODES = len(LETTERS) ** 2 * len(DIGITS)  # of three characters, before a number is added
STRIDE = 1867  # without a divisor in common with CODES, so that codes of questions in a row do not look alike
CODE = re.compile(f"[{LETTERS}][{DIGITS}][{LETTERS}][0-9]*")


# --- the facts --------------------------------------------------------------------------------------------------------


def count(name: str, value: Any) -> int:
    """A number of wells, or of measurements."""
    return integer(name, value, 1, MOST_WELLS)


def people(name: str, value: Any) -> list[str]:
    """The names of different people."""
    found = [] if isinstance(value, (str, bytes)) or not isinstance(value, Sequence) else list(value)
    known = all(isinstance(one, str) and one.strip() == one and one.isprintable() and one for one in found)
    if not found or not known or len(set(found)) < len(found):
        raise ValueError(f"{name} must be a list of different names, got {value!r:.200}")
    return found


def wells(name: str, value: Any) -> dict[str, float]:
    """The wells of a plate for each control, by its name: how many, or which share of the plate."""
    if not isinstance(value, Mapping) or not value or not all(isinstance(arm, str) for arm in value):
        raise ValueError(f"{name} must be wells of a plate by names of arms, as {{'DMSO': 2}}, got {value!r:.200}")
    of = f"{name} of an arm, a number of wells, or a share of a plate below 1,"
    return {
        arm.strip(): number(of, many, 0, 1, above=True, below=True) if isinstance(many, float) else count(of, many)
        for arm, many in value.items()
    }


def controls_of(wishes: Mapping[str, Any]) -> dict[str, int]:
    """How many wells of a plate each control has."""
    plate, controls = wishes.get("plate", 0), wishes.get("controls", {})
    return {arm: max(round(plate * many), 1) if many < 1 else int(many) for arm, many in controls.items()}


def refuse_misfit(wishes: Mapping[str, Any], names: Sequence[str], task: Task) -> None:
    """Refuse a design that does not fit together, or to the arms."""
    plate, controls = wishes.get("plate"), controls_of(wishes)
    given = [name for name in ("plate", "per_plate", "controls", "raters", "repeats") if name in wishes]
    control = task.make_problem().control_arm
    if "blocks" in wishes and control is not None:
        refuse_no_strata(wishes, task)
    elif "blocks" in wishes:
        task.certified_distribution()  # ValueError for problems that compare no two arms
        if task.budget is not None and task.budget < task.K:
            raise ValueError(f"a budget of {task.budget} measurements holds no whole block of {task.K} arms")
        if given := [name for name in given if name not in ("raters", "repeats")]:
            raise ValueError(f"{given[0]} does not go with blocks: each call of ask asks for whole ones, as on a plate")
    elif task.items and given:
        raise ValueError(f"{given[0]} does not go with items: of a table each arm is measured on each row once")
    if plate is None and ("per_plate" in wishes or controls):
        raise ValueError("per_plate and controls need plate, the number of wells, as in plate=24")
    if unknown := [arm for arm in controls if arm not in names]:
        raise ValueError(f"controls are arms of the session, and there is no arm {unknown[0]!r:.200}")
    if controls and sum(controls.values()) >= (plate or 0):
        raise ValueError(f"controls take {sum(controls.values())} wells, and a plate has {plate}: leave some wells")
    for name in names:
        refuse_code(wishes, name)


def refuse_no_strata(wishes: Mapping[str, Any], task: Task) -> None:
    """Refuse blocks of a control that are no strata: see `bandit_envs.stopping.Stratified`."""
    given: Any = task.make_problem().settings
    binary = task.distribution == "bernoulli"
    if wishes["blocks"] == "rater":
        raise ValueError("blocks of a control are 'day' or 'plate', got 'rater'")
    if "raters" in wishes or "repeats" in wishes:
        raise ValueError("raters and repeats do not go with blocks of a control")
    if task.distribution not in ("bernoulli", "gaussian") or task.D > 1 or task.items:
        what = "with blocks and a control, measurements are single numbers, binary or with sigma (a number or 'common')"
        raise ValueError(f"{what}: leave out range, items, dimensions and guardrails")
    wrong = {name: given.get(name) or None for name in ("margin", "tolerance") if binary} | {"lift": given.get("lift")}
    if said := ", ".join(f"{name}={value:g}" for name, value in wrong.items() if value is not None):
        how = "rates are compared by their odds, which know" if binary else "means by differences, which know"
        raise ValueError(f"with blocks {how} no {said}: {'leave it out' if binary else 'give a margin'}")


def refuse_code(wishes: Mapping[str, Any], name: str) -> None:
    """Refuse the name of an arm of a blind session that looks as a code does, in any case."""
    if wishes.get("blind") and CODE.fullmatch(name.strip().upper()):
        raise ValueError(f"an arm of a blind session cannot have the name {name!r}: a question may have it as its code")


def refuse_counts(state: State) -> None:
    """Refuse counts of measurements where single ones are needed."""
    setup, run = state.setup, state.run
    single = {"items or blocks": setup.task.items, "several dimensions": setup.task.D > 1}
    single |= {name: setup.wishes.get(name) for name in ("plate", "raters", "repeats", "blind")}
    if without := [name for name, given in single.items() if given]:
        raise ValueError(f"counts do not go with {without[0]}: each measurement is a result of its own there")
    if not run.resumes or run.course is not None:
        able = [name for name in names(setup.task.problem) if getattr(recipe_of(name).target, "resumes", True)]
        how = "goes by rounds" if run.course is None else "reads histories"
        raise ValueError(f"{setup.agent} {how}, and takes single results; agents that take counts: {', '.join(able)}")


def refuse_stranger(wishes: Mapping[str, Any], who: str | None) -> None:
    """Refuse to ask for a person who is none of the raters, or for nobody where each has a number of measurements."""
    raters = wishes.get("raters")
    if raters is not None and who not in raters:
        raise ValueError(f"who asks must be one of the raters, {', '.join(raters)}, got {who!r:.200}")
    if "repeats" in wishes and who is None:
        raise ValueError("who asks must be named: each person measures an arm at most `repeats` times")


# --- codes ------------------------------------------------------------------------------------------------------------


def code_of(number: int, public_seed: int) -> str:
    """The code of the question with this number: a letter, a digit, a letter, and a number where these are used up."""
    rest, place = divmod(number, CODES)
    place, last = divmod((STRIDE * place + public_seed) % CODES, len(LETTERS))
    first, digit = divmod(place, len(DIGITS))
    return f"{LETTERS[first]}{DIGITS[digit]}{LETTERS[last]}{rest or ''}"


def asked_by(state: State, code: object) -> int | None:
    """The number of the question, open or not, that has this code; None where there is none, or it was asked again."""
    if not state.setup.wishes.get("blind") or not isinstance(code, str) or not CODE.fullmatch(code.strip().upper()):
        return None
    code, seed = code.strip().upper(), state.setup.public_seed
    return next((int(number) for number in state.places if code_of(number, seed) == code), None)


# --- blocks -----------------------------------------------------------------------------------------------------------


def cells_of_blocks(state: State, count: int, who: str | None) -> list[tuple[int, int | None]]:
    """The arms and numbers of further blocks: as many as `count` questions fill, or one; [] where enough are open."""
    run, wishes = state.run, state.setup.wishes
    left = count if state.remaining is None else state.remaining - len(state.asks)
    if count <= 0 or left <= 0 or run.over:
        return []
    asked = [event for event in state.events.values() if event.kind == ASKED]
    arms, begun = state.active[run.counted()], blocks_of(state)
    each = wishes.get("repeats", 1 if "raters" in wishes else LARGEST)
    own = len({event.value for event in asked if event.who == who})
    end = min(MOST_BLOCKS, min(run.rows(state.place[int(arm)]) for arm in arms) + AHEAD)
    last = min(begun + max(count // len(arms), 1), begun + each - own, end)
    key, found = root_key(state.setup.public_seed)[:, None], list[tuple[int, int | None]]()
    for block in range(begun, last):
        found += [(int(arm), block) for arm in arms[orders(key, np.array([block], np.uint64), len(arms))[0]]]
    return found if state.remaining is None else found[:left]


def blocks_of(state: State) -> int:
    """How many blocks have been begun: their numbers are those below."""
    asked = {event.value for event in state.events.values() if event.kind == ASKED}
    return len(asked | {block for _, block in state.cells})


def refuse_parts(state: State, told: Sequence[Event]) -> None:
    """Refuse results without a question, unless they are of all arms in the blocks that come next."""
    needed = state.active if state.run.over else state.active[state.run.counted()]
    blocks: dict[int, set[int | None]] = {}
    for event in told:
        if event.about is None:
            blocks.setdefault(event.value[1], set()).add(event.arm)
    for following, (block, arms) in enumerate(sorted(blocks.items()), blocks_of(state) if blocks else 0):
        if block != following or not arms.issuperset(needed.tolist()):
            what = f"of all arms in the block {following}, which comes next"
            raise ValueError(f"results that were not asked for must be {what}; got {len(arms)} of the block {block}")


# --- plates -----------------------------------------------------------------------------------------------------------


def plated(state: State) -> dict[int, tuple[int, str | None]]:
    """The plate, from 1, and the well of each question, and of its results, by the numbers of their events."""
    if "plate" not in state.setup.wishes:
        return {}
    wells, found = wells_of_plate(state.setup.wishes["plate"]), dict[int, tuple[int, str | None]]()
    for i, plate in enumerate(Rules(state, None).plates, 1):
        found |= {one: (i, well) for one, well in zip_longest(plate, wells[: len(plate)])}
    for event in state.events.values():
        if event.about in found and event.kind in (ASKED, *RESULTS):
            found[event.number] = found[event.about]
    return found


def on_plate(state: State, plate: object) -> dict[int, str | None]:
    """The wells of the questions and results of a plate, by their numbers."""
    if not (at := plated(state)):
        why = "nothing was asked for yet" if "plate" in state.setup.wishes else "the session has no fact plate"
        raise ValueError(f"there is no plate {plate!r:.80}: {why}")
    number = integer("plate", plate, 1, max(at.values())[0])
    return {one: well for one, (there, well) in at.items() if there == number}


def named_on(state: State, plate: object) -> dict[str | None, tuple[int, str]]:
    """The question in each well of a plate that was not undone, and its arm's name, or in a blind session its code."""
    at, blind, seed = on_plate(state, plate), state.setup.wishes.get("blind"), state.setup.public_seed
    there = {one: state.events[one].arm for one in state.places if one in at}
    names = {one: code_of(one, seed) if blind else state.names[arm] for one, arm in there.items()}
    return {at[one]: (one, name) for one, name in names.items() if there[one] not in state.withdrawn}


def map_of(state: State, plate: object) -> DataFrame:
    """See `Session.plate_map`."""
    found, wells = named_on(state, plate), wells_of_plate(state.setup.wishes["plate"])
    if not wells:
        raise ValueError("standard plates have 1536 wells at most: there is no map of a larger one")
    columns = int(wells[-1].lstrip(ascii_uppercase))
    cells = np.reshape([found.get(well, (0, ""))[1] for well in wells], (-1, columns))
    table: DataFrame = pandas().DataFrame(cells, [well[:-1] for well in wells[::columns]], range(1, columns + 1))
    return table.rename_axis(f"plate {plate}")


def in_wells(state: State, found: Measurements, plate: object) -> list[int]:
    """The questions of a plate that the rows of a table answer, by its wells."""
    named, about = named_on(state, plate), list[int]()
    wells = next((cells for head, cells in found.rest.items() if head.lower() == "well"), [""] * len(found.rows))
    for well, one in zip(wells, found.rows, strict=True):
        number, name = named.get(re.sub(r"(?<=[A-Z])0+", "", str(well).strip().upper()), (0, ""))  # of A01
        if number not in state.asks or number in about or name not in (one.arm, one.arm.removeprefix("'")):
            text = f"no question about {one.arm!r:.80} waits in its well, {well!r:.80}, of plate {plate}"
            raise ValueError(f"{found.of}, {one.place}: {text}, or it is there twice")
        about.append(number)
    return about


def batch_of(state: State, event: int | None, plate: int | None = None) -> dict[int, int]:
    """The questions of a plate or, without plates, the call of `ask`, of a question or result; None: of the last one.

    With those that were asked again: {its number: the number by which it is asked now}.
    """
    about = max(state.places, default=0) if event is None else event
    if about in state.events and state.events[about].kind in RESULTS:
        about = state.events[about].about or 0
    first = dict[int, int]()
    for one in state.events.values():
        if one.kind == ASKED and one.number not in state.undone:
            first[one.number] = first.get(one.about or 0, one.number)
    if plate is None and about not in first:
        raise ValueError("there is no question to undo" if event is None else f"the event {event} is of no question")
    batch: Collection[int]
    if plate is not None or "plate" in state.setup.wishes:
        batch = on_plate(state, plated(state)[about][0] if plate is None else plate)
    else:
        made = state.events[first[about]][5:]  # who, run and time
        batch = [one.number for one in state.events.values() if one[5:] == made]
    now = {place: asked for asked, place in state.places.items()}
    return {asked: now[place] for asked, place in first.items() if place in batch}


# --- what may be asked for --------------------------------------------------------------------------------------------


class Rules:
    """Which arms a person may be asked for, by the events; those that are chosen count at once."""

    def __init__(self, state: State, who: str | None) -> None:
        self.state, self.who, wishes = state, who, state.setup.wishes
        self.plate: int = wishes.get("plate", 0)
        self.most: int = wishes.get("per_plate", LARGEST)
        controls = controls_of(wishes)
        numbers: dict[str, int] = state.number
        kept = sorted(((i + 0.5) / many, numbers[name]) for name, many in controls.items() for i in range(many))
        self.controls = Counter(arm for _, arm in kept)
        self.kept = {int((i + 0.5) * self.plate / len(kept)): arm for i, (_, arm) in enumerate(kept)}  # by their wells
        self.raters = wishes.get("raters", [])
        self.each = LARGEST if who is None else wishes.get("repeats", 1 if self.raters else LARGEST)
        self.wells, self.here = 0, Counter[int]()  # of the plate that is being filled, and of its arms
        self.by = Counter[tuple[int, str | None]]()  # measurements, and questions, of an arm by a person
        self.plates = list[list[int]]()  # the questions on each plate
        for event in state.events.values():
            if event.kind == ASKED and event.about is None:
                self.asked(event)
        results = state.not_undone
        measured = {event.about: event.who for event in results}
        for asked in state.places:
            event = state.events[asked]
            self.by[event.arm or 0, measured.get(asked) or event.who] += 1
        self.by.update((event.arm or 0, event.who) for event in results if event.about not in state.places)

    def asked(self, event: Event) -> int:
        """Put a question on the plate that is being filled, or on the next one; returns the plate's number, from 1."""
        self.place(event.arm or 0)
        self.plates += [[]] if self.wells == 1 else []
        self.plates[-1].append(event.number)
        return len(self.plates)

    def choices(self, run: Any, pending: Sequence[int]) -> Iterator[int]:
        """The places, among the arms that there are, of the arms to ask for, while results of others are to come."""
        pending = list(pending)
        while (wish := run.wish(pending)) != UNDECIDED and (arm := self._choice(run, pending, wish)) is not None:
            yield self.state.place[arm]
            pending.append(self.state.place[arm])

    def _choice(self, run: Any, pending: list[int], wish: int) -> int | None:
        """The arm to ask for next, where the agent wants the one at a place; None: there is none for the person."""
        able = [arm for arm in self.state.active.tolist() if arm in self.controls or self.by[arm, self.who] < self.each]
        if self.state.strata is not None:
            able = [arm for arm in able if self.state.run.open[self.state.place[arm]] or arm in self.controls]
        if not able:
            return None
        if self.wells == self.plate or not any(map(self._fits, able)):
            self.wells, self.here = 0, Counter()
        arm: int | None = self.kept.get(self.wells)
        if arm is None or arm not in self.state.place:
            fitting = list(filter(self._fits, able))  # and of these, what no rater has measured less often
            first = {one for one in fitting if all(self.by[one, self.who] <= self.by[one, r] for r in self.raters)}
            first = first or set(fitting)
            arm = self._wanted(run, pending, wish, first)
            if arm is None:
                arm = min(first, key=lambda one: (sum(self.by[pair] for pair in self.by if pair[0] == one), one))
        self.place(arm)
        self.by[arm, self.who] += 1
        return arm

    def _wanted(self, run: Any, pending: list[int], wish: int, among: set[int]) -> int | None:
        """The first of these arms that the agent wants, if others that it wants are being measured."""
        seen, pending = Counter[int](), list(pending)
        for _ in range(TRIES):
            if wish == UNDECIDED:
                break
            if (arm := int(self.state.active[wish])) in among:
                return arm
            pending += [wish] * min(2 ** seen[arm], MOST_AT_ONCE)
            seen[arm] += 1
            wish = run.wish(pending)
        return None

    def place(self, arm: int) -> None:
        """Put an arm on the plate that is being filled, or on the next one."""
        if self.wells == self.plate or self.here[arm] >= max(self.most, self.controls[arm]):
            self.wells, self.here = 0, Counter()
        self.wells += 1
        self.here[arm] += 1

    def _fits(self, arm: int) -> bool:
        """Whether the plate may have one more of an arm, besides those of the wells that are kept for it."""
        kept = sum(one == arm for well, one in self.kept.items() if well >= self.wells)
        return self.here[arm] + kept < max(self.most, self.controls[arm])


# --- all wishes: facts that change neither the task nor its certificate -----------------------------------------------


MOST_LETTERS = 200


def line(name: str, value: Any) -> str:
    """A text in one line."""
    if not isinstance(value, str) or not value.strip().isprintable() or not 0 < len(value.strip()) <= MOST_LETTERS:
        raise ValueError(f"{name} must be text in one line, of {MOST_LETTERS} letters at most, got {value!r:.200}")
    return value.strip()


# What checks each of them, and returns it as JSON can hold it.
WISHES: dict[str, Callable[[str, Any], Any]] = {
    "title": line,  # what the experiment is about
    "unit": line,  # of a measurement, "mg / l"
    "noun": line,  # what an arm is, "compound"
    "plate": count,  # wells of a plate; see `design`
    "per_plate": count,  # wells that an arm may have of a plate
    "controls": wells,  # wells that an arm has of each plate
    "raters": people,  # who may ask
    "repeats": count,  # how often a person may measure an arm
    "blocks": lambda name, value: choice(name, value, ("plate", "day", "rater")),  # in which all arms are measured
    "blind": flag,  # whether questions have codes
    "common": flag,  # of `sigma="common"`
}


def wishes_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The wishes among facts, checked; those that are None are not there."""
    found = {name: check(name, facts[name]) for name, check in WISHES.items() if facts.get(name) is not None}
    return found | {"common": True} if facts.get("sigma") == "common" else found
