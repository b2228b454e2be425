"""Problems: answers, scores and measures worked out by hand, their corners, reductions, and hardness."""

from __future__ import annotations

import inspect
import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandit_envs import AllGood, BestArm, Feasible, Problem, Threshold, TopK
from bandit_envs.instances.lookup import find
from bandit_envs.instances.papers import PROFILES, _synthetic
from bandit_envs.problems import PROBLEMS
from bandit_envs.stopping.boundaries import RHO_AT

NAN = np.nan
NEGATIVE = [-1, -2, -4, -3]
SQUARE = {"A": [[1, 0], [-1, 0], [0, 1], [0, -1]], "b": [1, 0, 1, 0]}  # the unit square


def arms(*indices: int, K: int = 4) -> list[bool]:
    return [k in indices for k in range(K)]


def verdict(problem: Problem, answer: Any, means: Any) -> dict[str, Any]:
    """Correctness, score and metrics of one answer, as plain numbers."""
    found = {"correct": problem.is_correct(answer, means), "score": problem.score(answer, means)}
    return {name: value.item() for name, value in (found | problem.metrics(answer, means)).items()}


# --- right answers, margins, plug-in answers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "means", "answer", "margin"),
    [
        (Threshold(0.5), [0.2, 0.5, 0.75, 0.25], arms(1, 2), [-0.3, 0, 0.25, -0.25]),  # a mean on the threshold is in
        (AllGood(0.25), [0.5, 0.75, 0.25, 0.625], arms(0, 1, 3), [0, 0.25, -0.25, 0.125]),  # boundary .75 - .25
        (AllGood(0.25), [0.5, 0.5, 0.5, 0.5], arms(0, 1, 2, 3), [0.25] * 4),
        (AllGood(0.5, multiplicative=True), [1, 2, 4, 3], arms(1, 2, 3), [-1, 0, 2, 1]),  # boundary (1 - .5) 4
        (AllGood(0.5, multiplicative=True), NEGATIVE, arms(0), [0, -1, -3, -2]),  # min(-.5, -1): never empty
        (TopK(2), [3, 1, 2, 7], arms(0, 3), [1, -2, -1, 5]),  # inside: to the third, 2; outside: to the second, 3
        (TopK(2), [1, 2, 2, 2], arms(1, 2), [-1, 0, 0, 0]),  # ties go to the lowest index
        (TopK(3), [5, 5, 5, 5], arms(0, 1, 2), [0] * 4),
        (BestArm(), [1, 3, 3, 2], arms(1), [-2, 0, 0, -1]),
        # the unit square: distance .25 to x = 1; on a side; 1 to the left; (4, 5) is (3, 4) from the corner (1, 1)
        (Feasible(**SQUARE), [[0.75, 0.5], [0, 0.5], [-1, 0.5], [4, 5]], arms(0, 1), [0.25, 0, -1, -5]),
    ],
)
def test_right_answers_by_hand(problem: Problem, means: Any, answer: list[bool], margin: list[float]) -> None:
    assert problem.right_answer(means).tolist() == answer
    assert problem.plug_in(means).tolist() == answer
    np.testing.assert_allclose(problem.margin(means), margin, atol=1e-15)
    if means != NEGATIVE:  # scored by no measure
        perfect = verdict(problem, answer, means)
        assert (perfect["correct"], perfect["score"]) == (True, 1)


@pytest.mark.parametrize(
    ("problem", "means", "answer"),
    [
        (Threshold(0.5), [NAN, 0.6, 0.4, NAN], arms(1)),
        (Threshold(0.5), [NAN] * 4, arms()),
        (AllGood(0.1), [0.55, NAN, 0.5, 0.3], arms(0, 2)),  # the best of those seen is .55
        (AllGood(0.1), [NAN, -3, NAN, NAN], arms(1)),
        (AllGood(0.1, multiplicative=True), [NAN] * 4, arms()),
        (TopK(2), [NAN, 0.1, NAN, 0.2], arms(1, 3)),
        (TopK(3), [NAN, 0.1, NAN, 0.2], arms(0, 1, 3)),  # arms never pulled rank last, the lowest index first
        (TopK(2), [NAN] * 4, arms(0, 1)),
        (TopK(2), [-np.inf, NAN, NAN, NAN], arms(0, 1)),
        (BestArm(), [NAN, NAN, -5, NAN], arms(2)),
        (Feasible(**SQUARE), [[NAN, NAN], [0.5, 0.5], [0.5, NAN], [2, 2]], arms(1)),
        (Feasible([[1]], [0.5]), [NAN, 0.4, 0.6, 0.5], arms(1, 3)),
    ],
)
def test_plug_in_answers_with_arms_never_pulled(problem: Problem, means: Any, answer: list[bool]) -> None:
    assert problem.plug_in(means).tolist() == answer


# --- scores and measures ----------------------------------------------------------------------------------------------

MEANS = [0.1, 0.4, 0.6, 0.9]
SETS = [  # problem, answer, misclassified, precision, recall, f1, correct; the right answer of Threshold is {2, 3}
    (Threshold(0.5), arms(2, 3), 0, 1, 1, 1),
    (Threshold(0.5), arms(1, 2), 2, 1 / 2, 1 / 2, 1 / 2),  # 1 too many, 3 missing; hits 1 of 2 answered, of 2 right
    (Threshold(0.5), arms(), 2, 1, 0, 0),
    (Threshold(0.5), arms(0, 1, 2, 3), 2, 2 / 4, 1, 4 / 6),  # 2 hits of 4 answered; F1 = 2 hits / (4 + 2)
    (Threshold(0.95), arms(), 0, 1, 1, 1),  # nothing is right, and nothing answered
    (Threshold(0.95), arms(0), 1, 0, 1, 0),
    (AllGood(0.4), arms(2, 3), 0, 1, 1, 1),  # good: at least .9 - .4
    (AllGood(0.4), arms(3), 1, 1, 1 / 2, 2 / 3),
    (AllGood(0.4), arms(0, 3), 2, 1 / 2, 1 / 2, 1 / 2),
    (Feasible([[1]], [0.5]), arms(1, 2), 2, 1 / 2, 1 / 2, 1 / 2),  # right: {0, 1}
]


@pytest.mark.parametrize(("problem", "answer", "wrong", "precision", "recall", "f1"), SETS)
def test_sets_are_scored_by_hand(
    problem: Problem, answer: Any, wrong: int, precision: float, recall: float, f1: float
) -> None:
    measures = {"misclassified": wrong, "precision": precision, "recall": recall, "f1": f1}
    score = f1 if problem.name == "AllGood" else 1 - wrong / 4
    assert verdict(problem, answer, MEANS) == pytest.approx({"correct": wrong == 0, "score": score} | measures)


@pytest.mark.parametrize("kind", ["Threshold", "Feasible"])
def test_tolerance_counts_an_inside_arm_at_it_and_an_outside_arm_beyond_it(kind: str) -> None:
    tolerance, theta = 0.25, 0.5
    line = {"A": [[-1]], "b": [-theta]}  # x >= theta
    problem = Threshold(theta, tolerance) if kind == "Threshold" else Feasible(**line, tolerance=tolerance)
    means = [0.75, 0.625, 0.375, 0.25, 0.125]  # margins .25 (at it), .125, -.125, -.25 (at it), -.375 (beyond)
    right = arms(0, 1, K=5)
    for flipped, counts in zip(range(5), [True, False, False, False, True], strict=True):
        answer = [taken ^ (k == flipped) for k, taken in enumerate(right)]
        found = verdict(problem, answer, means)
        assert (found["misclassified"], found["correct"], found["score"]) == (counts, not counts, 1 - counts / 5)


def test_slack_allows_arms_a_little_worse() -> None:
    problem, means = AllGood(0.25, slack=0.125), [1.0, 0.75, 0.625, 0.5]  # good from .75; may be answered from .625
    assert verdict(problem, arms(0, 1, 2), means)["correct"]
    assert not verdict(problem, arms(0, 1, 2, 3), means)["correct"]
    assert not verdict(problem, arms(0, 2), means)["correct"]  # all good arms are wanted
    assert verdict(problem, arms(0, 1, 2), means)["f1"] == pytest.approx(4 / 5)  # F1 knows no slack: 2 * 2 / (3 + 2)
    share, means = AllGood(0.25, True, 0.25), [8.0, 6.0, 4.0, 3.0]  # in units of 8: good from 6, allowed from 4
    assert verdict(share, arms(0, 1, 2), means)["correct"]
    assert not verdict(share, arms(0, 1, 2, 3), means)["correct"]


# means 1, 2, 4, 8; k = 2: best 4 + 8 = 12, worst 1 + 2 = 3
@pytest.mark.parametrize(
    ("answer", "regret", "normalised", "misidentified", "low"),
    [
        (arms(2, 3), 0, 1, 0, 4),
        (arms(1, 3), (12 - 10) / 2, (10 - 3) / 9, 1, 2),
        (arms(0, 3), (12 - 9) / 2, (9 - 3) / 9, 1, 1),
        (arms(1, 2), (12 - 6) / 2, (6 - 3) / 9, 1, 2),
        (arms(0, 1), (12 - 3) / 2, 0, 2, 1),
    ],
)
def test_top_k_is_scored_by_hand(answer: Any, regret: float, normalised: float, misidentified: int, low: float) -> None:
    means = [1.0, 2.0, 4.0, 8.0]
    measures = {"aggregate_regret": regret, "normalised_sum": normalised, "misidentified": misidentified}
    for criterion, need in (("aggregate", regret), ("each", 4 - low), ("exact", np.inf if misidentified else 0)):
        for epsilon in (0.0, need * (1 - 1e-9), need) if np.isfinite(need) else (0.0,):
            found = verdict(TopK(2, epsilon, criterion), answer, means)
            assert found == pytest.approx({"correct": epsilon >= need, "score": normalised} | measures)


def test_top_k_ties_are_all_right() -> None:
    means = [5.0, 3.0, 3.0, 3.0]
    for other in (1, 2, 3):
        for criterion in ("aggregate", "each", "exact"):
            found = verdict(TopK(2, 0.0, criterion), arms(0, other), means)
            assert (found["correct"], found["score"], found["misidentified"]) == (True, 1, 0)
    assert verdict(TopK(2, 0.0, "exact"), arms(1, 2), means)["misidentified"] == 1
    for answer in itertools.combinations(range(4), 2):  # all equal: every answer is equally good
        found = verdict(TopK(2, 0.0, "exact"), arms(*answer), [0.3] * 4)
        assert (found["correct"], found["score"], found["aggregate_regret"]) == (True, 1, 0)


def test_top_k_the_best_k_have_no_regret_in_whatever_order_they_are_summed() -> None:
    means = [0.1, 0.7, 0.2, 0.30000000000000004, 0.6, 0.3]
    generator = np.random.default_rng(0)
    for _ in range(200):
        order = generator.permutation(6)
        m = np.array(means)[order]
        found = verdict(TopK(3), TopK(3).plug_in(m), m)
        assert (found["aggregate_regret"], found["correct"], found["score"]) == (0, True, 1)


# --- batches and reductions -------------------------------------------------------------------------------------------

ALL: list[tuple[Problem, tuple[int, ...]]] = [
    (Threshold(0.5, 0.1), (6,)),
    (AllGood(0.2, False, 0.1), (6,)),
    (AllGood(0.2, True, 0.1), (6,)),
    (TopK(3, 0.05, "aggregate"), (6,)),
    (TopK(3, 0.05, "each"), (6,)),
    (BestArm(0.0, "exact"), (6,)),
    (Feasible(**SQUARE, tolerance=0.1), (6, 2)),
    (Feasible([[1], [-2]], [0.8, -0.4], normalise=False), (6,)),
]


@pytest.mark.parametrize(("problem", "shape"), ALL)
def test_a_batch_is_its_rows(problem: Problem, shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(2)
    means = generator.random((3, 5, *shape))
    other = means + generator.normal(0, 0.2, means.shape)
    answers = problem.plug_in(other)
    assert answers.shape == problem.margin(means).shape == (3, 5, 6)
    many = {"correct": problem.is_correct(answers, means), "score": problem.score(answers, means)}
    many |= problem.metrics(answers, means)
    assert set(many) == {"correct", "score", *problem.metric_names}
    assert len({bool(x) for x in many["correct"].flat}) == 2
    for i, j in np.ndindex(3, 5):
        assert (answers[i, j] == problem.plug_in(other[i, j])).all()
        one = verdict(problem, answers[i, j], means[i, j])
        assert one == {name: value[i, j].item() for name, value in many.items()}
        assert 0 <= one["score"] <= 1
    shared = problem.score(answers, means[0, 0])  # one truth for all answers
    assert shared.shape == (3, 5)
    assert shared[1, 2] == problem.score(answers[1, 2], means[0, 0])


@given(st.lists(st.integers(0, 8).map(lambda x: x / 8), min_size=2, max_size=6), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_top_k_with_1_is_best_arm(means: list[float], random: Any) -> None:
    chosen = random.randrange(len(means))
    answer = arms(chosen, K=len(means))
    for criterion in ("aggregate", "each", "exact"):
        one, other = TopK(1, 0.125, criterion), BestArm(0.125, criterion)
        assert verdict(one, answer, means) == verdict(other, answer, means)
        assert one.plug_in(means).tolist() == other.plug_in(means).tolist()
        assert other.plug_in(means).argmax() == int(np.argmax(means))
    assert verdict(BestArm(), answer, means)["correct"] == (means[chosen] == max(means))


@given(
    st.lists(st.integers(-8, 8).map(lambda x: x / 8), min_size=2, max_size=6),
    st.integers(-8, 8).map(lambda x: x / 8),
    st.integers(0, 4).map(lambda x: x / 8),
    st.randoms(use_true_random=False),
)
@settings(deadline=None)
def test_feasible_on_a_half_line_is_threshold(means: list[float], theta: float, tolerance: float, random: Any) -> None:
    answer = [random.random() < 0.5 for _ in means]
    line, threshold = Feasible([[-2]], [-2 * theta], tolerance), Threshold(theta, tolerance)  # -2 x <= -2 theta
    np.testing.assert_allclose(line.margin(means), threshold.margin(means), atol=1e-15)
    assert line.plug_in(means).tolist() == threshold.plug_in(means).tolist()
    assert verdict(line, answer, means) == verdict(threshold, answer, means)
    assert line.hardness(means)["H"] == pytest.approx(threshold.hardness(means)["H_tolerance"])


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=6), st.floats(0.01, 0.5), st.booleans())
@settings(deadline=None)
def test_the_plug_in_set_of_all_good_is_never_empty(means: list[float], epsilon: float, multiplicative: bool) -> None:
    answer = AllGood(epsilon, multiplicative).plug_in(means)
    assert answer[int(np.argmax(means))]


# --- how far an arm must move ----------------------------------------------------------------------------------------


def distances(problem: Problem, *means: Any) -> list[list[float]]:
    mean = np.array(means)
    return problem.distances(np.ones(mean.shape[:2], np.int64), mean).tolist()


def test_distances_by_hand() -> None:
    for problem, means, wanted in (
        # The two best are 0 and 2; the best of the others is 4 with .65, the worst of the two .7.
        (TopK(2), [0.9, 0.2, 0.7, 0.4, 0.65], [0.25, -0.5, 0.05, -0.3, -0.05]),
        (TopK(2), [0.65, 0.9, 0.2, 0.7, 0.4], [-0.05, 0.25, -0.5, 0.05, -0.3]),
        # The boundary is .7: plain margins .3, .15, -.2, -.6. The best arm moves it: down by .2 it meets arm 2, up by
        # .15 arm 1. Arm 1 would have to rise by .15 to be the best, and .15 further to push itself out: its own margin
        # is less.
        (AllGood(0.3), [1.0, 0.85, 0.5, 0.1], [0.15, 0.15, -0.2, -0.6]),
        # Arm 1 may be the best: .01 to the top and .05 until the boundary meets arm 2.
        (AllGood(0.3), [1.0, 0.99, 0.75, 0.1], [0.05, 0.06, 0.05, -0.6]),
        # The boundary is .5 of the best mean: a quarter for the best one, as plain margins are for the others.
        (AllGood(0.5, True), [1.0, 0.75, 0.25, 0.0], [0.25, 0.25, -0.25, -0.5]),
    ):
        assert distances(problem, means)[0] == pytest.approx(wanted)


@pytest.mark.parametrize(("problem", "shape"), ALL)
def test_distances_go_with_the_plug_in_answer(problem: Problem, shape: tuple[int, ...]) -> None:
    mean = np.random.default_rng(3).random((40, *shape))
    pulls = np.ones(mean.shape[:2], np.int64)
    pulls[::4, 2] = 0
    found, known = problem.distances(pulls, mean), pulls.all(axis=1)
    assert (found[::4] == 0).all()  # an arm never pulled leaves the answer open
    assert ((found >= 0) == problem.plug_in(mean))[known].all()
    good = isinstance(problem, AllGood)
    by = AllGood(problem.epsilon + problem.slack / 2, problem.multiplicative) if good else problem
    assert (np.abs(found) <= np.abs(by.margin(mean)) + 1e-12)[known].all()
    kept = np.full(pulls.shape, 7.0)
    assert problem.distances(pulls, mean, kept) is kept
    assert (kept == found).all()


@pytest.mark.parametrize(
    "problem", [TopK(2), TopK(3), BestArm(), AllGood(0.2), AllGood(0.4, True), Threshold(0.4)], ids=repr
)
def test_the_answer_changes_no_sooner_than_a_mean_moves_by_its_distance(problem: Problem) -> None:
    """Each arm of 60 instances is moved by a bit less than its distance, either way, and by a bit more."""
    generator = np.random.default_rng(4)
    for means in generator.random((60, 6)) + 0.5:
        (found,) = distances(problem, means)
        before = problem.plug_in(means)
        for i, distance in enumerate(found):
            changed = []
            for step in (0.999 * distance, -0.999 * distance, 1.001 * distance, -1.001 * distance):
                moved = means.copy()
                moved[i] += step
                changed.append(bool((problem.plug_in(moved) != before).any()))
            assert changed[:2] == [False, False]
            assert any(changed[2:]) or isinstance(problem, AllGood)  # whose distances are safe, not exact


# --- what a problem tells of itself -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("problem", "shape"), ALL)
def test_what_it_declares_is_so(problem: Problem, shape: tuple[int, ...]) -> None:
    means = np.random.default_rng(5).random((50, *shape))
    verdicts = problem.verdict(problem.plug_in(means[::-1]), problem.truth(means))
    assert all(verdicts[name].dtype == kind for name, kind in problem.metric_types.items())
    assert problem.answer_size is None or set(problem.plug_in(means).sum(axis=1)) == {problem.answer_size}
    assert problem.boundary is None or (problem.plug_in(means) == (means >= problem.boundary)).all()
    assert not problem.scores_arms or (verdicts["score"] == 1 - verdicts["misclassified"] / shape[0]).all()
    if problem.local:
        alone = [problem.arm_margin(means[:, k]) for k in range(shape[0])]
        assert (np.stack(alone, axis=1) == problem.margin(means)).all()
    else:
        other = means.copy()
        other[:, 1:] += 0.3
        assert (problem.margin(other)[:, 0] != problem.margin(means)[:, 0]).any()


NAMES = "|".join(PROBLEMS)
KNOWLEDGE = (  # what compares the name of a problem, asks for its class, or guesses at its attributes
    rf"[=!]=\s*[\"']({NAMES})[\"']",
    rf"[\"']({NAMES})[\"']\s*[=!]=",
    rf"\bin\s*[(\[{{]\s*[\"']({NAMES})[\"']",
    rf"isinstance\(.*\b({NAMES})\b",
    r"(get|has)attr\((self\.|envs\.|task\.)*(problem|question)\b",
    r"\b(task|problem)\.parameters\.get\(",
)


@pytest.mark.parametrize("kind", [Threshold, AllGood, TopK, BestArm, Feasible], ids=lambda kind: kind.name)
def test_defaults(kind: Any) -> None:
    """Those of a certificate, which are another certificate if they change, and of an environment."""
    assert kind.defaults["budget"] == 200
    words = {"D": 1, "distribution": None, "sigma": None, "boundary": "mixture", "rho": None, "centre": 0.0}
    words |= {"search": "pairs", "dependent": None}
    taken = inspect.signature(kind.certifier).parameters
    assert {word: taken[word].default for word in words} == words
    D = len(kind.defaults["A"][0]) if kind is Feasible else 1
    problem = kind(kind.defaults["A"], kind.defaults["b"]) if kind is Feasible else kind()
    assert problem.certifier(5, D, rho=1e-3).numbers[RHO_AT] == 1e-3
    told = problem.certifier(5, D, distribution="gaussian", sigma=1.0, dependent=False)
    np.testing.assert_array_equal(problem.certifier(5, D).numbers, told.numbers)


def test_whose_score_is_the_share_of_arms_that_are_classified_correctly() -> None:
    assert [name for name in PROBLEMS if PROBLEMS[name].scores_arms] == ["Threshold", "Feasible", "BetterThanControl"]


def test_nobody_else_knows_a_problem_by_its_name() -> None:
    root = Path(__file__).parents[2]
    found = [
        f"{path.name}: {line.strip()}"
        for path in (*root.glob("bandit_envs/**/*.py"), *root.glob("agents/**/*.py"))
        if path.parent.name not in ("problems", "figures") and path.name != "papers.py"
        for line in path.read_text().splitlines()
        if any(re.search(pattern, line) for pattern in KNOWLEDGE)
    ]
    assert found == []


def test_such_knowledge_is_found() -> None:
    for line in (
        'if task.problem == "Threshold":',
        "exact = 'TopK' != name",
        'if problem in ("Feasible", "Threshold"):',
        "isinstance(self.problem, (TopK, BestArm))",
        'getattr(self.problem, "k", None)',
        'task.parameters.get("k", 1)',
    ):
        assert any(re.search(pattern, line) for pattern in KNOWLEDGE), line


# --- hardness ---------------------------------------------------------------------------------------------------------


def test_hardness_of_the_instances_of_tao_2019() -> None:
    """Sums of gap^-2. Set-up 1: 2 (.3^-2 + .25^-2 + .2^-2 + .15^-2 + .05^-2) = 2 (11.11 + 16 + 25 + 44.44 + 400)."""
    hard = {name: Threshold(0.5).hardness(find(f"tao2019-{name}").arms.means)["H"] for name in (1, 2, 3)}
    assert hard[1] == pytest.approx(993.1111, abs=5e-5)
    # set-up 2: means .405 + .01 i, i = 0 .. 19: gaps .095, .085, ... .005 on either side
    assert hard[2] == pytest.approx(2 * sum((0.005 + 0.01 * i) ** -2 for i in range(10)))
    assert hard[3] == pytest.approx(5 * 0.05**-2 + 5 * 0.005**-2)  # 202 000


@pytest.mark.parametrize(
    ("name", "t", "Psi", "H_t_epsilon", "H_epsilon"),
    [
        ("chen2017-uniform(K=100)", 31, 0.032, 112972.95, 379272.01),
        ("chen2017-uniform(K=500)", 70, 0.071, 52144.58, None),
        ("chen2017-two-group(K=100)", 2, 0.4, 6250, 6250),
        ("chen2017-two-group(K=500)", 12, 0.4, 6250, 6250),
    ],
)
def test_hardness_of_chen_et_al(name: str, t: int, Psi: float, H_t_epsilon: float, H_epsilon: float | None) -> None:
    instance = find(name)
    given = {key: value for key, value in instance.defaults["TopK"].items() if key in TopK.parameters}  # type: ignore[union-attr]
    found = TopK(**given).hardness(instance.arms.means)
    assert (found["t"], found["Psi"]) == (t, pytest.approx(Psi))
    assert found["H_t_epsilon"] == pytest.approx(H_t_epsilon, abs=0.01)
    assert H_epsilon is None or found["H_epsilon"] == pytest.approx(H_epsilon, abs=0.01)


@given(st.lists(st.integers(0, 64).map(lambda x: x / 64), min_size=3, max_size=9), st.integers(0, 16), st.data())
@settings(deadline=None)
def test_hardness_of_top_k_by_its_definition(means: list[float], eighth: int, data: Any) -> None:
    """Chen et al. 2017, (2) to (6), as printed, with arms counted from 1."""
    n, epsilon = len(means), eighth / 128
    K = data.draw(st.integers(1, n - 1))
    theta = [np.inf, *sorted(means, reverse=True)]
    gap = [0.0] + [theta[i] - theta[K + 1] if i <= K else theta[K] - theta[i] for i in range(1, n + 1)]
    t = max(t for t in range(min(K, n - K)) if gap[K - t] * t <= K * epsilon and gap[K + t + 1] * t <= K * epsilon)
    Psi = min(gap[K - t], gap[K + t + 1])
    found = TopK(K, epsilon).hardness(means)
    assert (found["t"], found["Psi"]) == (t, Psi)
    for name, least in (("H", 0.0), ("H_epsilon", epsilon), ("H_t_epsilon", max(epsilon, Psi))):
        terms = [min(1 / g**2 if g else np.inf, 1 / least**2 if least else np.inf) for g in gap[1:]]
        assert found[name] == pytest.approx(sum(terms), rel=1e-12)


def test_instances_of_chen_et_al() -> None:
    """R14.10: p = 1 is uniform; a quarter of the way to the boundary 1 - 2/8 by hand; p = 6 is closest to it."""
    names = ("uniform", "synthetic-0.5", "synthetic-6")
    uniform, half, six = (find(f"chen2017-{name}(n=8, K=2)").arms.means for name in names)
    assert uniform.tolist() == [7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8, 0]
    assert six[[0, 1, 7]] == pytest.approx([3 / 4 + 1 / 4 / 64, 3 / 4, 0])
    assert six[4] == pytest.approx(3 / 4 * (1 - 1 / 64))  # the third of six arms
    assert half[[0, 4]] == pytest.approx([3 / 4 + 1 / 4 / 2**0.5, 3 / 4 * (1 - 2**-0.5)])
    for name, K in itertools.product(("two-group", *names), (100, 250, 500)):
        instance: Any = find(f"chen2017-{name}(K={K})")
        assert instance.K == 1000
        assert (np.diff(instance.arms.means) <= 0).all()
        assert TopK(K).right_answer(instance.arms.means)[:K].all()
        top = {"k": K, "epsilon": 0.01, "criterion": "aggregate", "delta": 0.01, "shuffle_arms": True}
        rest = {"BestArm": {"shuffle_arms": True}, "": {"shuffle_arms": False}}
        assert instance.defaults == {"TopK": top, **rest}
    assert find("chen2017-two-group").arms.means[[99, 100]].tolist() == [0.7, 0.3]


def test_instances_of_kalyanakrishnan_and_stone() -> None:
    names = ("kalyanakrishnan2010", "kalyanakrishnan2010-small", "kalyanakrishnan2010-gaussian")
    for name, n, k, epsilon in zip(names, (50, 10, 50), (15, 3, 15), (0.1, 0.0, 0.0), strict=True):
        instance = find(name)
        means = instance.arms.means
        assert n == instance.K
        assert instance.arms.variances == pytest.approx(np.ones(n))
        assert instance.defaults["TopK"] == {"k": k, "epsilon": epsilon, "criterion": "each", "delta": 0.15}  # type: ignore[union-attr]
        assert (means == find(f"{name}(seed=0)").arms.means).all()  # drawn once
        assert (means != find(f"{name}(seed=1)").arms.means).all()
    wide = find("kalyanakrishnan2010(seed=3, n=100, sd=2)")
    assert (wide.name, wide.defaults["TopK"]["k"]) == ("kalyanakrishnan2010(seed=3, n=100, sd=2)", 30)
    assert np.array_equal(wide.arms.means[:50], find("kalyanakrishnan2010(seed=3)").arms.means)
    np.testing.assert_allclose(wide.arms.variances, 4.0, rtol=1e-12)
    even = PROFILES["uniform"](100, 30)  # "SYNTHETIC-1 is identical to UNIFORM"
    assert np.abs(_synthetic(1)(100, 30) - even).max() < 1e-15
    many = np.concatenate([find(f"kalyanakrishnan2010(seed={seed})").arms.means for seed in range(40)])
    assert (many.min() >= 0) & (many.max() < 1)
    assert abs(many.mean() - 0.5) < 5 * (12 * len(many)) ** -0.5
    assert abs(many.var() - 1 / 12) < 5 * (180 * len(many)) ** -0.5  # the variance of (u - 1/2)^2 is 1 / 180


def test_hardness_by_hand() -> None:
    assert Threshold(0.5, 0.25).hardness([0.75, 0.25])["H_tolerance"] == 2 * 0.5**-2
    assert Threshold(0.5).hardness([0.5, 0.6])["H"] == np.inf
    assert Threshold(0.5).hardness([0.5 + 1e-12, 0.6])["H"] > 1e23
    found = TopK(1, 0.5).hardness([2.0, 1.75, 1.0])  # gaps 1/4 (to the second), 1/4, 1; raised to 1/2: 1/2, 1/2, 1
    assert found == {"H": 16 + 16 + 1, "H_epsilon": 4 + 4 + 1, "H_t_epsilon": 4 + 4 + 1, "t": 0, "Psi": 0.25}
    # three-eighths may be lost: gaps 1/4, 1/4, 1/8 | 1/8, 3/8, 5/8. t = 1: arms 2 and 5, max(1/4, 3/8) <= 3/8;
    # t = 2: arms 1 and 6, 2 max(1/4, 5/8) > 3/8; gaps raised to min(1/4, 3/8)
    found = TopK(3, 0.125).hardness([0.5, 0.0, 0.25, 0.75, 0.625, 0.75])  # 3/4, 3/4, 5/8 | 1/2, 1/4, 0
    assert (found["t"], found["Psi"]) == (1, 0.25)
    assert found["H_t_epsilon"] == pytest.approx(4 * 16 + 64 / 9 + 64 / 25, rel=1e-15)
    found = AllGood(0.25).hardness([1.0, 0.875, 0.5, 0.0])  # margins 1/4, 1/8, -1/4, -3/4 from the boundary .75
    # H: the larger of margin^-2 and (1 + alpha - mean)^-2: 16 or 64, 64 or 16, 16 or 2.56, 1.78 or 0.79
    assert found == pytest.approx(
        {
            "good": 2,
            "alpha": 0.125,
            "beta": 0.25,
            "H": 64 + 64 + 16 + 16 / 9,
            "H_st2": 64 + 64 + 16 + 16 / 9,
            "H_moderate": 16 + 64 / 9 + 16 / 9 + 16 / 25,  # 1 + beta - mean: 1/4, 3/8, 3/4, 5/4
            "H_fareast": 4 * (16 + 16 / 9),  # four arms, of which those with margins -1/4 and -3/4 are bad
        }
    )
    assert AllGood(0.25).hardness([1.0, 0.75])["good"] == 2  # on the boundary
    assert AllGood(0.25).hardness([1.0, 1.0])["H_moderate"] == 0  # no bad arm
    assert AllGood(0.25).hardness([1.0, 1.0])["H_fareast"] == 0
    assert AllGood(0.25).hardness([1.0, 1.0])["beta"] == np.inf
    found = Feasible([[-1]], [-0.5]).hardness([0.75, 1.5, 0.0])  # gaps .25, .5, 1: max of 1 * 16, 2 * 4, 3 * 1
    assert found.pop("margins").tolist() == [0.25, 1.0, 0.5]
    assert found == {"H": 16 + 4 + 1, "H_2": 16}
    found = Feasible([[-1]], [-0.5], 0.25).hardness([0.75, 1.5, 0.0])  # the tolerance added: .5, 1.25, .75
    assert found["margins"].tolist() == [0.5, 1.25, 0.75]
    assert found["H"] == pytest.approx(4 + 0.64 + 16 / 9)


def test_bound_of_fareast_by_hand() -> None:
    """Theorem 4.2 on means 1, 7/8, 1/2, 0 with epsilon 1/4, and how it grows on the instance of Figure 3."""
    problem, means = AllGood(0.25), [1.0, 0.875, 0.5, 0.0]
    first, second = 144 + 16 / 9, 64 + 64 / 9  # H and H_fareast, above; ln(4 / .1) = 3.688879
    assert problem.fareast_bound(means, 0.1) == pytest.approx(first * 3.6888795 + second, rel=1e-7)
    assert problem.fareast_bound(means, 0.1, c3=2, c4=3) == pytest.approx(2 * first * 3.6888795 + 3 * second, rel=1e-7)
    # n - 1 arms at 1, one at 0, epsilon .99: beta = .01, so that the second term is n / .0001
    few, many = ([1.0] * (n - 1) + [0.0] for n in (20, 200))
    wide = AllGood(0.99)
    assert [round(wide.hardness(line)["H_fareast"]) for line in (few, many)] == [200_000, 2_000_000]
    assert wide.fareast_bound(many, 0.01) - wide.fareast_bound(few, 0.01) > 1_800_000


# --- forms and bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("problem", "shape"), ALL)
def test_settings_are_the_problem(problem: Problem, shape: tuple[int, ...]) -> None:
    again = PROBLEMS[problem.name](**json.loads(json.dumps(problem.settings)))
    assert again == problem
    assert repr(again) == repr(problem)
    assert again != Threshold(0.123)
    means = np.random.default_rng(0).random(shape)
    assert (again.margin(means) == problem.margin(means)).all()
