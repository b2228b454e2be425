"""Plates, controls, raters and codes of sessions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

import agents
from agents.cli import main
from agents.session.design import CODE, CODES, code_of

pytest.importorskip("sqlalchemy")

ARMS = ["water", "A", "B", "C", "D", "E"]
FACTS = {"problem": "Threshold", "threshold": 5.0, "arms": ARMS, "range": (0, 10)}
BEST = {"problem": "BestArm", "arms": ARMS, "range": (0, 10), "delta": 0.1, "epsilon": 1.0}
PLATES = {"plate": 12, "per_plate": 3, "controls": {"water": 2}}


def opened(facts: dict[str, Any], agent: str = "uniform", store: str | Path = ":memory:") -> agents.Session:
    return agents.Session(agent, facts, store=store, public_seed=4)


@pytest.mark.parametrize("agent", ["lsa", "apt", "uniform", "evidence"])
@pytest.mark.parametrize("n", [1, 5, 12, 24])
def test_each_plate_has_its_controls_and_at_most_so_many_of_an_arm(agent: str, n: int) -> None:
    session = opened((FACTS if agent != "evidence" else BEST) | PLATES, agent)
    asked, rng = list[str](), np.random.default_rng(n)
    while len(asked) < 96 and not session.done:
        for question in session.ask(min(n, 96 - len(asked))):
            asked.append(ARMS[question.arm])
            session.tell(question, float(np.clip(rng.normal(question.arm + 2.4, 0.5), 0, 10)))
    assert len(asked) > 60
    for place in range(0, len(asked) - 11, 12):
        plate = Counter(asked[place : place + 12])
        assert 2 <= plate["water"] <= 3
        assert max(plate.values()) <= 3
        assert asked[place + 3] == asked[place + 9] == "water"


def test_plates_do_not_depend_on_how_many_are_asked_for_at_once() -> None:
    """A literal twin: questions one by one, and 24 at once, without results between them."""
    one, all_at_once = opened(FACTS | PLATES, "lsa"), opened(FACTS | PLATES, "lsa")
    assert [int(one.ask()[0]) for _ in range(24)] == list(map(int, all_at_once.ask(24)))


def test_controls_are_spread_over_the_plate() -> None:
    session = opened(FACTS | {"plate": 12, "controls": {"water": 0.25, "A": 1}}, "uniform")
    wells = [ARMS[arm] for arm in session.ask(12)]
    assert [wells[place] for place in (1, 4, 7, 10)] == ["water", "water", "A", "water"]  # (j + .5) * 12 / 4


def test_a_plate_ends_early_where_no_arm_may_be_added_and_an_undone_question_keeps_its_well() -> None:
    session = opened(FACTS | {"arms": ["a", "b"], "plate": 24, "per_plate": 2})
    assert Counter(map(int, session.ask(4))) == {0: 2, 1: 2}
    assert Counter(map(int, session.ask(4))) == {0: 2, 1: 2}  # the next plate
    first = session.ask(3)
    session.undo(first[0].number)
    fourth = session.ask()[0]
    assert Counter([*map(int, first), int(fourth)]) == {0: 2, 1: 2}


def test_the_agent_has_its_way_where_the_rules_allow_it() -> None:
    """Of an agent that wants one arm alone, the plate has that as often as it may, and then what it would want next."""
    free, ruled = opened(BEST, "evidence"), opened(BEST | {"plate": 12, "per_plate": 2}, "evidence")
    for session in (free, ruled):
        for value, arm in enumerate([*range(6)] * 5):
            session.tell(arm, 5.0 + (value % 2) + (arm in (4, 5)) * 2)
    wanted, got = Counter(map(int, free.ask(12))), Counter(map(int, ruled.ask(12)))
    assert {4, 5} >= {arm for arm, _ in wanted.most_common(2)}
    assert got[4] == got[5] == 2
    assert max(got.values()) == 2
    assert sum(got.values()) == 12


def test_raters_measure_each_arm_so_often_and_evenly() -> None:
    raters = ["ann", "bob", "eve"]
    session = opened(FACTS | {"raters": raters, "repeats": 2}, "lsa")
    count = Counter[tuple[int, str]]()
    rng = np.random.default_rng(1)
    for turn in range(36):
        who = raters[turn % 3]
        (question,) = session.ask(who=who)
        count[question.arm, who] += 1
        spread = [max(many) - min(many) for many in ([count[arm, one] for one in raters] for arm in range(6))]
        assert max(spread) <= 1
        session.tell(question, float(rng.uniform(0, 10)), who=who)
    assert set(count.values()) == {2}
    assert len(count) == 18
    assert [session.ask(who=who) for who in raters] == [[], [], []]
    assert not session.done
    session.undo()
    assert session.pending[0].who == "eve"
    assert session.ask(who="eve") == []


def test_results_without_a_question_and_of_another_person_count_for_who_has_measured() -> None:
    session = opened(FACTS | {"arms": ["a", "b"], "raters": ["ann", "bob"]})
    session.tell("a", 3, who="ann")
    assert list(map(int, session.ask(2, who="ann"))) == [1]
    session.tell("b", 3, who="bob")  # in the place of ann
    assert list(map(int, session.ask(2, who="bob"))) == [0]
    assert list(map(int, session.ask(2, who="ann"))) == [1]


def test_the_questions_of_raters_are_not_taken_over() -> None:
    session = opened(FACTS | {"arms": ["a", "b"], "raters": ["ann", "bob"]})
    session.ask(who="ann"), session.ask(2, who="bob")
    assert list(map(int, session.ask(2, who="ann", take_over=1e-9))) == [1]
    assert session.ask(2, who="ann", take_over=1e-9) == []
    assert [ask.who for ask in session.pending] == ["ann", "bob", "bob", "ann"]


def test_the_same_events_lead_to_the_same_questions(tmp_path: Path) -> None:
    facts = BEST | PLATES | {"raters": ["ann", "bob"], "repeats": 6, "blind": True}
    session = opened(facts, "evidence", tmp_path / "a.db")
    for turn in range(20):
        for question in session.ask(2, who=("ann", "bob")[turn % 2]):
            session.tell(question.code, question.arm + turn % 3, who=("ann", "bob")[turn % 2])
    again = agents.Session(store=tmp_path / "a.db")
    assert again.wishes == session.wishes
    assert again.wishes["controls"] == {"water": 2}
    session.history().to_csv(tmp_path / "a.csv", index=False)
    copied = opened(facts, "evidence")
    copied.tell_table(tmp_path / "a.csv")
    assert session.next() == again.next() == copied.next()
    assert again.history()["code"].tolist() == copied.history()["code"].tolist()[: again.version]
    assert again.ask(12, who="ann") == copied.ask(12, who="ann")


def test_codes_differ_and_have_one_form() -> None:
    codes = {code_of(number, 7) for number in range(3 * CODES)}
    assert len(codes) == 3 * CODES
    assert all(CODE.fullmatch(code) for code in codes)
    assert code_of(1, 0) == "P7K"  # 1867 = (11 * 8 + 5) * 20 + 7


def test_a_blind_session_takes_codes(tmp_path: Path) -> None:
    session = opened(FACTS | {"blind": True, "raters": ["ann", "bob"]})
    first, second = session.ask(2, who="ann")
    assert first.code == session.pending[0].code
    assert {first.code, second.code}.isdisjoint(ARMS)
    session.tell(f" {second.code.lower()} ", 7, who="ann")
    with refused("result already"):
        session.tell(second.code, 7, who="ann")
    with refused("row", 2, "result already"):
        session.tell_all([(first.code, 1), (first.code, 1)], who="ann")
    table = tmp_path / "marks.csv"
    table.write_text(f"name,value\n{first.code},3\n")
    assert session.tell_table(table, who="ann") == 1
    assert session.arms()["pulls"].tolist() == [1, 1, 0, 0, 0, 0]
    told = session.history().query("kind == 'told'")
    assert told["code"].tolist() == [second.code, first.code]
    assert told["name"].tolist() == [session.names[second], session.names[first]]
    for name in ("K7Q", "k7q", " k7Q "):
        with refused(name.strip()):
            session.add_arm(name)
    history = tmp_path / "other.csv"
    other = opened(FACTS)
    other.add_arm("k7q")
    other.history().to_csv(history, index=False)
    with refused("k7q", "blind"):
        session.tell_table(history)
    assert session.names == ARMS
    with refused("no arm", "B2B99", "code"):
        session.tell("B2B99", 3)


def test_errors_of_a_blind_session_name_no_arm() -> None:
    session = opened(FACTS | {"blind": True, "arms": ["water", "salt", "sand"]})
    session.withdraw_arm("sand")
    for arm in ("B2B99", "2"):
        with pytest.raises(ValueError, match="code either|withdrawn") as caught:
            session.tell(arm, 3)
        assert not any(name in str(caught.value) for name in session.names)


REFUSED: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "no plate": ({"per_plate": 3}, ("per_plate", "plate")),
    "no wells": ({"plate": 0}, ("plate", 0)),
    "a control that is no arm": ({"plate": 9, "controls": {"salt": 1}}, ("controls", "salt")),
    "only controls": ({"plate": 3, "controls": {"water": 2, "A": 1}}, ("controls", 3)),
    "a share above 1": ({"plate": 3, "controls": {"water": 1.5}}, ("controls", 1.5)),
    "controls without wells": ({"plate": 3, "controls": ["water"]}, ("controls", "water")),
    "a rater twice": ({"raters": ["ann", "ann"]}, ("raters", "ann")),
    "raters in one text": ({"raters": "ann"}, ("raters", "ann")),
    "blind by a word": ({"blind": "yes"}, ("blind", "yes")),
    "an arm as a code": ({"blind": True, "arms": ["A", "K7Q"]}, ("K7Q", "blind")),
    "an arm as a code in lower case": ({"blind": True, "arms": ["A", "k7q"]}, ("k7q", "blind")),
    "a table": ({"items": 4, "raters": ["ann"]}, ("raters", "items")),
}


@pytest.mark.parametrize("title", REFUSED)
def test_a_design_that_cannot_be_is_refused(title: str, tmp_path: Path) -> None:
    facts, words = REFUSED[title]
    with refused(*words):
        opened(FACTS | facts, store=tmp_path / "a.db")
    assert not (tmp_path / "a.db").exists()


def test_who_asks_is_named() -> None:
    session = opened(FACTS | {"raters": ["ann", "bob"]})
    for call in (lambda: session.ask(), lambda: session.ask(who="eve"), lambda: session.run(len, who="eve")):
        with refused("raters", "ann", "bob"):
            call()
    with refused("who", "repeats"):
        opened(FACTS | {"repeats": 2}).ask()
    assert len(session.history()) == 0


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "a.db")
    words = "--problem Threshold --threshold 5 --range 0 10 --arms water A B --plate 6 --per-plate 2 --controls water=1"
    main(["session", "new", store, *words.split(), "--raters", "ann", "bob", "--blind", "--agent", "uniform"])
    capsys.readouterr()
    main(["session", "ask", store, "-n", "2", "--who", "ann"])
    head, *lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert head == ["name", "plate", "well", "value"]
    assert [line[1:] for line in lines] == [["1", "A1", ""], ["1", "A2", ""]]
    codes = [line[0] for line in lines]
    assert all(map(CODE.fullmatch, codes))
    assert len(codes) == 2
    main(["session", "tell", store, codes[1], "7", "--who", "ann"])
    shown = capsys.readouterr()
    assert "answer" not in shown.out
    assert not any(arm in shown.out + shown.err for arm in ("water", " A", " B"))
    main(["session", "ask", store, "-n", "5", "--who", "ann"])
    shown = capsys.readouterr()
    assert codes[0] in shown.err
    assert "water" not in shown.out + shown.err
    main(["session", "undo", store])
    assert codes[1] in capsys.readouterr().out
    assert main(["session", "new", str(tmp_path / "b.db"), *words.split()[:-1], "water"]) == 2
    assert "--controls" in capsys.readouterr().err


def test_the_order_of_blind_questions_does_not_tell_the_arms() -> None:
    """Of 8 calls of `ask` of six arms, none by chance more often than three times in their own order (3e-10)."""
    plain, places = 0, set()
    for seed in range(8):
        session = agents.Session("uniform", {**FACTS, "blind": True}, store=":memory:", public_seed=seed)
        arms = [int(question) for question in session.ask(len(ARMS))]
        assert sorted(arms) == list(range(len(ARMS)))
        plain += arms == sorted(arms)
        places.add(arms.index(0))
    assert plain <= 3
    assert len(places) > 2
