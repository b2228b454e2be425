"""`bandit-envs session`: real experiments."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Generic, Literal

from tyro.conf import OmitArgPrefixes, Positional, arg, subcommand

import agents
from bandit_envs import PROBLEMS
from bandit_envs.instances import number_in

from ..core.files import write_alone
from ..evaluation.report import table
from ..session.design import WISHES
from ..session.page import serve
from ..session.questions import Ask as Asked
from ..session.setup import FACTS, suggested, task_from_facts
from ..session.tables import for_spreadsheets
from . import session_words as words
from .environment import Options, parameters_of
from .options import Command, Prices, TableOptions, note, noted, prices_in, refuse_to_overwrite
from .signatures import Documented


class Action(Documented, also="Session", named={"file": "store"}):
    """What is done with a session."""

    file: Positional[Annotated[str, arg(metavar="FILE")]]
    trust: bool = False

    def run(self) -> None:
        """Open the session, and do it."""
        with noted(), agents.Session(store=self.file, trust=self.trust) as session:
            self.act(session)

    def act(self, session: agents.Session) -> None:
        """Do it, and print the result."""


class New(Action, Generic[Options], of="task_from_facts", also="Session", without="facts max_pulls"):
    """Begin a session; what is not given is asked for, at a terminal.

    --arms and --items may also be a text file with a name in each line. Left out, --agent goes with the problem.
    """

    arms: Annotated[tuple[str, ...], arg(metavar="N | NAME [NAME ...] | FILE", help_behavior_hint="")] = ()
    items: Annotated[tuple[str, ...], arg(metavar="N | FILE", help_behavior_hint="")] = ()
    range: Annotated[tuple[float, float] | None, arg(metavar="LOW HIGH", help_behavior_hint="")] = None
    cost: Prices = ()
    hint: str | None = None
    judge: str | None = None
    order: Literal["asked", "arrival"] = "asked"
    agent: str | None = None
    controls: Annotated[tuple[str, ...], arg(metavar="NAME=WELLS [NAME=WELLS ...]", help_behavior_hint="")] = ()
    raters: Sequence[str] | None = None
    blocks: Literal["plate", "day", "rater"] | None = None
    sigma: float | Literal["common"] | None = None
    parameters: OmitArgPrefixes[Options] = field(default_factory=dict)  # type: ignore[assignment]
    """Those of the problem."""

    def run(self) -> None:
        facts = self.facts()
        if sys.stdin.isatty():
            words.complete(facts, input)
        if lacking := [name for name in words.TOLD.get(facts.get("problem", ""), ()) if name not in facts]:
            option, sentence = lacking[0], PROBLEMS[facts["problem"]].parameters[lacking[0]]
            raise ValueError(f"{facts['problem']} needs --{option}: {sentence}")
        task, _ = task_from_facts(facts)
        name = self.agent or suggested(task, "blocks" in facts)
        with noted():
            session = agents.Session(name, facts, store=self.file, order=self.order, trust=self.trust)
        if session.version:
            raise ValueError(f"{self.file} holds this session already: bandit-envs session show {self.file}")
        print(f"{self.file}: {task.problem} with {task.K} arms, by the agent {name}")
        print(words.question(session))
        if task.delta is not None and not getattr(session.agent, "stops", False):
            does = "never stops by itself" if task.budget is None else "spends the whole budget"
            note(f"{name} {does}; \"{name}(stop='certificate')\" stops once the answer is certified")
        elif task.delta is None and task.budget is None and task.max_pulls is None:
            note("nothing ends this session by itself: without --delta or --budget, you stop when you like")
        named = [text for text in (task.problem, name) if ":" in text.partition("(")[0]]
        if named:
            note(f"{self.file} names the code of {' and '.join(named)}, which all commands of the session run: --trust")
        if task.delta is not None and not task.items and (said := words.forecast(facts, name, self.file)):
            note(said)
        print(f"what to measure first: bandit-envs session ask {self.file}{' --trust' if named else ''}")

    def facts(self) -> dict[str, Any]:
        """The facts that the options give."""
        own = {name: getattr(self, name) for name in (*FACTS, *WISHES) if hasattr(self, name)}
        own |= {name: getattr(self, name) or None for name in ("binary", "independent", "minimize", "blind", "raters")}
        own |= {"arms": words.arms_of(self.arms), "items": words.arms_of(self.items, "--items")}
        own |= {"cost": prices_in(self.cost), "controls": words.wells_of(self.controls)}
        return parameters_of(self.parameters) | {name: value for name, value in own.items() if value is not None}


class Plan(
    New[Options],
    of="rehearse",
    also="Rehearsal.plot",
    without="facts prior seconds advise progress compiles",
    named={"plot": "path"},
):
    """Say how many measurements a session will take, by playing it many times; nothing is begun.

    FILE is a session: without further facts, how many more measurements it will take. With facts it is a pilot study,
    in which arms go by their names; or a table of its results, .csv or .parquet.
    """

    file: Positional[Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")]] = None  # type: ignore[assignment]
    agents: Sequence[str] | None = None
    low: float | None = None
    """Means are believed to lie between --low and --high."""
    high: float | None = None
    mean: float | None = None
    """Means are believed to lie around this one, by --spread."""
    spread: float | None = None
    noise: float | None = None
    """The standard deviation of results of one arm, as it is believed to be."""
    plot: str | Path | None = None

    def run(self) -> None:
        facts, names = self.facts(), ("low", "high", "mean", "spread", "noise")
        guess = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        how = self.handed("rehearse") | {"agents": list(self.agents or ()) or self.agent, "progress": True}
        if self.file is not None and "://" not in self.file and not Path(self.file).exists():
            raise FileNotFoundError(f"there is no {self.file}: leave FILE out to plan by the facts alone")
        with noted():
            if self.file is not None and not facts:
                with agents.Session(store=self.file, trust=self.trust) as session:
                    found = agents.rehearse(session, prior=guess or None, **how)
            else:
                if guess and self.file is not None:
                    raise ValueError(f"what is believed is said by {self.file} or --{next(iter(guess))}, not by both")
                found = agents.rehearse(facts, prior=guess or self.file, **how)
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


class Ask(Action, of="Session.ask", without="take_over run"):
    """Ask what to measure next, a line for each measurement."""

    n: Annotated[int, arg(aliases=["-n"], metavar="N")] = 1
    map: bool = False
    """Print the map of each plate instead, as CSV; later `session show FILE --plate N` does."""

    def act(self, session: agents.Session) -> None:
        names, before, wells = session.names, session.pending, "plate" in session.wishes
        tabled, D, places = bool(session.task.items), session.task.D, ["plate", "well"] * wells
        if self.map and not wells:
            raise ValueError("--map is of plates: this session was begun without --plate")
        arms, values = session.ask(self.n, self.who), ["value"] if D == 1 else [f"value_{d}" for d in range(D)]
        if arms and not self.map:  # once values stand in its lines, `import` reads this as a table
            print("\t".join(["name", *["item"] * tabled, *places, *values]))
        for arm in () if self.map else arms:
            shown = [arm.code or names[arm], *[arm.item] * tabled, *[getattr(arm, place) for place in places]]
            print("\t".join([*map(str, shown), *[""] * D]))
        for plate in dict.fromkeys(arm.plate for arm in arms if self.map):
            print(for_spreadsheets(session.plate_map(plate or 0)).to_csv())
        if not arms:
            words.tell_why(session)
        elif before:
            note(f"these were asked for before, and wait for their results too: {words.asked(session, before)}")


class Tell(Action, of="Session.tell"):
    """Record a result."""

    arm: Positional[Annotated[str, arg(metavar="ARM")]]
    value: Positional[Annotated[tuple[str, ...], arg(metavar="VALUE", help_behavior_hint="")]] = ()
    question: int | None = None
    """The number of the question in the history, where several about the arm are open."""

    def act(self, session: agents.Session) -> None:
        try:
            value: Any = tuple(map(number_in, self.value)) or None
        except ValueError:
            wanted = f"a number (or True, False), with a point for decimals as in 8.5, got {' '.join(self.value)!r:.80}"
            raise ValueError(f"a measurement is {wanted}") from None
        arm = self.arm if self.question is None else Asked(self.question, session.arm(self.arm), None)
        value = value[0] if value and len(value) == 1 else value
        session.tell(**self.handed("Session.tell") | {"arm": arm, "value": value})
        words.print_state(session, owner=not session.wishes.get("blind"))


class Import(TableOptions, Action, of="Session.tell_table", also="measurements"):
    """Record the results in a file, as CSV or Excel: all of them or, where one is wrong, none."""

    table: Positional[Annotated[Path, arg(metavar="TABLE")]]
    arm: str | None = None
    value: Sequence[str] | None = None

    def act(self, session: agents.Session) -> None:
        was_done = session.done
        try:
            count = session.tell_table(**self.handed("Session.tell_table", "measurements"))
        except ValueError as error:  # the names of its arguments are options here
            text = re.sub(r" \(of an instance[^)]*\)+\"?\)?", "", str(error)).replace("wide=True", "--wide")
            raise ValueError(re.sub(r"\b(arm|value|index|n|successes)=(?![\w'])", r"--\1", text)) from error
        of = "" if session.remaining is None else ", which count as part of the budget"
        print(f"{count} results from {self.table}{of}")
        if was_done:
            note("the session was over before: later results are recorded, and do not change the answer")
        words.print_state(session, owner=not session.wishes.get("blind"))


class Show(Action, also="Session.plot", named={"plot": "path"}):
    """Show the arms, the answer, and what waits."""

    csv: str | Path | None = None
    """A file for the table of all arms, or the map of the plate."""
    plate: int | None = None
    """The number of a plate: its map alone is shown, as CSV."""
    plot: str | Path | None = None
    force: bool = False
    """Overwrite the files."""

    def act(self, session: agents.Session) -> None:
        refuse_to_overwrite([Path(one) for one in (self.csv, self.plot) if one is not None], self.force, "name")
        if self.plot is not None:
            session.plot(self.plot)
        if self.plate is not None or self.csv is not None:
            found = for_spreadsheets(session.results() if self.plate is None else session.plate_map(self.plate))
            text = found.to_csv(index=self.plate is not None)
            if self.csv is not None:
                write_alone(Path(self.csv), lambda place: place.write_text(text, encoding="utf-8"))
            if self.plate is not None:
                print(text, end="")
                return
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
        print("\n\n".join([*session.contradictions, words.question(session)]), end="\n\n")
        print(table(heads, rows, right=(1, 2)))
        words.print_comparison(session.comparison()) if session.compares and len(session) else None
        print("waits: how often the arm has been asked for, and no result has been told yet\n" * bool(session.pending))
        words.print_state(session, first=False)
        goes_on = session.delta is not None and len(session) and not session.done
        if goes_on and (said := words.forecast(session, file=self.file)):
            print(said)
        words.print_certainty(session)


class Export(Action):
    """Write the history as CSV."""

    table: Positional[Annotated[Path | None, arg(metavar="CSV", help_behavior_hint="")]] = None
    """The file to write; left out: it is printed."""
    force: bool = False
    """Overwrite the file."""

    def act(self, session: agents.Session) -> None:
        refuse_to_overwrite([] if self.table is None else [self.table], self.force, "name")
        history = for_spreadsheets(session.history())
        if self.table is None:
            print(history.to_csv(index=False), end="")
        else:
            write_alone(self.table, lambda place: history.to_csv(place, index=False))
            by = history.attrs["pairs"]  # the statistic that the session has begun with
            print(f"{len(history)} events in {self.table}{f'; pairs of arms are certified by the {by}' if by else ''}")


class Undo(Action, of="Session.undo"):
    """Undo a result, or a whole table or plate, as if they had never been; the history keeps a trace."""

    table: Annotated[Path | None, arg(metavar="TABLE", help_behavior_hint="")] = None
    """Undo all results of this table instead, the one of this name that was imported last."""
    batch: Literal["all", "open"] | None = None
    """Undo the whole plate of the event or, without plates, all that was asked for in one call: all questions and
    results, or open questions alone; without --event that of the last question."""

    def act(self, session: agents.Session) -> None:
        if self.table is not None and (self.event, self.batch, self.plate) != (None, None, None):
            raise ValueError("undo takes --table alone, without --event, --batch and --plate")
        if self.batch is not None or self.plate is not None:
            how: dict[str, Any] = {"results": self.batch != "open", "plate": self.plate}
            print(f"undone: {session.undo_batch(self.event, **how)} questions and results")
        elif self.table is None:
            print(f"undone: {words.undone(session, session.undo(self.event))}")
            if self.event is None and (waits := len(session.pending)) > 1:
                note(f"{waits} questions wait for results: --batch open gives those of the last plate or call back")
        else:
            print(f"undone: {session.undo_table(self.table)} results from {self.table}")
        words.print_state(session, owner=not session.wishes.get("blind"))


class Add(Action):
    """Add an arm."""

    name: Positional[Annotated[str, arg(metavar="NAME")]]

    def act(self, session: agents.Session) -> None:
        arm = session.add_arm(self.name)
        print(f"{session.names[arm]} is one of {len(session.active)} arms")


class Withdraw(Action):
    """Withdraw an arm: it is neither asked for nor answered any more."""

    arm: Positional[Annotated[str, arg(metavar="ARM")]]
    """Its name or number."""

    def act(self, session: agents.Session) -> None:
        session.withdraw_arm(self.arm)
        print(f"{len(session.active)} arms are left")


class Note(Action):
    """Write a remark into the history."""

    text: Positional[Annotated[str, arg(metavar="TEXT")]]
    who: str | None = None
    """Who writes it, for the history."""

    def act(self, session: agents.Session) -> None:
        session.note(self.text, self.who)


class Serve(Action, of="serve", without="session tell"):
    """Show the session as a page in the browser, until interrupted by Ctrl-C."""

    def act(self, session: agents.Session) -> None:
        serve(session, self.host, self.port, lambda address: print(address, flush=True), self.token)


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
