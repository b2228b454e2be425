"""`bandit-envs session`: real experiments."""

from __future__ import annotations

import inspect
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic

from tyro.conf import OmitArgPrefixes, Positional, arg, subcommand

import agents
from bandit_envs import PROBLEMS

from ..core.files import write_alone
from ..evaluation.report import table
from ..session.page import serve
from ..session.setup import suggested, task_from_facts
from .environment import Options, import_problems, problem_options
from .options import Command, Count, Number, Switch, Word, from_json, note, refuse_to_overwrite

__all__ = ["New", "Session"]

File = Positional[Annotated[str, arg(metavar="FILE")]]
# Parameters of problems that have defaults, which an experiment nearly always wants otherwise.
TOLD = {"Threshold": ("threshold",), "TopK": ("k",), "AllGood": ("epsilon",)}
MOST_NAMES = 40  # of arms in a line
ENOUGH, LESS = (
    10,
    3,
)  # results beyond the first of each arm, from which noise is told; how many times less than expected
WAITS = "waits: how often the arm has been asked for, and no result has been told yet"
Who = Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")]
Column = Annotated[str | None, arg(metavar="COLUMN", help_behavior_hint="")]


@dataclass(frozen=True, kw_only=True)
class Action(ABC):
    """What is done with a session."""

    file: File
    """Where the session is kept: a path, or another address of SQLAlchemy."""
    trust: Switch = False
    """Import the modules, or load the saved model, that the session names: their makers may run any code."""

    @abstractmethod
    def run(self) -> None:
        """Do it, and print the result."""

    def opened(self) -> Any:
        """The session in the file."""
        return agents.Session(store=self.file, trust=self.trust)


@dataclass(frozen=True, kw_only=True)
class New(Action, Generic[Options]):
    """Begin a session; what is not given is asked for, where there is somebody to ask."""

    problem: Word = None
    """What is asked, see `bandit-envs list environments`: Threshold, AllGood, TopK, BestArm, Feasible, or
    module:Class."""
    arms: Annotated[tuple[str, ...], arg(metavar="N | NAME [NAME ...] | FILE", help_behavior_hint="")] = ()
    """How many arms there are, or their names, or a text file with a name in each line."""
    range: Annotated[tuple[float, float] | None, arg(metavar="LOW HIGH", help_behavior_hint="")] = None
    """The lowest and the highest value that a measurement can have."""
    sigma: Number = None
    """The standard deviation of the noise of a measurement."""
    binary: Switch = False
    """A measurement is 0 or 1."""
    dimensions: Count = None
    """How many numbers a measurement is, where that is not 1."""
    budget: Count = None
    """How many measurements there may be."""
    delta: Number = None
    """Allowed error probability, for agents that stop by themselves."""
    agent: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")] = None
    """Which agent decides; left out: one that goes with the problem."""
    parameters: OmitArgPrefixes[Options] = field(default_factory=dict)  # type: ignore[assignment]
    """Those of the problem."""

    def run(self) -> None:
        facts = self.facts()
        if sys.stdin.isatty():
            complete(facts, input)
        if lacking := [name for name in TOLD.get(facts.get("problem", ""), ()) if name not in facts]:
            option, sentence = lacking[0], PROBLEMS[facts["problem"]].parameters[lacking[0]]
            raise ValueError(f"{facts['problem']} needs --{option}: {sentence}")
        task, names = task_from_facts(facts)
        store = agents.Session(self.agent or suggested(task), facts, store=self.file, trust=self.trust)
        if store.version:
            raise ValueError(f"{self.file} holds this session already: bandit-envs session show {self.file}")
        print(f"{self.file}: {task.problem} with {task.K} arms, by the agent {self.agent or suggested(task)}")
        print(_question(task))
        print(f"what to measure first: bandit-envs session ask {self.file}")

    def facts(self) -> dict[str, Any]:
        """What the options tell."""
        known = problem_options()
        given = {
            name: from_json(name, value) if known[name].kind is None else value
            for name, value in self.parameters.items()
        }
        rest = {
            name: getattr(self, name) for name in ("problem", "range", "sigma", "dimensions", "budget", "delta")
        } | {"binary": self.binary or None, "arms": arms_of(self.arms)}
        return given | {name: value for name, value in rest.items() if value is not None}


def arms_of(words: tuple[str, ...]) -> int | list[str] | None:
    """How many arms, or their names, as the words of an option, or the lines of a file, tell."""
    if len(words) != 1:
        return list(words) or None
    if words[0].isdecimal():
        return int(words[0])
    path = Path(words[0])
    if not path.is_file():
        raise ValueError(
            f"--arms must be a number, two names or more, or a file with a name in each line, got {words[0]!r}"
        )
    return [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]


def complete(facts: dict[str, Any], asked: Callable[[str], str]) -> None:
    """Ask for the facts that are missing, each until it is right.

    Args:
        facts: those there are; the others are added.
        asked: puts a question and returns what is typed.
    """

    def fill(name: str, question: str, read: Callable[[str], Any]) -> None:
        while name not in facts:
            text = asked(f"{question}: ").strip()
            try:
                facts[name] = read(text)
            except (ValueError, TypeError) as error:
                note(" ".join(str(error).split()))

    def problem(text: str) -> str:
        import_problems([text])
        PROBLEMS.find(text)
        return text

    if "problem" not in facts:
        print("\n".join(f"  {name:10} {PROBLEMS[name].asks}" for name in PROBLEMS))
        fill("problem", "which problem", problem)
    kind, options = PROBLEMS.find(facts["problem"]), problem_options()
    for name, sentence in kind.parameters.items():
        if name not in facts and _needed(kind, name):
            reader = options[name].kind or (lambda text, name=name: from_json(name, text))
            fill(name, f"{name}, {sentence.rstrip('.')}", reader)
    fill("arms", "arms (how many, or their names with commas, or a file)", lambda text: arms_of(_words(text)))
    if not {"range", "sigma", "binary"} & set(facts):
        told = "0 or 1", "a range, as 0 10", "noise, as sd 1.5"
        fill("measured", f"a measurement is ({'; '.join(told)})", _measured)
        facts |= facts.pop("measured")
    if "budget" not in facts and "delta" not in facts:
        fill("budget", "budget of measurements (empty: none)", lambda text: int(text) if text else None)
        fill("delta", "allowed error probability, as 0.05 (empty: none)", lambda text: float(text) if text else None)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _needed(kind: Any, name: str) -> bool:
    """Whether a problem cannot be made without this parameter, or nearly always wants it told."""
    empty = inspect.signature(kind).parameters[name].default is inspect.Parameter.empty
    return empty or name in TOLD.get(kind.name, ())


def _measured(text: str) -> dict[str, Any]:
    """What a line tells of a measurement.

    Raises:
        ValueError: naming the forms that it may have.
    """
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


@dataclass(frozen=True, kw_only=True)
class Ask(Action):
    """Ask what to measure next, a line for each measurement."""

    n: Annotated[int, arg(aliases=["-n"], metavar="N")] = 1
    """How many measurements."""
    who: Who = None
    """Who asks."""

    def run(self) -> None:
        with self.opened() as session:
            names, before = session.names, session.pending
            for arm in (arms := session.ask(self.n, self.who)):
                print(names[arm])
            if not arms:
                _tell_why(session)
            elif before:
                note(f"these were asked for before, and wait for their results too: {_asked(session, before)}")


def _tell_why(session: Any) -> None:
    """Why there is nothing to ask for."""
    if session.done:
        note(f"the session is over; the answer: {_answer(session)}")
    else:
        note(f"nothing more to ask for until these have been told: {_asked(session, session.pending)}")


def _asked(session: Any, asks: Sequence[Any]) -> str:
    """The arms of some questions."""
    names = session.names
    return _some([names[ask.arm] for ask in asks])


def _answer(session: Any) -> str:
    """The arms of the answer."""
    return _some([name for name, inside in zip(session.names, session.answer(), strict=True) if inside]) or "no arm"


def _some(names: Sequence[str]) -> str:
    """Names in a line; of many the first ones, and how many there are."""
    rest = f", ... ({len(names):,})" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + rest


@dataclass(frozen=True, kw_only=True)
class Tell(Action):
    """Record a result."""

    arm: Positional[Annotated[str, arg(metavar="ARM")]]
    """The arm, by its name or number."""
    value: Positional[Annotated[tuple[str, ...], arg(metavar="VALUE")]]
    """What was measured; several numbers where an arm has several dimensions."""
    who: Who = None
    """Who has measured it."""

    def run(self) -> None:
        try:
            value = tuple(map(float, self.value))
        except ValueError:
            told = " ".join(self.value)
            raise ValueError(
                f"a measurement is a number, with a point for decimals as in 8.5, got {told!r:.80}"
            ) from None
        with self.opened() as session:
            session.tell(self.arm, value[0] if len(value) == 1 else value, self.who)
            _print_state(session)


def _question(task: Any) -> str:
    """What a session asks, and what is known of its measurements, in a line."""
    parts = [f"{PROBLEMS.find(task.problem).asks}: {', '.join(f'{k} {v!s:.40}' for k, v in task.parameters.items())}"]
    if task.support is None or task.law == "gaussian":
        parts.append(f"noise {task.sigma:g}")
    else:
        low, high = task.support
        parts.append(f"measurements {f'{low:g} or' if task.law == 'bernoulli' else f'from {low:g} to'} {high:g}")
        if task.law != "bernoulli" and task.sigma != (high - low) / 2:
            parts.append(f"noise {task.sigma:g}")
    for name in ("budget", "delta", "max_pulls"):
        if (value := getattr(task, name)) is not None:
            parts.append(f"{name} {value:g}" if name == "delta" else f"{name} {value:,}")
    return " · ".join(part.rstrip(": ") for part in parts)


def _print_certainty(session: Any, arms: Any) -> None:
    """How sure the answer is, where that is defined; and whether less noise was seen than the session counts on."""
    sure = session.certificate
    if sure is not None and sure > 0:
        print(f"the answer is right with a probability of {math.floor(1000 * min(sure, 0.999)) / 10:g} % at least")
    elif session.task.delta is not None:
        print("nothing can be promised of the answer yet")
    if session.task.D > 1:
        return
    seen = arms[arms["pulls"] > 1]
    spare = int(seen["pulls"].sum()) - len(seen)
    noise = math.sqrt((seen["pulls"] * seen["sd"] ** 2).sum() / spare) if spare > 0 else math.inf
    if spare >= ENOUGH and noise < session.task.sigma / LESS:
        note(
            f"results of one arm vary by about {noise:.3g}, and this session counts on {session.task.sigma:g}: one "
            "with --sigma safely above that is sure much sooner (export the results, and import them there)"
        )


def _undone(session: Any, number: int) -> str:
    """An event that was undone, in words."""
    history = session.history()
    row = history[history["event"] == number].iloc[0]
    values = " ".join(f"{row[name]:g}" for name in history.columns if name.startswith("value"))
    what = {"told": f"the result {values} of", "asked": "the question about"}.get(row["kind"], "the withdrawal of")
    who = f", by {row['who']}" if isinstance(row["who"], str) and row["who"] else ""
    return f"{what} {row['name']} (event {number}{who})"


def _print_state(session: Any) -> None:
    """Where a session stands, in a line."""
    left = session.remaining
    rest = "" if left is None else f", {left} left"
    over = "; it is over" if session.done else ""
    count = len(session)
    print(f"{count} measurement{'' if count == 1 else 's'}{rest}; answer: {_answer(session)}{over}")


@dataclass(frozen=True, kw_only=True)
class Import(Action):
    """Record the results in a CSV or Parquet file: all of them or, where one is wrong, none."""

    table: Positional[Annotated[Path, arg(metavar="TABLE")]]
    """With the columns name and value, or others named by --arm and --value, or with a column for each arm."""
    arm: Column = None
    """The column of the arms' names, of a table with a measurement in each row."""
    value: Annotated[tuple[str, ...], arg(metavar="COLUMN [COLUMN ...]", help_behavior_hint="")] = ()
    """The column of its values; several where a measurement has several dimensions."""
    index: Column = None
    """The column of names of rows, of a table with a column for each arm: it is left out."""
    who: Who = None
    """Who has measured them."""
    again: Switch = False
    """Record them although the table begins with results that are in the session already."""

    def run(self) -> None:
        with self.opened() as session:
            columns: dict[str, Any] = {"arm": self.arm, "value": self.value or None, "index": self.index}
            count = session.tell_table(self.table, **columns, who=self.who, again=self.again)
            print(f"{count} results from {self.table}")
            _print_state(session)


@dataclass(frozen=True, kw_only=True)
class Show(Action):
    """Show the arms, the answer, and what waits."""

    def run(self) -> None:
        with self.opened() as session:
            task, arms, rows = session.task, session.arms(), []
            heads = ["arm", "pulls", *([] if task.D > 1 else ["mean", "95 % interval"]), "answer", "waits"]
            for row in arms.to_dict("records"):
                seen = row["pulls"] > 0
                cells = []
                if task.D == 1:
                    cells = [f"{row['mean']:.4g}", f"{row['low']:.4g} .. {row['high']:.4g}"] if seen else ["-", "-"]
                mark = "withdrawn" if row["withdrawn"] else "yes" if row["answer"] else ""
                rows.append([row["name"], str(row["pulls"]), *cells, mark, str(row["pending"] or "")])
            print(f"{_question(task)}\n")
            print(table(heads, rows, right=(1, 2)))
            print(f"{WAITS}\n" if session.pending else "")
            _print_state(session)
            _print_certainty(session, arms)


@dataclass(frozen=True, kw_only=True)
class Export(Action):
    """Write the history as CSV."""

    table: Positional[Annotated[Path | None, arg(metavar="CSV", help_behavior_hint="")]] = None
    """The file to write; left out: it is printed."""
    force: Switch = False
    """Overwrite the file."""

    def run(self) -> None:
        refuse_to_overwrite([] if self.table is None else [self.table], self.force, "name")
        with self.opened() as session:
            history = session.history()
        if self.table is None:
            print(history.to_csv(index=False), end="")
        else:
            write_alone(self.table, lambda place: history.to_csv(place, index=False))
            print(f"{len(history)} events in {self.table}")


@dataclass(frozen=True, kw_only=True)
class Undo(Action):
    """Undo a result, or those of a table, as if they had never been; the history keeps a trace."""

    event: Count = None
    """Its number in the history, or that of a question that waits; left out: the last result."""

    table: Annotated[Path | None, arg(metavar="TABLE", help_behavior_hint="")] = None
    """Undo all results of this table instead, the one of this name that was imported last."""

    def run(self) -> None:
        if self.event is not None and self.table is not None:
            raise ValueError("undo takes --event or --table, not both")
        with self.opened() as session:
            if self.table is None:
                print(f"undone: {_undone(session, session.undo(self.event))}")
            else:
                print(f"undone: {session.undo_table(self.table)} results from {self.table}")
            _print_state(session)


@dataclass(frozen=True, kw_only=True)
class Add(Action):
    """Add an arm."""

    name: Positional[Annotated[str, arg(metavar="NAME")]]
    """Its name."""

    def run(self) -> None:
        with self.opened() as session:
            arm = session.add_arm(self.name)
            print(f"{session.names[arm]} is one of {len(session.active)} arms")


@dataclass(frozen=True, kw_only=True)
class Withdraw(Action):
    """Withdraw an arm: it is neither asked for nor answered any more."""

    arm: Positional[Annotated[str, arg(metavar="ARM")]]
    """Its name or number."""

    def run(self) -> None:
        with self.opened() as session:
            session.withdraw_arm(self.arm)
            print(f"{len(session.active)} arms are left")


@dataclass(frozen=True, kw_only=True)
class Note(Action):
    """Write a remark into the history."""

    text: Positional[Annotated[str, arg(metavar="TEXT")]]
    """The remark."""
    who: Who = None
    """Who writes it."""

    def run(self) -> None:
        with self.opened() as session:
            session.note(self.text, self.who)


@dataclass(frozen=True, kw_only=True)
class Serve(Action):
    """Show the session as a page in the browser, until interrupted by Ctrl-C."""

    host: Annotated[str, arg(metavar="ADDRESS")] = "127.0.0.1"
    """Address to listen on; 0.0.0.0 lets other machines in, and the page then has a token in its address."""
    port: Annotated[int, arg(metavar="N")] = 8765
    """Port to listen on."""

    def run(self) -> None:
        with self.opened() as session:
            serve(session, self.host, self.port, lambda address: print(address, flush=True))


@dataclass(frozen=True, kw_only=True)
class Session(Command, Generic[Options]):
    """Run a real experiment: ask what to measure next, tell what came; see the page "Real experiments".

    FILE is where the session is kept; --help after an action tells its options.

    Examples:
      bandit-envs session new taste.db --problem TopK --k 2 --arms tea coffee milk juice --range 0 10 --budget 40
      bandit-envs session ask taste.db -n 3
      bandit-envs session tell taste.db coffee 7.5
      bandit-envs session import taste.db last-year.csv
      bandit-envs session show taste.db
      bandit-envs session serve taste.db
      bandit-envs session undo taste.db
      bandit-envs session export taste.db taste.csv
    """

    action: (
        Annotated[New[Options], subcommand("new")]
        | Annotated[Ask, subcommand("ask")]
        | Annotated[Tell, subcommand("tell")]
        | Annotated[Import, subcommand("import")]
        | Annotated[Show, subcommand("show")]
        | Annotated[Export, subcommand("export")]
        | Annotated[Undo, subcommand("undo")]
        | Annotated[Add, subcommand("add")]
        | Annotated[Withdraw, subcommand("withdraw")]
        | Annotated[Note, subcommand("note")]
        | Annotated[Serve, subcommand("serve")]
    )

    def run(self) -> None:
        self.action.run()
