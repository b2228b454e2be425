"""Questions and texts of a session on the command line: the facts of a new one, and the state of a session."""

from __future__ import annotations

import inspect
import math
import re
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bandit_envs import PROBLEMS
from bandit_envs.problems import BLOCKS

from ..evaluation.report import table
from ..session.questions import Ask
from ..session.rehearsal import GUESSED, CompilesError, rehearse
from ..session.running import NOBODY
from ..session.session import Session
from ..session.words import against, leeway, meaning, plural, said
from .environment import import_problems, problem_options
from .options import from_json, note

MOST_NAMES = 40  # of arms in a line
# Parameters of problems that have defaults, which an experiment nearly always wants otherwise.
TOLD = {"Threshold": ("threshold",), "TopK": ("k",), "AllGood": ("epsilon",)}


def arms_of(words: tuple[str, ...], option: str = "--arms") -> int | list[str] | None:
    """How many arms, or their names, from the words of an option, or the lines of a file."""
    if len(words) != 1:
        return list(words) or None
    if words[0].isdecimal():
        return int(words[0])
    path = Path(words[0])
    if not path.is_file():
        between = "blanks" if option[0] == "-" else "commas"
        text = f"{option} must be a number (one arm: 1), two names or more with {between}"
        raise ValueError(f"{text} between them, or a file with a name in each line, got {words[0]!r}")
    return [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]


def wells_of(words: tuple[str, ...]) -> dict[str, int | float] | None:
    """The wells of a plate for each control, from words as DMSO=2 or DMSO=0.1."""
    found = dict[str, int | float]()
    for word in words:
        name, sign, many = word.rpartition("=")
        try:
            found[name] = int(many) if many.isdecimal() else float(many)
        except ValueError:
            sign = ""
        if not sign or not name:
            raise ValueError(f"--controls must be names with numbers of wells, as DMSO=2, got {word!r:.200}")
    return found or None


def complete(facts: dict[str, Any], asked: Callable[[str], str]) -> None:
    """Ask for the facts that are missing, each until it is right, and add them; `asked` puts a question."""

    def fill(name: str, question: str, read: Callable[[str], object]) -> None:
        while name not in facts:
            try:
                text = asked(f"{question}: ").strip()
            except EOFError:
                print()
                raise ValueError(f"the input ended at the question {question!r}: nothing was begun") from None
            try:
                facts[name] = read(text)
            except (ValueError, TypeError) as error:
                note(" ".join(str(error).split()))

    def arms(text: str) -> int | list[str] | None:
        return arms_of(tuple(word.strip() for word in text.split(",") if word.strip()), "arms")

    def problem(text: str) -> str:
        import_problems([text])
        PROBLEMS.find(text)
        return text

    if "problem" not in facts:
        print("\n".join(f"  {name:10} {PROBLEMS[name].asks}" for name in PROBLEMS))
        fill("problem", "which problem", problem)
    kind, options = PROBLEMS.find(facts["problem"]), problem_options()
    for name, sentence in kind.parameters.items():
        needed = inspect.signature(kind).parameters[name].default is inspect.Parameter.empty
        if name not in facts and (needed or name in TOLD.get(kind.name, ())):
            reader = options[name].kind or (lambda text, name=name: from_json(name, text))
            fill(name, f"{name}, {sentence.rstrip('.')}", reader)
    fill("arms", "arms (how many, or their names with commas, or a file)", arms)
    if not {"range", "sigma", "binary"} & set(facts):
        fill("measured", "a measurement is (0 or 1; a range, as 0 10; noise, as sd 1.5)", _measured)
        facts |= facts.pop("measured")
    if "budget" not in facts and "delta" not in facts:
        fill("budget", "budget of measurements (empty: none)", lambda text: int(text) if text else None)
        fill("delta", "allowed error probability, as 0.05 (empty: none)", lambda text: float(text) if text else None)


def _measured(text: str) -> dict[str, object]:
    """The facts of a measurement that a line gives."""
    words = text.replace(",", " ").replace("..", " ").split()
    if text.strip() == "0 or 1" or words in (["binary"], ["0/1"]):
        return {"binary": True}
    try:
        if words[:1] == ["sd"] and len(words) == 2:
            return {"sigma": float(words[1])}
        low, high = map(float, words)
    except ValueError:
        raise ValueError(f"a measurement is '0 or 1', a range as '0 10', or noise as 'sd 1.5', not {text!r}") from None
    return {"range": (low, high)}


def tell_why(session: Session) -> None:
    """Why there is nothing to ask for."""
    if session.done:
        note(f"the session is over; the answer: {answer(session)}")
    elif not session.pending and {"raters", "repeats"} & set(session.wishes):
        note("this person has measured each arm as often as the session allows")
    else:
        lost = "; a question whose result never comes is given back: undo FILE --event N, or --batch open"
        note(f"nothing more to ask for until these have been told: {asked(session, session.pending)}{lost}")


def asked(session: Session, asks: Sequence[Ask]) -> str:
    """The arms of some questions."""
    names = session.names
    return _some([(ask.code or names[ask.arm]) + ("" if ask.item is None else f" on {ask.item}") for ask in asks])


def answer(session: Session) -> str:
    """The arms of the answer, and those that are tied with it."""
    names, tied = session.names, session.tied
    found = _some([name for name, inside in zip(names, session.answer(), strict=True) if inside]) or "no arm"
    return found + (f" (tied with {_some([names[arm] for arm in tied])})" if tied else "")


def _some(names: Sequence[str]) -> str:
    """Names in a line; of many the first ones, and how many there are."""
    rest = f", ... ({len(names):,})" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + rest


def question(session: Session) -> str:
    """What a session asks, and what is known of its measurements, in a line, under its title."""
    task, title = session.task, session.wishes.get("title", "")
    parts = [f"{title}\n".lstrip() + meaning(session, "arm")]
    if task.support is None or task.distribution == "gaussian":
        parts.append("one noise of all, unknown" if session.wishes.get("common") else f"noise {task.sigma:g}")
    else:
        (low, high), binary = task.support, task.distribution == "bernoulli"
        parts.append(f"measurements {f'{low:g} or' if binary else f'from {low:g} to'} {high:g}")
        if not binary and task.sigma != (high - low) / 2:
            parts.append(f"noise {task.sigma:g}")
    blocks = task.distribution == BLOCKS
    parts += ["in whole blocks"] * blocks
    parts += [f"within each {session.wishes.get('blocks')}"] * ("blocks" in session.wishes and not blocks)
    for name in (*(() if blocks else ("items",)), "budget", "delta", "max_pulls"):
        if (value := getattr(task, name)) is not None:
            parts.append(f"{name} {value:g}" if name == "delta" else f"{name} {value:,}")
    if judged := session._setup.judged:
        parts.append(f"a judge's scores, slope {judged['judge_slope']:g}")
    return " · ".join(parts)


def print_certainty(session: Session) -> None:
    """How sure the answer is, where that is defined; and whether its `sigma` holds."""
    sure, delta = session.certificate, session.delta
    wanted = "" if delta is None else f"; {100 * (1 - delta):g} % was asked for"
    if sure is not None and sure > 0:
        short = " only" if delta is not None and session.done and sure < 1 - delta else ""
        sure = math.floor(1000 * min(sure, 0.999)) / 10
        print(f"the answer{leeway(session, 'arm')} is right with a probability of {sure:g} % at least{short}{wanted}")
    elif delta is not None:
        print(f"nothing can be promised of the answer{'' if session.done else ' yet'}{wanted}")
    for sentence in session.doubts[len(session.contradictions) :]:
        note(sentence)


def print_comparison(found: Any) -> None:
    """The table of `Session.comparison`, and what may be decided by it."""
    what, rows, sentence = against(found)
    noun, attrs, column, null = found.attrs.get("noun"), found.attrs, "mean", ""
    if noun is not None:
        column = plural(noun).replace("stratums", "strata")
        null = f"beyond {attrs['by']}" if attrs["by"] else "better"
        null = f"not {null} on average" if attrs["averaged"] else f"{null} {attrs['at'].replace('at least one', 'no')}"
        null = f", within each {noun}; p is of {null!r}"
    print(f"\nagainst {attrs['control']}, valid whenever you look{null}:\n")
    middle = [f"{x}" for x in found["strata"]] if noun else ["-" if x != x else f"{x:.4g}" for x in found["mean"]]
    shown = zip(found["name"], found["pulls"], middle, rows.values(), strict=True)
    what += " on average" * ("odds" in found and what != "odds")  # with planned shares
    heads = ["name", "results", column, what, f"{100 - 100 * attrs['level']:.4g} % interval of all", "p", ""]
    print(table(heads, [[str(x) for x in (name, n, one, *row)] for name, n, one, row in shown], right=(1, 2, 3, 5)))
    print(sentence)
    if noun is not None and "; not yet" in attrs["strata"]:
        print(attrs["strata"])


def print_shipped(found: Any) -> None:
    """The verdicts of `ab_test` with guardrails, and what each metric is."""
    cells = {metric: against(one)[1] for metric, one in found.attrs["metrics"].items()}
    rows = [
        [name, f"{n}", *(f"{one[name][0]} ({one[name][1]})" for one in cells.values()), verdict]
        for name, n, verdict in zip(found["name"], found["pulls"], found["verdict"], strict=True)
    ]
    print(f"\nagainst {found.attrs['control']}, valid whenever you look:\n")
    print(table(["name", "results", *cells, ""], rows, right=(1,)))


def forecast(facts: Any, agent: str | None = None, file: str = "") -> str:
    """How many measurements a session will take, in a line, where that is known within seconds; else "", or how to."""
    later = f"how many measurements that takes: bandit-envs session plan {file}" if file else ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = rehearse(facts, agent, episodes=40, seconds=1.0, compiles=False)
    except CompilesError:
        return later
    except ValueError:  # such a session cannot be rehearsed
        return getattr(facts, "progress", "")
    guess = "; results of a pilot say more: session plan" if found.believed.startswith(GUESSED) else ""
    advice = re.sub(r"\b(sigma|delta|tolerance|epsilon)=", r"--\1 ", f"; {found.advice}" if found.advice else "")
    return f"{found.until()}{guess}{advice}"


def undone(session: Session, number: int) -> str:
    """An event that was undone, in words."""
    row = session.history(event=number).iloc[0]
    values = " ".join(said(row) or [f"{row[name]:g}" for name in row.index if name.startswith("value")])
    kinds = {"told": f"the result {values} of", "counted": f"the count {values} of", "asked": "the question about"}
    what = kinds.get(row["kind"], "the withdrawal of")
    who = f", by {row['who']}" if isinstance(row["who"], str) and row["who"] else ""
    return f"{what} {row.get('code') or row['name']} (event {number}{who})"


def print_state(session: Session, owner: bool = True, first: bool = True) -> None:
    """Where a session stands, in a line; without the answer for others than its owner, before it is over."""
    for sentence in session.contradictions if owner and first else ():
        print(sentence)
    left = session.remaining
    rest = ("" if session.money is None else f", money {session.money:g}") + ("" if left is None else f", {left} left")
    over = "; it is over" if session.done else ""
    count = len(session)
    found = f"; answer: {answer(session)}" if over or owner and count else ""
    print(f"{count} measurement{'' if count == 1 else 's'}{rest}{found}{over}")
    if waiting := session.waiting:
        arms = {ask.number: ask.code or session.names[ask.arm] for ask in session.pending}
        late = [f"{count} for the event {number} ({arms[number]})" for number, count in waiting.items()]
        print(f"results that do not count yet, as they wait for results of earlier questions: {_some(late)}")
        owed = [f"{one['who'] or NOBODY}, {one['silent']:.0f} s" for one in session.owed if one["results"]]
        print(f"who has been asked for these, and the seconds without a sign of life: {_some(owed)}")
