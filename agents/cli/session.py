"""`bandit-envs session`: real experiments."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, Literal

from tyro.conf import OmitArgPrefixes, Positional, arg, subcommand

import agents
from bandit_envs import PROBLEMS
from bandit_envs.instances import number_in

from ..core.files import write_alone
from ..evaluation.report import table
from ..session.page import serve
from ..session.questions import Ask as Asked
from ..session.setup import FACTS, suggested, task_from_facts
from ..session.tables import for_spreadsheets
from ..session.wishes import WISHES
from .environment import Options, parameters_of
from .options import (
    TABLE,
    Command,
    Count,
    Number,
    Place,
    Prices,
    Switch,
    TableOptions,
    Word,
    Words,
    note,
    noted,
    prices_in,
    refuse_to_overwrite,
)
from .session_words import (
    TOLD,
    arms_of,
    asked,
    complete,
    forecast,
    print_certainty,
    print_comparison,
    print_state,
    question,
    tell_why,
    undone,
    wells_of,
)

File = Positional[Annotated[str, arg(metavar="FILE")]]
Who = Annotated[str | None, arg(metavar="NAME", help_behavior_hint="", help="Who does this, for the history.")]
Column = Annotated[str | None, arg(metavar="COLUMN", help_behavior_hint="")]


@dataclass(frozen=True, kw_only=True)
class Action:
    """What is done with a session."""

    file: File
    """Where the session is kept: a path, or another address of SQLAlchemy."""
    trust: Switch = False
    """Import the modules, or load the saved model, that the session names: their makers may run any code."""

    def run(self) -> None:
        """Open the session, and do it."""
        with noted(), agents.Session(store=self.file, trust=self.trust) as session:
            self.act(session)

    def act(self, session: agents.Session) -> None:
        """Do it, and print the result."""


@dataclass(frozen=True, kw_only=True)
class New(Action, Generic[Options]):
    """Begin a session; what is not given is asked for, at a terminal."""

    problem: Word = None
    """What is asked, see `bandit-envs list environments`: Threshold, AllGood, TopK, BestArm, BetterThanControl,
    Feasible, or module:Class."""
    arms: Annotated[tuple[str, ...], arg(metavar="N | NAME [NAME ...] | FILE", help_behavior_hint="")] = ()
    """How many arms there are, or their names, or a text file with a name in each line."""
    items: Annotated[tuple[str, ...], arg(metavar="N | FILE", help_behavior_hint="")] = ()
    """All arms are measured on the same rows of a table, each once: how many, or a text file with a name in each
    line."""
    range: Annotated[tuple[float, float] | None, arg(metavar="LOW HIGH", help_behavior_hint="")] = None
    """The lowest and the highest value that a measurement can have."""
    sigma: Number = None
    """The standard deviation of the noise of a measurement."""
    binary: Switch = False
    """A measurement is 0 or 1."""
    dimensions: Count = None
    """How many numbers a measurement is, where that is not 1."""
    budget: Count = None
    """How many measurements there may be, or, with --cost, how much money."""
    cost: Prices = ()
    """Prices of a measurement, as --cost gpt=20 (1 of others), or "row": rows of a table cost 1 each."""
    hint: Word = None
    """Of BestArm with --items: a table of the same arms on other rows, by which bets are made until results differ."""
    judge: Word = None
    """With --items: a table of cheap scores of all arms on all items, as of a grader; good ones save measurements."""
    judge_slope: Number = None
    """How much of a judge's score is taken off a score, above 0, at most 1; left out: 0.5."""
    delta: Number = None
    """Allowed error probability, for agents that stop by themselves."""
    reserve: Number = None
    """The part of delta, from 0 to 1, that is kept for arms that are added, or whose rivals are withdrawn, later."""
    minimize: Switch = False
    """A lower value is better; of Threshold, arms with a mean of the threshold at most are wanted."""
    independent: Switch = False
    """The numbers of a measurement, where there are several, are known not to depend on each other."""
    order: Literal["asked", "arrival"] = "asked"
    """Results count as they were asked for, or as they come: then none may be late because of its value."""
    agent: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")] = None
    """Which agent decides; left out: one that goes with the problem."""
    title: Word = None
    """What the experiment is about, for the page."""
    unit: Word = None
    """The unit of a measurement, for the page."""
    noun: Word = None
    """What an arm is called on the page, as "compound"."""
    plate: Count = None
    """How many wells a plate has: questions fill plates in the order of asking."""
    per_plate: Count = None
    """How many wells of a plate an arm may have."""
    controls: Annotated[tuple[str, ...], arg(metavar="NAME=WELLS [NAME=WELLS ...]", help_behavior_hint="")] = ()
    """Wells that an arm has of each plate, how many, or a share below 1."""
    raters: Annotated[tuple[str, ...], arg(metavar="NAME [NAME ...]", help_behavior_hint="")] = ()
    """Who may ask: each measures an arm once, or --repeats times."""
    repeats: Count = None
    """How often a person may measure an arm."""
    blocks: Literal["plate", "day", "rater"] | None = None
    """All arms are measured in each block, so that the effect of a plate, a day, or a rater drops out."""
    blind: Switch = False
    """Questions have codes, in place of the names of arms."""
    parameters: OmitArgPrefixes[Options] = field(default_factory=dict)  # type: ignore[assignment]
    """Those of the problem."""

    def run(self) -> None:
        facts = self.facts()
        if sys.stdin.isatty():
            complete(facts, input)
        if lacking := [name for name in TOLD.get(facts.get("problem", ""), ()) if name not in facts]:
            option, sentence = lacking[0], PROBLEMS[facts["problem"]].parameters[lacking[0]]
            raise ValueError(f"{facts['problem']} needs --{option}: {sentence}")
        task, _ = task_from_facts(facts)
        name = self.agent or suggested(task)
        with noted():
            session = agents.Session(name, facts, store=self.file, order=self.order, trust=self.trust)
        if session.version:
            raise ValueError(f"{self.file} holds this session already: bandit-envs session show {self.file}")
        print(f"{self.file}: {task.problem} with {task.K} arms, by the agent {name}")
        print(question(session))
        if task.delta is not None and not getattr(session.agent, "stops", False):
            does = "never stops by itself" if task.budget is None else "spends the whole budget"
            note(f"{name} {does}; \"{name}(stop='certificate')\" stops once the answer is certified")
        elif task.delta is None and task.budget is None and task.max_pulls is None:
            note("nothing ends this session by itself: without --delta or --budget, you stop when you like")
        named = [text for text in (task.problem, name) if ":" in text.partition("(")[0]]
        if named:
            note(f"{self.file} names the code of {' and '.join(named)}, which all commands of the session run: --trust")
        if task.delta is not None and not task.items and (said := forecast(facts, name, self.file)):
            note(said)
        print(f"what to measure first: bandit-envs session ask {self.file}{' --trust' if named else ''}")

    def facts(self) -> dict[str, Any]:
        """The facts that the options give."""
        own = {name: getattr(self, name) for name in (*FACTS, *WISHES) if hasattr(self, name)}
        own |= {name: getattr(self, name) or None for name in ("binary", "independent", "minimize", "blind")}
        own |= {"arms": arms_of(self.arms), "raters": list(self.raters) or None, "cost": prices_in(self.cost)}
        own["items"], own["controls"] = arms_of(self.items, "--items"), wells_of(self.controls)
        return parameters_of(self.parameters) | {name: value for name, value in own.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Plan(New[Options]):
    """Say how many measurements a session will take, by playing it many times; nothing is begun."""

    file: Positional[Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")]] = None  # type: ignore[assignment]
    """A session: without further facts, how many more measurements it will take. With facts: a pilot study, in which
    arms go by their names; or a table of its results, .csv or .parquet."""
    agents: Words = None
    """Agents to compare; left out: --agent, or two that suit the facts."""
    low: Number = None
    """Means are believed to lie between --low and --high."""
    high: Number = None
    mean: Number = None
    """Means are believed to lie around this one, by --spread."""
    spread: Number = None
    noise: Number = None
    """The standard deviation of results of one arm, as it is believed to be."""
    batch: Count = None
    """How many measurements are made together; left out: a plate without its controls, or 1."""
    workers: Annotated[int, arg(metavar="N")] = 1
    """How many people, or machines, measure at the same time."""
    hours: Number = None
    """That a measurement takes or, with --batch, a batch."""
    at: Count = None
    """A number of measurements after which answers are scored."""
    episodes: Annotated[int, arg(metavar="N")] = 200
    """How often the session is played, for each agent."""
    seed: Annotated[int, arg(metavar="N")] = 0
    """Of what is drawn in it."""
    plot: Place = None
    """File for a figure: .png, .svg or .pdf."""

    def run(self) -> None:
        facts, names = self.facts(), ("low", "high", "mean", "spread", "noise")
        guess = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        how: dict[str, Any] = {
            name: getattr(self, name) for name in ("batch", "workers", "hours", "at", "episodes", "seed")
        }
        given = list(self.agents or ()) or self.agent
        if self.file is not None and "://" not in self.file and not Path(self.file).exists():
            raise FileNotFoundError(f"there is no {self.file}: leave FILE out to plan by the facts alone")
        with noted():
            if self.file is not None and not facts:
                with agents.Session(store=self.file, trust=self.trust) as session:
                    found = agents.rehearse(session, given, prior=guess or None, progress=True, **how)
            else:
                if guess and self.file is not None:
                    raise ValueError(f"what is believed is said by {self.file} or --{next(iter(guess))}, not by both")
                found = agents.rehearse(facts, given, prior=guess or self.file, progress=True, **how)
        print(re.sub(r"\b(sigma|delta|tolerance|epsilon)=", r"--\1 ", f"{found}\n"))
        heads, rows = ["agent", "measurements", "10 %", "90 %", "batches", "hours"], []
        for row in found.table().to_dict("records"):
            numbers = [row[f"measurements_{level}"] for level in (50, 10, 90)] + [row["batches_50"], row["hours_50"]]
            numbers += [row[name] for name in row if name == "money_50"]
            cells = ["-" if x != x else "more" if x == float("inf") else f"{x:,.6g}" for x in numbers]
            rows.append([row["agent"], *cells, f"{row['ended']:.0%}", f"{row['error']:.3f}", f"{row['score']:.3f}"])
        heads += [*["money"] * (len(rows[0]) > 9), "ended", "error", "score"]
        print(table(heads, rows, right=range(1, len(heads))))
        when = "at the end" if self.at is None else f"after {self.at:,} measurements"
        print(
            "10 %, 90 %: so many of the rehearsals need no more. ended: certain before the budget is spent. "
            f"error, score: wrong answers, and the mean score of answers, {when}"
        )
        if self.plot is not None:
            found.plot(self.plot)
            print(f"figure: {self.plot}")


@dataclass(frozen=True, kw_only=True)
class Ask(Action):
    """Ask what to measure next, a line for each measurement."""

    n: Annotated[int, arg(aliases=["-n"], metavar="N")] = 1
    """How many measurements."""
    who: Who = None

    def act(self, session: agents.Session) -> None:
        names, before = session.names, session.pending
        tabled, D = bool(session.task.items), session.task.D
        if arms := session.ask(self.n, self.who):  # once values stand in its lines, `import` reads this as a table
            print("\t".join(["name", *["item"] * tabled, *(["value"] if D == 1 else [f"value_{d}" for d in range(D)])]))
        for arm in arms:
            print("\t".join([arm.code or names[arm], *[str(arm.item)] * tabled, *[""] * D]))
        if not arms:
            tell_why(session)
        elif before:
            note(f"these were asked for before, and wait for their results too: {asked(session, before)}")


@dataclass(frozen=True, kw_only=True)
class Tell(Action):
    """Record a result."""

    arm: Positional[Annotated[str, arg(metavar="ARM")]]
    """The arm, by its name or number, or the code of a question."""
    value: Positional[Annotated[tuple[str, ...], arg(metavar="VALUE", help_behavior_hint="")]] = ()
    """What was measured; several numbers where an arm has several dimensions; left out of a count."""
    n: Count = None
    """Of a count, how many measurements, with --successes, or --mean and --sd."""
    successes: Count = None
    """How many of them were 1."""
    mean: Number = None
    """Their mean."""
    sd: Number = None
    """Their standard deviation, with the divisor n - 1."""
    item: Annotated[str | None, arg(metavar="ITEM", help_behavior_hint="")] = None
    """Of a table, the row, by its name or number; left out: the row of the oldest question about the arm."""
    question: Count = None
    """The number of the question in the history; left out: the oldest one about the arm."""
    who: Who = None

    def act(self, session: agents.Session) -> None:
        try:
            value: Any = tuple(map(number_in, self.value)) or None
        except ValueError:
            wanted = f"a number (or True, False), with a point for decimals as in 8.5, got {' '.join(self.value)!r:.80}"
            raise ValueError(f"a measurement is {wanted}") from None
        arm = self.arm if self.question is None else Asked(self.question, session.arm(self.arm), None)
        value = value[0] if value and len(value) == 1 else value
        session.tell(arm, value, self.who, self.item, n=self.n, successes=self.successes, mean=self.mean, sd=self.sd)
        print_state(session, owner=not session.wishes.get("blind"))


@dataclass(frozen=True, kw_only=True)
class Import(TableOptions, Action):
    """Record the results in a file, as CSV or Excel: all of them or, where one is wrong, none."""

    table: Positional[Annotated[Path, arg(metavar="TABLE")]]
    """With the columns name and value, or others named by --arm and --value, or with a column for each arm."""
    arm: Column = None
    """The column of the arms' names, of a table with a measurement in each row."""
    value: Annotated[tuple[str, ...], arg(metavar="COLUMN [COLUMN ...]", help_behavior_hint="")] = ()
    """The column of its values; several where a measurement has several dimensions."""
    who: Who = None
    again: Switch = False
    """Record them although the table begins with results that are in the session already."""

    def act(self, session: agents.Session) -> None:
        columns: dict[str, object] = {"arm": self.arm, "value": self.value or None}
        columns |= {name: getattr(self, name) for name in TABLE}
        was_done = session.done
        try:
            count = session.tell_table(self.table, **columns, who=self.who, again=self.again)
        except ValueError as error:  # the names of its arguments are options here
            text = re.sub(r" \(of an instance[^)]*\)+\"?\)?", "", str(error)).replace("wide=True", "--wide")
            raise ValueError(re.sub(r"\b(arm|value|index|n|successes)=(?![\w'])", r"--\1", text)) from error
        of = "" if session.remaining is None else ", which count as part of the budget"
        print(f"{count} results from {self.table}{of}")
        if was_done:
            note("the session was over before: later results are recorded, and do not change the answer")
        print_state(session, owner=not session.wishes.get("blind"))


@dataclass(frozen=True, kw_only=True)
class Show(Action):
    """Show the arms, the answer, and what waits."""

    def act(self, session: agents.Session) -> None:
        task, arms, rows = session.task, session.arms(), []
        mean = f"mean ({session.wishes['unit']})" if "unit" in session.wishes else "mean"
        interval, claims = f"{100 - 100 * arms.attrs['level']:.4g} % interval of all", bool(arms["claim"].all())
        heads = [session.wishes.get("noun", "arm"), "pulls", *([] if task.D > 1 else [mean, interval]), "answer"]
        heads += [*["claim"] * claims, "waits"]
        for row in arms.to_dict("records"):
            seen = row["pulls"] > 0
            cells = []
            if task.D == 1:
                ends = f"{row['low']:.4g} .. {row['high']:.4g}" if row["low"] == row["low"] else "-"
                cells = [f"{row['mean']:.4g}", ends] if seen else ["-", "-"]
            mark = "withdrawn" if row["withdrawn"] else "yes" if row["answer"] else ""
            claim = [str(row["claim"])] * claims
            rows.append([row["name"], str(row["pulls"]), *cells, mark, *claim, str(row["pending"] or "")])
        print("\n\n".join([*session.contradictions, question(session)]), end="\n\n")
        print(table(heads, rows, right=(1, 2)))
        print_comparison(session.comparison()) if session.compares and len(session) else None
        print("waits: how often the arm has been asked for, and no result has been told yet\n" * bool(session.pending))
        print_state(session, first=False)
        if session.delta is not None and len(session) and not session.done and (said := forecast(session)):
            print(said)
        print_certainty(session)


@dataclass(frozen=True, kw_only=True)
class Export(Action):
    """Write the history as CSV."""

    table: Positional[Annotated[Path | None, arg(metavar="CSV", help_behavior_hint="")]] = None
    """The file to write; left out: it is printed."""
    force: Switch = False
    """Overwrite the file."""

    def act(self, session: agents.Session) -> None:
        refuse_to_overwrite([] if self.table is None else [self.table], self.force, "name")
        history = for_spreadsheets(session.history())
        if self.table is None:
            print(history.to_csv(index=False), end="")
        else:
            write_alone(self.table, lambda place: history.to_csv(place, index=False))
            print(f"{len(history)} events in {self.table}")


@dataclass(frozen=True, kw_only=True)
class Undo(Action):
    """Undo a result, or a whole table, as if they had never been; the history keeps a trace."""

    event: Count = None
    """Its number in the history, or the number of a question that waits; left out: the last result."""
    table: Annotated[Path | None, arg(metavar="TABLE", help_behavior_hint="")] = None
    """Undo all results of this table instead, the one of this name that was imported last."""
    batch: Literal["all", "open"] | None = None
    """Undo the whole plate of the event or, without plates, all that was asked for in one call: all questions and
    results, or open questions alone; without --event that of the last question."""

    def act(self, session: agents.Session) -> None:
        if self.table is not None and (self.event is not None or self.batch is not None):
            raise ValueError("undo takes --table alone, without --event and --batch")
        if self.batch is not None:
            print(f"undone: {session.undo_batch(self.event, results=self.batch == 'all')} questions and results")
        elif self.table is None:
            print(f"undone: {undone(session, session.undo(self.event))}")
            if self.event is None and (waits := len(session.pending)) > 1:
                note(f"{waits} questions wait for results: --batch open gives those of the last plate or call back")
        else:
            print(f"undone: {session.undo_table(self.table)} results from {self.table}")
        print_state(session, owner=not session.wishes.get("blind"))


@dataclass(frozen=True, kw_only=True)
class Add(Action):
    """Add an arm."""

    name: Positional[Annotated[str, arg(metavar="NAME")]]

    def act(self, session: agents.Session) -> None:
        arm = session.add_arm(self.name)
        print(f"{session.names[arm]} is one of {len(session.active)} arms")


@dataclass(frozen=True, kw_only=True)
class Withdraw(Action):
    """Withdraw an arm: it is neither asked for nor answered any more."""

    arm: Positional[Annotated[str, arg(metavar="ARM")]]
    """Its name or number."""

    def act(self, session: agents.Session) -> None:
        session.withdraw_arm(self.arm)
        print(f"{len(session.active)} arms are left")


@dataclass(frozen=True, kw_only=True)
class Note(Action):
    """Write a remark into the history."""

    text: Positional[Annotated[str, arg(metavar="TEXT")]]
    who: Who = None

    def act(self, session: agents.Session) -> None:
        session.note(self.text, self.who)


@dataclass(frozen=True, kw_only=True)
class Serve(Action):
    """Show the session as a page in the browser, until interrupted by Ctrl-C."""

    host: Annotated[str, arg(metavar="ADDRESS")] = "127.0.0.1"
    """Address to listen on; 0.0.0.0 lets other machines in, and the page then has a token in its address."""
    port: Annotated[int, arg(metavar="N")] = 8765
    """Port to listen on, up to 65535; 0: any that is free."""
    token: Word = None
    """The token of the address, of 12 letters or more, so that links stay; left out: a fresh one."""

    def act(self, session: agents.Session) -> None:
        serve(session, self.host, self.port, lambda address: print(address, flush=True), self.token)


@dataclass(frozen=True, kw_only=True)
class Session(Command, Generic[Options]):
    """Run a real experiment: ask what to measure next, tell the result; see the page "Real experiments".

    FILE is where the session is kept; --help after an action shows its options.

    Examples:
      bandit-envs session new taste.db --problem TopK --k 2 --arms tea coffee milk juice --range 0 10 --budget 40
      bandit-envs session ask taste.db -n 3
      bandit-envs session tell taste.db coffee 7.5
      bandit-envs session import taste.db last-year.csv
      bandit-envs session show taste.db
      bandit-envs session serve taste.db
      bandit-envs session export taste.db taste.csv
    """

    action: (
        Annotated[New[Options], subcommand("new")]
        | Annotated[Plan[Options], subcommand("plan")]
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
