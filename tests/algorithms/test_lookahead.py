"""Beliefs and the look-ahead potential: against a slow twin, adaptive integration, and the scores of episodes."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused
from scipy import special
from twins_lookahead import Slow, ndtr, place_and_worth, right

from bandit_envs import Task, Threshold
from bandit_envs.problems.lookahead import Lookahead

BERNOULLI = {"distribution": "bernoulli", "support": (0.0, 1.0), "sigma": 0.5}
RANGE = {"distribution": "uniform", "support": (-1.0, 3.0), "sigma": 2.0}
GAUSSIAN = {"distribution": "gaussian", "support": None, "sigma": 0.7}
ASKED = {
    "threshold": ("Threshold", {"threshold": 0.4}, 1),
    "threshold, tolerance": ("Threshold", {"threshold": 0.5, "tolerance": 0.1}, 1),
    "top": ("TopK", {"k": 3}, 1),
    "best": ("BestArm", {}, 1),
    "good": ("AllGood", {"epsilon": 0.15}, 1),
    "good, multiplicative": ("AllGood", {"epsilon": 0.2, "multiplicative": True}, 1),
    "control": ("BetterThanControl", {"margin": 0.05}, 1),
    "control, tolerance": ("BetterThanControl", {"control": 2, "margin": -0.1, "tolerance": 0.1}, 1),
    "control, lift": ("BetterThanControl", {"lift": 0.2}, 1),
    "feasible": ("Feasible", {"A": [[1, 1], [-2, 1]], "b": [1, 0.3]}, 2),
    "feasible, D = 3": ("Feasible", {"A": [[1, 1, 0], [0, -1, 1]], "b": [1, 0.2037], "tolerance": 0.05}, 3),
}
BELIEFS = {"bernoulli": BERNOULLI, "range": RANGE, "gaussian": GAUSSIAN}
every = pytest.mark.parametrize("belief", BELIEFS)
all_asked = pytest.mark.parametrize("asked", ASKED)
K, BUDGET = 5, 60


def task_of(asked: str, belief: str, K: int = K, budget: int = BUDGET) -> Task:
    problem, parameters, D = ASKED[asked]
    facts = BELIEFS[belief]
    if "lift" in parameters and belief == "range":  # a lift needs samples >= 0
        facts = RANGE | {"support": (0.0, 4.0)}
    return Task(problem, parameters, K=K, D=D, budget=budget, **facts)


def states(task: Task, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pulls (count, K) from none to all, a twentieth of them one before the end, and sums of samples."""
    spent = rng.integers(0, task.budget, count)
    spent[::20] = task.budget - 1
    pulls = np.array([rng.multinomial(t, rng.dirichlet(np.ones(task.K))) for t in spent])
    shape = (count, task.K) if task.D == 1 else (count, task.K, task.D)
    each = pulls if task.D == 1 else np.broadcast_to(pulls[..., None], shape)
    mean = rng.random(shape)
    if task.distribution == "bernoulli":
        return pulls, rng.binomial(each, mean).astype(float)
    if task.support is not None:
        low, high = task.support
        return pulls, each * (low + (high - low) * rng.beta(1 + each * mean, 1 + each * (1 - mean)))
    return pulls, each * mean + np.sqrt(each) * task.sigma * rng.standard_normal(shape)


@every
@all_asked
@pytest.mark.parametrize("count", [4, 20])
def test_values_and_gains_are_those_of_the_slow_twin(asked: str, belief: str, count: int) -> None:
    task, rng = task_of(asked, belief), np.random.default_rng(1)
    pulls, total = states(task, count, rng)
    look, arms = task.lookahead(), rng.integers(0, K, count)
    gain = np.empty(count)
    look.gain(pulls, total, arms, np.zeros(count, np.uint8), gain)
    every = look.gains(pulls, total)
    np.testing.assert_allclose(every[np.arange(count), arms], gain, rtol=0, atol=1e-13)
    now, then = look.value(pulls, total, np.zeros(count)), look.value(pulls, total)
    for e in range(count):
        slow = Slow(task, pulls[e], total[e])
        wanted = slow.phi(0.0), slow.phi(slow.left), slow.gain(arms[e])
        np.testing.assert_allclose((now[e], then[e], gain[e]), wanted, rtol=0, atol=1e-9, err_msg=f"state {e}")


@every
@all_asked
def test_values_and_gains_are_the_integrals(asked: str, belief: str) -> None:
    task, rng = task_of(asked, belief, K=4, budget=40), np.random.default_rng(2)
    pulls, total = states(task, 1 if belief == "gaussian" else 2, rng)
    look = task.lookahead()
    then, gains = look.value(pulls, total), look.gains(pulls, total)
    # Of all good arms, 25 cells of normal distributions; of a range these stand for Beta distributions.
    limit = {"range": 3e-2, "gaussian": 1e-3}.get(belief, 1e-4) if asked.startswith("good") else 1e-4
    for e in range(len(pulls)):
        slow = Slow(task, pulls[e], total[e], exactly=True)
        assert abs(then[e] - slow.phi(slow.left)) < limit, (e, then[e], slow.phi(slow.left))
        if task.D == 1 or task.D == 2 and belief != "gaussian":  # else the sample counts along the row
            assert abs(gains[e, 0] - slow.gain(0)) < limit, (e, gains[e, 0], slow.gain(0))


def differences(look: Lookahead, episodes: int, threshold: float = 0.5, T: int = 12) -> np.ndarray:
    """Sum of the gains less (score - phi of the first state), (episodes,), of 3 Bernoulli arms with uniform means.

    Every other pull goes to the arm with the largest gain, which depends on all samples so far.
    """
    rng, rows = np.random.default_rng(3), np.arange(episodes)
    means = rng.random((episodes, 3))
    pulls, total = np.zeros((episodes, 3), np.int64), np.zeros((episodes, 3))
    found = look.value(pulls, total)
    for t in range(T):
        gains = look.gains(pulls, total)
        arms = gains.argmax(1) if t % 2 else rng.integers(0, 3, episodes)
        found += gains[rows, arms]
        total[rows, arms] += rng.random(episodes) < means[rows, arms]
        pulls[rows, arms] += 1
    problem, seen = Threshold(threshold), np.where(pulls > 0, total / np.maximum(pulls, 1), np.nan)
    return found - problem.score(problem.plug_in(seen), means)


def standard_errors(x: np.ndarray) -> float:
    return float(abs(x.mean()) / (x.std() / np.sqrt(len(x))))


LIMIT = 5.0  # standard errors: a false alarm has probability 6e-7


@pytest.mark.parametrize("episodes", [5_000, 50_000])
def test_gains_of_an_episode_sum_to_its_score_in_the_mean(episodes: int) -> None:
    """And a last value that is not exact breaks the limit."""
    task = Task("Threshold", {"threshold": 0.5}, K=3, budget=12)
    rough = Lookahead(task, task.make_problem().potential()._replace(exact=False))
    right, wrong = (standard_errors(differences(look, episodes)) for look in (task.lookahead(), rough))
    assert right < LIMIT < wrong


def test_the_normaliser_is_the_expected_range_of_the_score() -> None:
    """Of 4,000 draws, within 5 standard errors; the best k arms have score 1, the worst 0."""
    rng = np.random.default_rng(4)
    for belief, draw in (
        ("range", lambda n: rng.uniform(-1, 3, n)),
        ("gaussian", lambda n: 0.7 * rng.standard_normal(n)),  # sigma is the unit, whatever the arms' own spread
    ):
        task = task_of("top", belief, K=9)
        means = np.sort(draw((4000, 9)), axis=1)
        gap = means[:, -3:].mean(1) - means[:, :3].mean(1)
        pulls = np.zeros((1, 9), np.int64)
        pulls[0, :3] = 10**9  # three arms with the mean m and the rest far below: the mean of the best is m
        values = [task.lookahead().value(pulls, pulls * m, np.zeros(1))[0] for m in (2.0, 1.0)]
        assert abs(1 / (values[0] - values[1]) - gap.mean()) < 5 * gap.std() / np.sqrt(4000)


def test_by_hand() -> None:
    """Two arms, threshold 1/2, one pull left: no sample of a fresh arm is lost, and one of a sure arm is worth less."""
    task = Task("Threshold", {"threshold": 0.5}, K=2, budget=1)
    look = task.lookahead()
    none = np.zeros((1, 2), np.int64)
    assert look.value(none, none + 0.0, np.zeros(1))[0] == pytest.approx(0.5)
    # After one sample of a uniform mean, Beta(2, 1): P(mean >= 1/2) = 3/4.
    after = look.gains(none, none + 0.0) + look.value(none, none + 0.0)
    np.testing.assert_allclose(after, (0.75 + 0.5) / 2, atol=1e-8)


def test_all_good_arms_by_hand() -> None:
    """Two fresh arms, epsilon 1/2: P(good) = 7/8, and half of all variance is each arm's, whatever is the best."""
    task = Task("AllGood", {"epsilon": 0.5}, K=2, budget=4)
    look, none, z = task.lookahead(), np.zeros((1, 2), np.int64), special.ndtri(7 / 8)
    wrong = 2 * special.owens_t(z, np.sqrt(4 / 3))  # R = 3/2, of which 3/7 is resolved
    assert look.value(none, none + 0.0, np.array([1.5]))[0] == pytest.approx(1 - 2 * wrong / 3.5, abs=2e-5)
    slope = np.exp(-(z**2)) / np.pi * 2 / 4**2  # of G half a pull later, share 1/2, times that of R / (R + 2)
    after = look.gains(none, none + 0.0) + look.value(none, none + 0.0)
    np.testing.assert_allclose(after, 1 - 2 * wrong / 3.5 + slope / 3.5, atol=2e-5)
    # All is known, at the end: both are good, and the F1 of an answer is 1.
    pulls = np.array([[500, 500]])
    assert look.value(pulls, pulls * 0.5, np.zeros(1))[0] == pytest.approx(1, abs=1e-6)


@every
@pytest.mark.parametrize("asked", ["good", "good, multiplicative"])
def test_no_pull_takes_from_all_good_arms(asked: str, belief: str) -> None:
    """But for what all pulls have in common: the best arm's moves the boundary; two arms alike gain alike."""
    task, rng = task_of(asked, belief), np.random.default_rng(5)
    pulls, total = states(task, 60, rng)
    pulls[:, 1], total[:, 1] = pulls[:, 0], total[:, 0]
    look, short = task.lookahead(), pulls.sum(1) < task.budget - 1
    left = (task.budget - pulls.sum(1) - 1.0)[short] / K
    common = look.value(pulls[short], total[short], left) - look.value(pulls, total)[short]
    gains = look.gains(pulls, total)[short] - common[:, None]
    assert short.sum() > 30
    assert gains.min() > -1e-12
    np.testing.assert_allclose(gains[:, 0], gains[:, 1], rtol=0, atol=1e-12)
    star = (total / np.maximum(pulls, 1) + np.where(pulls > 0, 0, -9))[short].argmax(1)
    assert (gains.argmax(1) == star).mean() > 0.05  # also the best arm is pulled


def test_what_has_no_potential_is_named() -> None:
    class Odd(Threshold):
        name = "Odd"

        def margin(self, means: object) -> np.ndarray:
            return -super().margin(means)

    assert Threshold(0.5).own_potential is not None
    assert Odd(0.5).own_potential is None
    coordinates = task_of("feasible", "bernoulli").replace(pull="coordinate")
    with refused("reward='gain'", "pull='coordinate'"):
        coordinates.lookahead("reward='gain'")
    with refused("(2, 5)", "(2, 4)"):
        task_of("top", "bernoulli").lookahead().gains(np.zeros((2, 4), np.int64), np.zeros((2, 5)))


def test_beliefs_by_hand() -> None:
    pulls, total = np.array([[2, 0, 8]]), np.array([[2.0, 0.0, 2.0]])  # Beta(3, 1), Beta(1, 1), Beta(3, 7)
    sd = np.sqrt([0.75 * 0.25 / 5, 0.25 / 3, 0.3 * 0.7 / 11])
    for problem, parameters, d, spread in (
        ("Threshold", {"threshold": 0.4}, [0.35, 0.1, -0.1], sd),
        ("BestArm", {}, [0.125, -0.125, -0.325], sd),
        ("AllGood", {"epsilon": 0.3}, [0.3, 0.05, -0.15], [sd[0], np.hypot(sd[0], sd[1]), np.hypot(sd[0], sd[2])]),
    ):
        told = Task(problem, parameters, K=3, budget=20).lookahead().beliefs(pulls, total)[0]
        np.testing.assert_allclose(told, np.stack([d, spread, sd, [4, 2, 10]], axis=-1), atol=1e-12)


def test_the_prior_from_the_arms_by_hand() -> None:
    """sigma = 1; arms of means 3 (1 pull) and 6 (4 pulls), and one never pulled."""
    pulls, total = np.array([[1, 4, 0]]), np.array([[3.0, 24.0, 0.0]])
    facts = {"distribution": "gaussian", "support": None, "sigma": 1.0, "budget": 20}
    # The threshold is the place: Q = 1 + 1 + 4, N = 1 + 1/4, and c = 2: spread^2 = 4.75 / 3.
    worth = 3 / 4.75
    told = Task("Threshold", {"threshold": 4.0}, K=3, **facts).lookahead().beliefs(pulls, total)[0]
    n = pulls[0] + worth
    sd = 1 / np.sqrt(n)
    np.testing.assert_allclose(told, np.stack([[-1 / n[0], 8 / n[1], 0], sd, sd, n], axis=-1), atol=1e-12)
    # The place of arms: (1/2 * 3 + 4/5 * 6) / (1/2 + 4/5) = 63/13. Q = 1 + (24^2 + 15^2) / 13^2, N = 5/8, c = 1.
    place, worth = 63 / 13, 2 / (1 + 801 / 169 - 5 / 8)
    n = pulls[0] + worth
    m = (total[0] + worth * place) / n
    told = Task("BestArm", {}, K=3, **facts).lookahead().beliefs(pulls, total)[0]
    np.testing.assert_allclose(told[:, 0], m - (m[1] + m[2]) / 2, atol=1e-12)
    np.testing.assert_allclose(told[:, 3], n, atol=1e-12)
    # Nearly equal arms, or none pulled: one sample's worth.
    close = Task("BestArm", {}, K=3, **facts).lookahead().beliefs(np.array([[1, 1, 1]]), np.array([[5.0, 5.0, 5.0]]))[0]
    np.testing.assert_allclose(close, [[0, np.sqrt(0.5), np.sqrt(0.5), 2]] * 3, atol=1e-12)
    none = Task("BestArm", {}, K=3, **facts).lookahead().beliefs(0 * pulls, 0 * total)[0]
    np.testing.assert_allclose(none, [[0, 1, 1, 1]] * 3, atol=1e-12)


@pytest.mark.parametrize("belief", BELIEFS)
def test_equal_arms_are_shown_equally(belief: str) -> None:
    """Whatever their index, from the first step on; and one arm alone is where it is, in every place."""
    rng = np.random.default_rng(8)
    for asked in ("top", "best", "threshold"):
        task = task_of(asked, belief).replace(observation="relative")
        pulls = rng.integers(0, 3, (200, K))
        pulls[:2] = [[0] * K, [5, 0, 0, 0, 0]]
        total = pulls * rng.integers(0, 2, (200, K)) + 0.0
        seen = task.lookahead().view(pulls, total)[0][:, : 6 * K].reshape(200, K, 6)
        for e in range(200):
            for i in range(K):
                alike = (pulls[e] == pulls[e, i]) & (total[e] == total[e, i])
                np.testing.assert_array_equal(seen[e, alike], np.repeat(seen[e, i][None], alike.sum(), axis=0))
        if belief == "gaussian" and asked != "threshold":
            x = rng.standard_normal((50, 1)) * 0.7 + 1000
            one, there = np.array([[5, 0, 0, 0, 0]] * 50), np.pad(5 * x, ((0, 0), (0, K - 1)))
            assert (task.lookahead().view(one, there)[0] == task.lookahead().view(one, there - one * 1000.0)[0]).all()


MOVES = [(0.0, 64.0), (0.0, 2.0**-7), (1.0, 1.0), (5.0, 1.0), (1000.0, 1.0), (-7.0, 0.25)]


@pytest.mark.parametrize("asked", [one for one in ASKED if one not in ("good, multiplicative", "control, lift")])
@pytest.mark.parametrize("sigma", [0.7, 0.01])
def test_units_and_places_change_nothing(asked: str, sigma: float) -> None:
    """Scales by powers of two change no digit; a shift changes what rounding of the sums changes."""
    problem, parameters, D = ASKED[asked]
    facts = {"distribution": "gaussian", "support": None, "budget": BUDGET, "observation": "relative", "K": K, "D": D}
    one = Task(problem, parameters, sigma=sigma, **facts)
    pulls, total = states(one, 40, np.random.default_rng(6))
    made = pulls if D == 1 else pulls[..., None]
    seen, gains = one.lookahead().view(pulls, total, ranked=True), one.lookahead().gains(pulls, total)
    for shift, scale in MOVES:
        moved = {name: x if name in ("k", "A", "control") else np.array(x) * scale for name, x in parameters.items()}
        if "threshold" in moved:
            moved["threshold"] += shift * scale
        if "A" in moved:
            moved["b"] = moved["b"] + shift * scale * np.array(moved["A"]).sum(1)
        plain = {name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in moved.items()}
        other = Task(problem, plain, sigma=sigma * scale, **facts).lookahead()
        there = (total + made * shift) * scale
        limit = 0.0 if shift == 0 else 1e-9 if abs(shift) < 1000 else 1e-6
        (x, order), then = other.view(pulls, there, ranked=True), other.gains(pulls, there)
        same = (order == seen[1]).all(1)  # others are ties of |d| / sd, of arms never pulled
        assert same.mean() > 0.9
        np.testing.assert_allclose(x[same], seen[0][same], rtol=0, atol=limit and max(limit, 2e-6))  # float32
        np.testing.assert_allclose(then, gains, rtol=0, atol=limit)


@pytest.mark.parametrize("shift", [37.0, -8.1])
def test_a_shift_changes_no_rank(shift: float) -> None:
    """After few pulls many arms are as sure as others: which comes first is not up to rounding."""
    facts = {"distribution": "gaussian", "support": None, "budget": 60, "observation": "relative", "K": 6}
    rng, look = np.random.default_rng(0), Task("TopK", {"k": 2, "epsilon": 0.1}, sigma=1.0, **facts).lookahead()
    pulls = (rng.random((300, 6)).argsort(axis=1) < rng.integers(1, 5, (300, 1))).astype(np.int64)
    total = pulls * rng.standard_normal((300, 6))
    (here, order), (there, moved) = (look.view(pulls, total + x * pulls, ranked=True) for x in (0.0, shift))
    np.testing.assert_array_equal(order, moved)
    np.testing.assert_allclose(here, there, rtol=0, atol=2e-6)


def test_another_unit_splits_no_ties() -> None:
    """Samples 0, 1/2 and 1, from .1 on, and in units of 1e-9."""
    rng = np.random.default_rng(1)
    pulls = rng.integers(0, 5, (300, 6))
    total = np.array([[rng.choice([0.0, 0.5, 1.0], n).sum() + 0.1 * n for n in row] for row in pulls])
    seen = []
    for unit in (1.0, 1e-9):
        facts = {"distribution": "categorical", "support": (0.1 * unit, 1.1 * unit), "sigma": 0.5 * unit, "K": 6}
        task = Task("TopK", {"k": 2, "epsilon": 0.1 * unit}, budget=60, observation="relative", **facts)
        seen.append(task.lookahead().view(pulls, total * unit, ranked=True))
    np.testing.assert_array_equal(seen[0][1], seen[1][1])
    np.testing.assert_allclose(seen[0][0], seen[1][0], rtol=0, atol=2e-6)


def test_relative_beliefs_by_hand() -> None:
    """Beta(4, 1) after three samples of 1, and Beta(1, 1): at the threshold 1/2, and against each other. T = 8."""
    task = Task("Threshold", {"threshold": 0.5}, K=2, budget=8, observation="relative")
    seen = task.lookahead().view(np.array([[3, 0]]), np.array([[3.0, 0.0]]))[0][0]
    d, sd, n, R = np.array([0.3, 0]), np.sqrt([0.16 / 6, 1 / 12]), np.array([5.0, 2.0]), 2.5
    z = d / sd
    # ln of the derivative of G(z, R / (R + n)) in R, but for a constant; G is of Owen's function, see the module.
    gain = np.log(np.sqrt(n) / (R + n)) - z**2 * (R + n) / R / 2
    typical = np.sqrt((d**2 + sd**2).mean())
    apart = gain - gain.max()
    share, one = np.log(n * 2 / 8) / 2, np.ones(2)
    each = [z / np.sqrt(1 + z), apart / np.sqrt(1 - apart), share, d / typical, sd / typical, one]
    more = [2 * 5 / 8 - 1, np.log(1 + 5 / 2) / 2 - 1, np.log(4) / 2 - 1, np.log(0.2) / 2]
    np.testing.assert_allclose(seen, [*np.stack(each, axis=-1).reshape(-1), *more], rtol=1e-6)
    best = Task("BestArm", {}, K=2, budget=8, observation="relative")
    told = best.lookahead().view(np.array([[3, 0]]), np.array([[3.0, 0.0]]))[0][0]
    s = np.hypot(*sd)  # the chance to be wrong falls by as much as the variance of the difference that a pull resolves
    apart = np.log(sd**2 * n / (R + n) ** 2)
    apart -= apart.max()
    z = np.array([0.3, -0.3]) / s
    each = [z / np.sqrt(1 + abs(z)), apart / np.sqrt(1 - apart), share, z * s / np.hypot(0.3, s)]
    np.testing.assert_allclose(
        told, [*np.stack([*each, s / np.hypot(0.3, s) * one, sd / s], axis=-1).reshape(-1), *more], rtol=1e-6
    )
    at = [right(0.8, (R + h) / (R + h + 5), 0.0) for h in (-0.05, 0.05)]
    other = [right(0.3, (R + h) / (R + h + 2), 0.0) for h in (-0.05, 0.05)]
    slope = np.log((at[1] - at[0]) / (other[1] - other[0]))
    formula = np.log(np.sqrt(5 / 2) * 4.5 / 7.5) - 0.5 * (0.64 * 7.5 / R - 0.09 * 4.5 / R)
    assert abs(slope - formula) < 0.02  # by finite differences of the table


@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize("support", [(0.0, 1.0), (-1.0, 3.0)])
def test_relative_beliefs_against_a_control_by_hand(ones: bool, support: tuple[float, float]) -> None:
    """Means (1 + 1) / 10, 1 / 2, 1 / 5 of uniform priors are .3 on average: a prior worth 1 / .3 samples, one of 1."""
    facts = {"distribution": "categorical", "support": support, "sigma": (support[1] - support[0]) / 2}
    task = Task("BetterThanControl", {}, K=3, budget=60, observation="relative", **facts)
    pulls, total = np.array([[8, 0, 3]]), np.array([[1.0, 0.0, 0.0]])
    n = pulls[0] + 10 / 3
    m = (total[0] + 1) / n
    v = m * (1 - m) / (n + 1) * (support[1] - support[0]) ** 2
    m, total = (1 - m, pulls - total) if ones else (m, total)
    low, width = support[0], support[1] - support[0]
    look, seen = task.lookahead(), low * pulls + width * total
    d, s, own, made = look.beliefs(pulls, seen)[0].T
    np.testing.assert_allclose(d, width * (m - m[0]), atol=1e-12)
    np.testing.assert_allclose(s**2, [v[0], v[0] + v[1], v[0] + v[2]], rtol=1e-12)
    np.testing.assert_allclose(own, [-np.sqrt(v[0]), np.sqrt(v[1]), np.sqrt(v[2])], rtol=1e-12)
    np.testing.assert_allclose(made, n, rtol=1e-12)
    slow = Slow(task, pulls[0], seen[0])
    np.testing.assert_allclose(slow.m[:, 0], low + width * m, rtol=1e-12)
    np.testing.assert_allclose(look.gains(pulls, seen)[0], [slow.gain(i) for i in range(3)], rtol=0, atol=1e-9)


def test_relative_beliefs_of_several_rows() -> None:
    """z is that of the row that is least likely to hold; the last number of an arm, the chance of the others."""
    rows = {"A": [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], "b": [1.0, 0.5, 0.3]}
    task = Task("Feasible", rows, K=2, D=2, budget=40, observation="relative", **(GAUSSIAN | {"sigma": 1.0}))
    pulls, total = np.array([[4, 9]]), np.array([[[2.0, 0.4], [-9.0, 1.8]]])
    look = task.lookahead()
    d, s, _, n = look.beliefs(pulls, total)[0].T
    place, worth = place_and_worth(task, pulls[0], total[0])
    mean = (worth * place + total[0]) / n[:, None]
    slack = np.array(rows["b"]) - mean @ np.array(rows["A"]).T
    z, least = slack * np.sqrt(n)[:, None], slack.argmin(1)
    np.testing.assert_allclose(d / s, z.min(1), rtol=1e-12)
    others = np.where(np.arange(3) == least[:, None], 1.0, ndtr(z)).prod(1)
    np.testing.assert_allclose(look.view(pulls, total)[0][0, [5, 11]], others, rtol=1e-6)


@every
@pytest.mark.parametrize("asked", [one for one in ASKED if one.startswith("control")])
@pytest.mark.parametrize("draws", [20_000, 200_000])
def test_the_value_beside_a_control_is_that_of_simulated_futures(asked: str, belief: str, draws: int) -> None:
    """Posterior means after R more pulls of each arm, then true means; 5 standard errors, see LIMIT."""
    task, rng = task_of(asked, belief), np.random.default_rng(11)
    problem, (pulls, total) = task.make_problem(), states(task, 3, np.random.default_rng(9))
    look = task.lookahead()
    for e in range(3):
        slow = Slow(task, pulls[e], total[e])
        m, v, n = slow.m[:, 0], slow.v[:, 0], slow.n
        for arm in (-1, 0, 1):  # which is pulled once more, with a normal distribution after it
            R = slow.next + (np.arange(K) == arm)
            then = m + np.sqrt(v * R / (R + n)) * rng.standard_normal((draws, K))
            true = then + np.sqrt(v * n / (R + n)) * rng.standard_normal((draws, K))
            scores = problem.score(problem.plug_in(then), true)
            found = look.value(pulls[e : e + 1], total[e : e + 1], np.array([slow.next]))
            if arm >= 0:
                found = look.gains(pulls[e : e + 1], total[e : e + 1])[:, arm] + look.value(pulls, total)[e]
            off = abs(found[0] - scores.mean()) / (scores.std() / np.sqrt(draws))
            assert off < LIMIT or abs(found[0] - scores.mean()) < 3e-5, (e, arm, off)  # Owen's table is that exact


@every
def test_a_control_is_shown_as_one(belief: str) -> None:
    """Its own number is -1, alone; it is the first rank; its gain is that of a pull for all; arms alike stay alike."""
    for asked, c in (("control", 0), ("control, tolerance", 2), ("control, lift", 0)):
        task = task_of(asked, belief).replace(observation="relative", budget=600)
        pulls, total = states(task.replace(budget=60), 60, np.random.default_rng(12))
        pulls[0], total[0] = 0, 0.0
        look = task.lookahead()
        seen, order = look.view(pulls, total, ranked=True)
        rows = seen[:, : 6 * K].reshape(-1, K, 6)
        assert (order[:, 0] == c).all()
        assert (rows[:, 0, 5] == -1).all()
        assert (rows[:, 1:, 5] > 0).all()
        np.testing.assert_array_equal(rows[0, 2:], rows[0, 1:-1])
        plain = look.view(pulls, total)[0][:, : 6 * K].reshape(-1, K, 6)
        np.testing.assert_array_equal(np.take_along_axis(plain, order[..., None], axis=1), rows)
        # The gains shown are the slopes of phi in the pulls of each arm, but for a constant. Gaussian arms of few pulls
        # have a prior that is less than a sample's worth; without a tolerance.
        if task.make_problem().tolerance == 0.0:
            x = plain[:, :, 1].astype(float)
            apart = -x * (abs(x) + np.sqrt(x * x + 4)) / 2  # x = -y / sqrt(1 + y)
            for e in range(1, 8):
                slow = Slow(task, pulls[e], total[e])
                R, h = max(slow.left * K - 1, 0) / K + 0.5, 1e-3
                up, down = (np.array([slope(slow, R, arm, side * h) for arm in range(K)]) for side in (1, -1))
                gains = np.log((up - down).clip(1e-12))
                clear = (apart[e] < 6) & (gains - gains.max() > -6)
                assert clear.sum() > 1
                np.testing.assert_allclose(-apart[e][clear], (gains - gains.max())[clear], atol=0.02)


def slope(slow: Slow, R: float, arm: int, h: float) -> float:
    """phi beside a control where an arm has h pulls more, exactly."""
    p, n = slow.potential, slow.n
    a, c, r = p.A[0, 0], p.control, (R + h * (np.arange(K) == arm)) / (R + h * (np.arange(K) == arm) + n)
    v = slow.v[:, 0]
    found = 0.0
    for i in set(range(K)) - {c}:
        s2 = v[i] + a * a * v[c]
        z = (slow.m[i, 0] - a * slow.m[c, 0] - p.b[0]) / np.sqrt(s2)
        share = (v[i] * r[i] + a * a * v[c] * r[c]) / s2
        found -= 2 * special.owens_t(z, np.sqrt((1 - share) / share))
    return found


def test_long_budgets_are_seen() -> None:
    """Of z = 4, 10, 20 and 90; of gains up to e^-100 of the largest."""
    task = Task("Threshold", {"threshold": 0.0}, K=4, budget=10**6, observation="relative", **GAUSSIAN)
    pulls = np.full((1, 4), 10**5)
    z = np.array([[4.0, 10.0, 20.0, 90.0]])
    seen = task.lookahead().view(pulls, z * 0.7 * np.sqrt(10**5))[0][0, :24].reshape(4, 6)
    assert (np.diff(seen[:, 0]) > 1).all()
    assert (np.diff(seen[:3, 1]) < -1).all()


def test_relative_beliefs_are_finite_where_all_is_known() -> None:
    """The best arm of AllGood has no gap of its own; all others are far off, or all arms are alike."""
    for asked in ASKED:
        for m in ([[900.0, 0.0, -7.0, 3.0, 1.0]], [[0.25] * 5]):
            for n in (1, 10**6):
                task = task_of(asked, "gaussian", budget=10**8).replace(observation="relative")
                pulls = np.full((1, K), n)
                total = np.array(m) * n if task.D == 1 else np.repeat(np.array(m)[..., None] * n, task.D, axis=-1)
                assert np.isfinite(task.lookahead().view(pulls, total)[0]).all(), (asked, m, n)
