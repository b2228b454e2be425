"""`bandit-envs session`, and results in CSV files."""

from __future__ import annotations

import csv
import io
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import agents
from agents.cli import main
from agents.cli.session_words import complete
from agents.session import statements
from agents.session.setup import suggested, task_from_facts

pytest.importorskip("sqlalchemy")

COUNTS = ", which count as part of the budget"
NEW = "new a.db --problem Threshold --threshold 0.5 --arms a b c --range 0 1 --budget 12"


DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "session.md").read_text()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(capsys: Any, line: str, code: int = 0) -> tuple[list[str], str]:
    assert main(["session", *shlex.split(line)]) == code, capsys.readouterr()
    out, err = capsys.readouterr()
    return out.splitlines(), err.strip()


def test_an_experiment_on_the_command_line(capsys: Any) -> None:
    out, _ = run(capsys, NEW)
    assert out[0] == "a.db: Threshold with 3 arms, by the agent lsa"
    assert run(capsys, "ask a.db -n 3 --who ann")[0] == ["name\tvalue", "a\t", "b\t", "c\t"]
    assert run(capsys, "tell a.db b 0.25")[0] == ["1 measurement, 11 left; answer: no arm"]
    assert run(capsys, "tell a.db 0 1 --who ann")[0] == ["2 measurements, 10 left; answer: a"]
    Path("old.csv").write_text("who,name,value\nann,b,0.3\nann,c,\nbob,c,0.75\n")
    done = ["2 results from old.csv" + COUNTS, "4 measurements, 8 left; answer: a, c"]
    assert run(capsys, "import a.db old.csv")[0] == done
    out, _ = run(capsys, "show a.db")
    told = "Which of the 3 arms have a mean of 0.5 or more? · measurements from 0 to 1 · budget 12"
    assert out[:2] == [told, ""]
    assert [line.split() for line in out[4:7]] == [
        ["a", "1", "1", "0.002751", "..", "1", "yes"],
        ["b", "2", "0.275", "0.01167", "..", "0.9691"],
        ["c", "1", "0.75", "0.002063", "..", "0.9993", "yes"],
    ]
    assert run(capsys, "undo a.db")[0][0] == "undone: the result 0.75 of c (event 7)"
    assert run(capsys, "show a.db")[0][6].split()[-1] == "1"  # the question waits again
    run(capsys, "note a.db 'a new batch'")
    assert run(capsys, "add a.db d")[0] == ["d is one of 4 arms"]
    assert run(capsys, "withdraw a.db b")[0] == ["3 arms are left"]
    run(capsys, "export a.db a.csv")
    with Path("a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["kind"] for row in rows][-4:] == ["undone", "note", "arm added", "arm withdrawn"]
    assert rows[3]["value"] == "0.25"
    for line, told in (
        ("export a.db a.csv", "is there already"),
        ("tell a.db d 2", "must be a number in [0, 1]"),
        ("tell a.db e 1", "there is no arm 'e'"),
        ("ask b.db", "there is no session b.db"),
        (NEW, "holds this session already"),
        (NEW.replace("12", "13"), "another session: budget is 12 there, 13 asked for. Choose another store"),
        (f"{NEW.replace('0.5', '0.4')} --agent uniform", "agent is 'lsa' there, 'uniform' asked for; threshold is 0.5"),
        ("tell a.db b 0,5", "with a point for decimals as in 8.5, got '0,5'"),
        ("import a.db none.csv", "there is no file none.csv"),
        ("import a.db .", "is a folder"),
        ("undo a.db --event 99", "there is no event 99"),
        (f"undo a.db --event {10**30}", "event must be an integer in [1, 9223372036854775807], got 1000"),
    ):
        assert told in run(capsys, line, 2)[1]


def test_nothing_more_to_ask_for(capsys: Any) -> None:
    run(capsys, NEW.replace("12", "4"))
    assert len(run(capsys, "ask a.db -n 9")[0]) == 1 + 4
    out, err = run(capsys, "ask a.db")
    assert out == []
    lost = "a question whose result never comes is given back: undo FILE --event N, or --batch open"
    assert err == f"note: nothing more to ask for until these have been told: a, b, c, a; {lost}"
    for number, arm in enumerate("abca", 1):
        out, _ = run(capsys, f"tell a.db {arm} 0.75 --question {number}")
    assert out == ["4 measurements, 0 left; answer: a, b, c; it is over"]
    assert run(capsys, "ask a.db")[1] == "note: the session is over; the answer: a, b, c"


def test_what_is_asked_is_a_table_to_fill_in_and_a_lost_one_is_undone_at_once(capsys: Any) -> None:
    run(capsys, NEW)
    asked, _ = run(capsys, "ask a.db -n 3")
    Path("plate.tsv").write_text("\n".join([asked[0], asked[1] + "0.75", asked[2], asked[3] + "1"]) + "\n")
    assert run(capsys, "import a.db plate.tsv")[0][0] == "2 results from plate.tsv" + COUNTS
    assert run(capsys, "undo a.db")[1].startswith("note: 2 questions wait for results: --batch open gives")
    run(capsys, "tell a.db c 1")
    run(capsys, "ask a.db -n 4")
    assert run(capsys, "undo a.db --batch open")[0][0] == "undone: 4 questions and results"
    assert run(capsys, "undo a.db --event 1 --batch open")[0][0] == "undone: 1 questions and results"
    assert run(capsys, "undo a.db --batch all")[0][0] == "undone: 4 questions and results"
    assert "no question to undo" in run(capsys, "undo a.db --batch all", 2)[1]
    assert "undo takes --table alone" in run(capsys, "undo a.db --table plate.tsv --batch all", 2)[1]
    with agents.Session("uniform", {"problem": "BestArm", "arms": 2, "items": 9, "range": (0, 1)}, store="b.db"):
        asked, _ = run(capsys, "ask b.db -n 2")
    assert asked[0] == "name\titem\tvalue"
    Path("cells.tsv").write_text("\n".join([asked[0], asked[1] + "0.75", asked[2] + "1"]) + "\n")
    assert run(capsys, "import b.db cells.tsv")[0][0] == "2 results from cells.tsv"


def test_asking_again_asks_for_more_and_tells_what_waits(capsys: Any) -> None:
    run(capsys, NEW)
    assert run(capsys, "ask a.db -n 2") == (["name\tvalue", "a\t", "b\t"], "")
    out, err = run(capsys, "ask a.db")
    assert out == ["name\tvalue", "c\t"]
    assert err == "note: these were asked for before, and wait for their results too: a, b"
    assert "waits: how often the arm has been asked for" in "\n".join(run(capsys, "show a.db")[0])
    for arm in "abc":
        run(capsys, f"tell a.db {arm} 0.5")
    assert "waits:" not in "\n".join(run(capsys, "show a.db")[0])
    assert run(capsys, "ask a.db")[1] == ""


def test_lines_do_not_name_thousands_of_arms(capsys: Any) -> None:
    run(capsys, "new a.db --problem Threshold --threshold 0.5 --arms 500 --binary")
    Path("all.csv").write_text("name,value\n" + "".join(f"{arm},1\n" for arm in range(500)))
    (_, line), _ = run(capsys, "import a.db all.csv")
    assert line.endswith("38, 39, ... (500)")
    run(capsys, "ask a.db -n 400")
    assert len(run(capsys, "ask a.db")[1]) < 400


def test_a_table_counts_once(capsys: Any) -> None:
    run(capsys, NEW)
    Path("old.csv").write_text("name,value\nb,0.3\nc,0.75\na,0.2\n")
    assert run(capsys, "import a.db old.csv")[0][0] == "3 results from old.csv" + COUNTS
    told = run(capsys, "import a.db old.csv", 2)[1]
    assert "old.csv: its results are in the session already since 2" in told
    assert "from event 1 on, and would count twice" in told
    Path("grown.csv").write_text("arm,value,day\nb,0.3,mon\nc,0.75,mon\na,0.2,mon\na,0.5,tue\n")
    assert "the first 3 of its 4 results are in the session already" in run(capsys, "import a.db grown.csv", 2)[1]
    run(capsys, "tell a.db a 0.5")
    run(capsys, "export a.db own.csv")
    assert "own.csv: its results are in the session already" in run(capsys, "import a.db own.csv", 2)[1]
    Path("other.csv").write_text("name,value\nb,0.3\nc,0.75\n")
    for _ in range(2):  # two results may agree by chance
        assert run(capsys, "import a.db other.csv")[0][0] == "2 results from other.csv" + COUNTS
    with agents.Session(store="a.db") as session:
        history = session.history()
        texts = ["from old.csv"] * 3 + [""] + ["from other.csv"] * 4
        assert history["text"].fillna("").tolist() == texts
        for event in (1, 2, 3):
            session.undo(event)
        assert session.tell_table("old.csv") == 3  # all of it was undone
        with pytest.raises(ValueError, match="are in the session already"):  # not the first, but the last
            session.tell_table("old.csv")
        assert session.tell_table("old.csv", again=True) == 3
        for event in history["event"].tolist()[-2:]:
            session.undo(event)
            with pytest.raises(ValueError, match="undone already"):
                session.undo(event)


def test_a_threshold_must_be_told(capsys: Any) -> None:
    told = run(capsys, "new b.db --problem Threshold --arms x y --range 0 100 --budget 20", 2)[1]
    assert "Threshold needs --threshold" in told
    assert not Path("b.db").exists()


def test_how_sure_the_answer_is_and_that_there_is_less_noise(capsys: Any) -> None:
    run(capsys, "new b.db --problem Threshold --threshold 50 --arms x y --range 0 100 --delta 0.1")
    assert run(capsys, "show b.db")[0][-1] == "nothing can be promised of the answer yet; 90 % was asked for"
    Path("many.csv").write_text("x,y\n" + "10,90\n12,88\n" * 30)
    run(capsys, "import b.db many.csv")
    out, noted = run(capsys, "show b.db")
    assert out[-1] == "the answer is right with a probability of 99.9 % at least; 90 % was asked for"
    assert "vary" not in noted  # the certificate adapts to what they vary
    run(capsys, "new d.db --problem Threshold --threshold 50 --arms x y --range 0 100 --sigma 40 --delta 0.1")
    run(capsys, "import d.db many.csv")
    noted = run(capsys, "show d.db")[1]
    assert "results of one arm vary by about 1.01, and this session counts on 40" in noted
    run(capsys, "new c.db --problem Threshold --threshold 50 --arms x y --sigma 2 --delta 0.1")
    run(capsys, "import c.db many.csv")
    assert "vary by" not in run(capsys, "show c.db")[1]


def test_the_history_is_printed_or_written_where_nothing_is(capsys: Any) -> None:
    run(capsys, NEW)
    run(capsys, "tell a.db b 0.25")
    printed = run(capsys, "export a.db")[0]
    run(capsys, "export a.db a.csv")
    assert Path("a.csv").read_text().splitlines() == printed
    assert printed[1].startswith("1,")
    run(capsys, "tell a.db b 0.5")
    assert "give another name, or --force" in run(capsys, "export a.db a.csv", 2)[1]
    assert len(Path("a.csv").read_text().splitlines()) == 2
    run(capsys, "export a.db a.csv --force")
    assert len(Path("a.csv").read_text().splitlines()) == 3


def test_all_facts_are_asked_for(capsys: Any) -> None:
    typed = iter(["Treshold", "TopK", "2", "x, y, x2", "0 1 2", "0 10", "", "0.1"])  # wrong ones are asked for again
    facts: dict[str, Any] = {}
    complete(facts, lambda question: next(typed))
    ends = {"budget": None, "delta": 0.1}
    assert facts == {"problem": "TopK", "k": 2, "arms": ["x", "y", "x2"], "range": (0.0, 10.0)} | ends
    task, names = task_from_facts(facts)
    assert (task.parameters["k"], task.delta, names) == (2, 0.1, ["x", "y", "x2"])
    assert next(typed, None) is None
    out = capsys.readouterr()
    assert out.err.count("note:") == 2
    assert "BestArm" in out.out


def test_an_input_that_ends_is_one_line(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("A B C\n"))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    names, end = run(capsys, "new a.db --problem BestArm", 2)[1].splitlines()
    assert "two names or more with commas between them" in names
    assert end.startswith("bandit-envs: the input ended at the question 'arms")
    assert not list(Path().iterdir())


def test_arms_from_a_file(capsys: Any) -> None:
    Path("names.txt").write_text("tea\ncoffee\n\nhot milk\n")
    run(capsys, "new t.db --problem BestArm --arms names.txt --sigma 1 --delta 0.1")
    with agents.Session(store="t.db") as session:
        assert session.names == ["tea", "coffee", "hot milk"]
        assert session.agent.name == "evidence"
    assert "a file with a name in each line" in run(capsys, "new u.db --problem BestArm --arms none.txt", 2)[1]


@pytest.mark.parametrize("given", [{"budget": 9}, {"delta": 0.1}, {"budget": 900, "delta": 0.1}, {}])
@pytest.mark.parametrize("problem", ["Threshold", "Feasible", "AllGood", "TopK", "BestArm"])
def test_the_suggested_agents_go_with_the_facts(problem: str, given: dict[str, Any]) -> None:
    own = {"TopK": {"k": 2}, "Feasible": {"A": [[1.0]], "b": [1.0]}}.get(problem, {})
    facts = {"problem": problem, "arms": 4, "range": (0, 10), **own, **given}
    session = agents.Session(suggested(task_from_facts(facts)[0]), facts, store="sqlite://")
    assert len(session.ask(4)) == 4


def test_tables_of_results() -> None:
    def read(text: str, dimensions: int = 1) -> Any:
        Path("x.csv").write_text(text)
        own = {"A": [[1.0, 1.0]], "b": [1.0]} if dimensions == 2 else {}
        facts = {"problem": "Feasible" if own else "BestArm", "arms": ["a", "b"], "sigma": 1.0, "delta": 0.1, **own}
        with agents.Session("uniform", facts, store="sqlite://") as session:
            count = session.tell_table("x.csv")
            names = ["value"] if dimensions == 1 else [f"value_{d}" for d in range(dimensions)]
            told = session.history()
            assert len(told) == count
            return [(row["name"], *(row[name] for name in names)) for row in told.to_dict("records")]

    assert read("name,value\na,1\nb,2.5\n") == [("a", 1.0), ("b", 2.5)]
    assert read("value,arm,note\n1,a,x\n,b,\n") == [("a", 1.0)]
    assert read("event,name,value,undone\n1,a,,False\n2,a,1,True\n3,a,2,False\n") == [("a", 2.0)]
    assert read("a,b\n1,2\n3,\n") == [("a", 1.0), ("b", 2.0), ("a", 3.0)]
    assert read("name,value_0,value_1\na,1,2\n", 2) == [("a", 1.0, 2.0)]
    for text, told in (
        ("", "is empty"),
        ("name,value\na,1\nb,x\n", r"line 3, column 'value': a value is a finite number, or nothing, got 'x'"),
        ("name,value\nc,1\n", r"x.csv, line 2: there is no arm 'c'"),
        ("a,c\n1,2\n", r"line 2, column 'c': there is no arm 'c'"),
        ("a,b\n1,2,3\n", r"line 2: it has 3 cells, the first line has 2"),
        ("a,b\n1,y\n", r"line 2, column 'b': .* got 'y'"),
        ("name,value_0,value_1\na,1,2\n", r"line 2: a measurement must be a number"),
    ):
        with pytest.raises(ValueError, match=told):
            read(text)
    with pytest.raises(ValueError, match="line 2: a measurement must be 2 numbers"):
        read("name,value\na,1\n", 2)


def test_columns_of_a_table_are_named(capsys: Any) -> None:
    run(capsys, NEW.replace("--range 0 1", "--range -1 1"))
    assert run(capsys, "tell a.db b -0.5")[0][0].startswith("1 measurement")
    Path("long.csv").write_text("drink,result,note\na,0.5,good\nb,-1,bad\n")
    Path("wide.csv").write_text("day,a,b\nmonday,0.5,1\ntuesday,0,\n")
    for name in ("long", "wide"):
        err = run(capsys, f"import a.db {name}.csv", 2)[1]
        assert "a measurement in each row needs the columns name and value" in err
        assert "--arm and --value" in err
        assert "--index" in err
        assert "instance" not in err
    assert "must be named by --value, one of" in run(capsys, "import a.db long.csv --arm drink", 2)[1]
    assert run(capsys, "import a.db long.csv --arm drink --value result")[0][0] == "2 results from long.csv" + COUNTS
    assert run(capsys, "import a.db wide.csv --index day")[0][0] == "3 results from wide.csv" + COUNTS
    Path("half.csv").write_text("value,a\n1,0\n")
    assert "by --arm and --value; with a column for each arm, say --wide" in run(capsys, "import a.db half.csv", 2)[1]
    assert "there is no arm 'value'" in run(capsys, "import a.db half.csv --wide", 2)[1]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('name,value\na,"0,5"\na,0.5\n', "got '0,5'; decimals are written with a point"),
        ("a,b\n0,5,1\n", "has 3 cells, the first line has 2; a cell in which the mark between cells occurs stands"),
    ],
)
def test_tables_with_other_separators(text: str, told: str, capsys: Any) -> None:
    run(capsys, NEW)
    Path("x.csv").write_text(text)
    assert told in run(capsys, "import a.db x.csv", 2)[1]


def test_a_wrong_row_leaves_nothing_of_a_table(capsys: Any) -> None:
    run(capsys, NEW)
    Path("old.csv").write_text("name,value\nb,0.3\nc,3\n")
    told = run(capsys, "import a.db old.csv", 2)[1]
    assert "old.csv, line 3: a measurement must be a number in [0, 1], got 3.0" in told
    with agents.Session(store="a.db") as session:
        assert len(session) == 0
        assert np.isnan(session.arms()["mean"]).all()


def test_the_transcript_of_the_first_steps_is_what_is_printed(capsys: Any) -> None:
    assert replayed((DOCS / "start.md").read_text(), capsys) == 5


def replayed(page: str, capsys: Any) -> int:
    """Run the commands of a page, compare what they print, and return how many there are."""
    commands = 0
    for block in re.findall(r"^```console\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        for line in re.split(r"^\$ bandit-envs ", block, flags=re.MULTILINE)[1:]:
            command, _, output = line.partition("\n")
            assert main(shlex.split(command)) == 0
            assert re.sub(r"\t+$", "", capsys.readouterr().out, flags=re.MULTILINE) == output  # with empty cells
            commands += 1
    return commands


def test_the_transcripts_of_the_page_are_what_is_printed(capsys: Any) -> None:
    """The commands themselves are run by test_docs_commands.py too, and the code by test_docs.py."""
    names: dict[str, Any] = {}
    for code in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        exec(code, names)
        said = re.findall(r"^ *print\(.*\)  # ([\[T\d].*)$", code, re.MULTILINE)
        printed = capsys.readouterr().out.splitlines()
        assert [line for line in printed if line in said] == said
    assert replayed(PAGE, capsys) > 10
    names["session"].close()
    names["panel"].close()


STRANGE = """
import agents
from agents.session import statements
import numpy

print("imported")


class Last(agents.Agent):
    name, solves = "last", ("Threshold",)

    def choose(self, observation, state):
        return numpy.full(len(observation["pulls"]), self.task.K - 1)
"""


def test_a_module_that_a_session_names_is_imported_where_it_is_trusted(capsys: Any) -> None:
    Path("strange_agent.py").write_text(STRANGE)
    try:
        run(capsys, NEW + " --agent strange_agent:Last")
        del sys.modules["strange_agent"]
        assert "importing it runs its code" in run(capsys, "ask a.db", 2)[1]
        assert "strange_agent" not in sys.modules
        assert run(capsys, "ask a.db --trust")[0] == ["imported", "name\tvalue", "c\t"]
    finally:
        sys.modules.pop("strange_agent", None)


def test_without_sqlalchemy_the_extra_is_named(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    assert 'pip install ".[session]"' in run(capsys, NEW, 2)[1]


def test_what_contradicts_itself_is_shown_once_and_first(capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = {"problem": "BetterThanControl", "arms": ["A", "B"], "control": "A", "binary": True, "delta": 0.05}
    with agents.Session("uniform", facts, store="a.db") as session:
        for good, bad in (("B", "A"), ("A", "B")):
            for _ in range(20):
                session.tell(good, n=200, successes=100)
                session.tell(bad, n=200, successes=20)
        (said,) = session.contradictions
    looked = list[int]()
    look = statements._contradictions
    monkeypatch.setattr(statements, "_contradictions", lambda state: looked.append(state.upto) or look(state))
    out, err = run(capsys, "show a.db")
    assert (out[0], out.count(said), said in err, len(looked)) == (said, 1, False, 1)
    run(capsys, "note a.db twice")
    assert run(capsys, "tell a.db B 0")[0][0].startswith("B: it is in for certain")
