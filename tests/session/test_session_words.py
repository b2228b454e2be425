"""What a session asks, in words: on the page and on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import agents
from agents.cli import main
from agents.session.words import meaning, plural

pytest.importorskip("sqlalchemy")

TWO = {"arms": 5, "sigma": 1, "unit": "mg / l", "noun": "dish"}
SENTENCES: list[tuple[dict[str, Any], str]] = [
    (
        {"problem": "Threshold", "threshold": 50, "tolerance": 5},
        "Which of the 5 dishes have a mean of 50 mg / l or more? Those within 5 mg / l of it may be put on either "
        "side.",
    ),
    (
        {"problem": "Threshold", "threshold": 50, "minimize": True},
        "Which of the 5 dishes have a mean of 50 mg / l or less?",
    ),
    (
        {"problem": "AllGood", "epsilon": 0.5, "slack": 0.25},
        "Which of the 5 dishes are at most 0.5 mg / l worse than the best one? Those up to 0.25 mg / l worse than that "
        "may be put on either side.",
    ),
    (
        {"problem": "AllGood", "epsilon": 0.1, "multiplicative": True},
        "Which of the 5 dishes are at most 10 % worse than the best one?",
    ),
    (
        {"problem": "TopK", "k": 2, "epsilon": 1},
        "Which 2 of the 5 dishes are the best? The mean of those in the answer may be 1 mg / l worse than that of the "
        "best 2.",
    ),
    (
        {"problem": "TopK", "k": 2, "epsilon": 1, "criterion": "each"},
        "Which 2 of the 5 dishes are the best? Those in it may be 1 mg / l worse than the best 2.",
    ),
    ({"problem": "TopK", "k": 2, "epsilon": 1, "criterion": "exact"}, "Which 2 of the 5 dishes are the best?"),
    (
        {"problem": "BestArm", "epsilon": 1, "minimize": True},
        "Which of the 5 dishes is the best? A lower value is better. One that is at most 1 mg / l worse is right, too.",
    ),
    (
        {"problem": "Feasible", "A": [[-2, 0], [1, -3], [0, 1]], "b": [0, 2, 0.5], "tolerance": 0.1},
        "Which of the 5 dishes have, on average, a value 1 of 0 mg / l or more, and 1 x value 1 - 3 x value 2 of 2 "
        "mg / l or less, and a value 2 of 0.5 mg / l or less? Those nearer than 0.1 to a limit may be put on either "
        "side.",
    ),
]


@pytest.mark.parametrize(("facts", "sentence"), SENTENCES)
def test_the_question_in_words(facts: dict[str, Any], sentence: str) -> None:
    with agents.Session("uniform", facts | TWO | {"budget": 50}, store=":memory:") as session:
        assert meaning(session) == sentence
        session.add_arm("one more")
        assert "6 dishes" in meaning(session)


@pytest.mark.parametrize("noun", ["compound compounds", "dish dishes", "essay essays", "study studies", "y ys"])
def test_plurals(noun: str) -> None:
    one, many = noun.split()
    assert plural(one) == many


def test_the_words_of_a_session_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    wishes = ["--title", "Which dye?", "--unit", "mg / l", "--noun", "dye"]
    new = ["session", "new", "a.db", "--problem", "BestArm", "--arms", "a", "b", "--range", "0", "1", "--delta", "0.1"]
    assert main([*new, *wishes]) == 0
    assert main(["session", "tell", "a.db", "a", "0.5"]) == 0
    capsys.readouterr()
    assert main(["session", "show", "a.db"]) == 0
    title, question, _, heads, *_ = capsys.readouterr().out.splitlines()
    assert title == "Which dye?"
    assert question == "Which of the 2 dyes is the best? · measurements from 0 to 1 · delta 0.1"
    assert heads.split()[:6] == ["dye", "pulls", "mean", "(mg", "/", "l)"]
