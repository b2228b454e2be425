"""The numbers of alternatives by brute force, and the constants of thresholds by a transcription of their papers."""

from __future__ import annotations

import itertools
import math
from typing import Any

import derivations
import numpy as np
import pytest
from derivations import means_of, pair, swaps

from bandit_envs import AllGood, BestArm, Feasible, Threshold, TopK
from bandit_envs.stopping import arm_penalty, common, enough

DELTA = 0.05


def value_of(problem: Any, pulls: Any, mean: Any, answer: Any = None, **options: Any) -> float:
    """-ln of the level at which an answer, or the plug-in one, is certified now, also where that is below 0."""
    T, m = np.array(pulls, np.int64)[None], np.array(mean, np.float64)[None]
    inside = problem.plug_in(m) if answer is None else np.array(answer)[None]
    D = m.shape[2] if m.ndim == 3 else 1
    certifier = problem.certifier(m.shape[1], D, search="sets", **({"boundary": "product"} | options))
    return float(certifier.alternatives(T, m, np.ones(m.shape), inside.astype(np.int8))[0, 0])


def number_of(value: float, problem: Any, *seen: Any, **options: Any) -> float:
    """The number of alternatives that a level pays for, where the one that decides has this value."""
    return math.exp(value - value_of(problem, *seen, **options))


@pytest.mark.parametrize(("K", "k"), [(2, 1), (3, 1), (3, 2), (4, 2), (5, 2)])
def test_the_pairs_of_top_k_are_as_many_as_wrong_answers_need(K: int, k: int) -> None:
    """K - 1 if epsilon is 0, else k (K - k): no fewer do for all means, and so many do for each."""
    for epsilon, number in ((0, K - 1), (1, k * (K - k))):
        assert max(derivations.fewest_pairs(mu, k, epsilon) for mu in means_of(K, K)) == number
        for criterion in ("aggregate", "each", "exact"):
            wanted = K - 1 if criterion == "exact" else number
            gap = 1.0 if criterion == "exact" else 1.0 + epsilon * (k if criterion == "aggregate" else 1)
            if criterion == "aggregate" and epsilon and 1 < k < K - 1:
                continue  # by sets, see below
            problem = TopK(k, epsilon, criterion)
            means = np.repeat([1.0, 0.0], [k, K - k])
            assert number_of(pair(90, 90, gap), problem, [90] * K, means) == pytest.approx(wanted, rel=1e-9)
            needed = problem.certifier(K).needed(DELTA)
            assert needed == pytest.approx([math.log(wanted / DELTA)], rel=1e-12)


@pytest.mark.parametrize("boundary", ["mixture", "kaufmann-koolen"])
@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli"])
def test_the_number_does_not_depend_on_the_distribution_or_the_threshold(distribution: str, boundary: str) -> None:
    """Two arms have one alternative; K arms of the same statistics as many as were found above."""
    options = {"distribution": distribution, "boundary": boundary}
    alone = value_of(BestArm(), [90, 80], [0.9, 0.2], **options)
    for problem, K, number in ((BestArm(), 5, 4), (TopK(2, 0.0), 5, 4), (TopK(2, 0.0, "exact"), 7, 6)):
        k = problem.k
        pulls, means = [90] * k + [80] * (K - k), [0.9] * k + [0.2] * (K - k)
        assert number_of(alone, problem, pulls, means, **options) == pytest.approx(number, rel=1e-9)
    one = value_of(Threshold(0.5), [90], [0.9], **options)
    assert number_of(one, Threshold(0.5), [90] * 6, [0.9] * 6, **options) == pytest.approx(6, rel=1e-9)
    assert Threshold(0.5).certifier(6).needed(DELTA) == pytest.approx([math.log(6 / DELTA)], rel=1e-12)


def test_each_arm_is_an_alternative_of_feasible() -> None:
    problem = Feasible([[1.0, 0.0]], [0.5])
    for dependent in (False, True):
        for x in (0.1, 0.8):
            one = value_of(problem, [70], [[x, 0.3]], dependent=dependent)
            many = number_of(one, problem, [70] * 4, [[x, 0.3]] * 4, dependent=dependent)
            assert many == pytest.approx(4, rel=1e-9)


@pytest.mark.parametrize("slack", [0, 1])
@pytest.mark.parametrize("K", [2, 3, 4])
def test_the_claims_of_all_good_share_delta(K: int, slack: int) -> None:
    """Whoever makes none of the false claims that the truth names is never wrong; their shares sum to 1 at most."""
    numbers = 2 * (K - 1), 2 * K * (K - 1), 4 * (K - 1)
    for mu in means_of(K, 4):
        claims = derivations.false_claims(mu, 1)
        assert not derivations.can_be_wrong(mu, 1, slack, claims)
        assert derivations.spent(claims, numbers) <= 1
    # No kind of claim can be left out, or none of them would be needed.
    assert derivations.can_be_wrong((2,) + (0,) * (K - 1), 1, slack=0, refuted=set())


@pytest.mark.parametrize("multiplicative", [False, True])
@pytest.mark.parametrize("K", [3, 6])
def test_the_three_numbers_of_all_good(K: int, multiplicative: bool) -> None:
    epsilon, pulls = 0.5, [100] * K
    a = 1 - epsilon if multiplicative else 1.0
    far = [0.01] * (K - 2) if multiplicative else [-40.0] * (K - 2)

    def problem(slack: float = 0.0) -> Any:
        return AllGood(epsilon, multiplicative, slack)

    def left_out(second: float) -> float:
        """The value of arm 0, of mean 1, being clearly better than arm 1."""
        return pair(100, 100, 1 - second / a if multiplicative else 0.5 - second, a=1 / a)

    # Two arms in the answer: the second one may be bad.
    inside = pair(100, 100, 0.9 - 0.5, a=a)
    pulls[2:] = [10**9] * (K - 2)
    assert number_of(inside, problem(), pulls, [1.0, 0.9, *far]) == pytest.approx(2 * (K - 1), rel=1e-9)
    # One is left out. All arms exclude it: the others are far below the best one.
    by_all = number_of(left_out(0.1), problem(), pulls, [1.0, 0.1, *far])
    assert by_all == pytest.approx(4 * (K - 1), rel=1e-9)
    # Of a third one less is known, so that one arm must exclude the second. Slack lets the third into the answer.
    if not multiplicative:
        pulls[1:3] = [8, 8]
        by_one = number_of(pair(100, 8, 0.5 + 4.2), problem(8.0), pulls, [1.0, -4.2, 0.95, *far[1:]])
        assert by_one == pytest.approx(2 * K * (K - 1), rel=1e-9)
    wanted = [2 * (K - 1), 2 * K * (K - 1), 4 * (K - 1)]
    assert problem().certifier(K).needed(DELTA) == pytest.approx(np.log(wanted) - math.log(DELTA), rel=1e-12)


def test_where_one_arm_alone_excludes_there_are_as_many_alternatives_as_ordered_pairs() -> None:
    """The threshold "kaufmann-koolen" knows no claims by all arms."""
    options = {"boundary": "kaufmann-koolen"}
    alone = value_of(BestArm(), [90, 10], [7.5, 0.0], **options)
    for K in (3, 5):
        pulls, means = [90, 10, *[90] * (K - 2)], [9.0, 0.0, *[9.0] * (K - 2)]
        found = number_of(alone, AllGood(1.5, slack=14.0), pulls, means, **options)
        assert found == pytest.approx(2 * K * (K - 1), rel=1e-9)


def test_an_arm_that_lacks_pulls_is_reported_as_one_that_must_be_pulled() -> None:
    """Its divergence is inf, whatever its mean; that of an arm with pulls is what moving it costs for each pull."""
    for problem, lacking in ((Threshold(0.5), [0]), (BestArm(), [1]), (AllGood(0.2), [1])):
        T, m = np.array([[40, 40]]), np.array([[0.9, 0.1]])
        T[0, lacking] = 0
        out = problem.certifier(2).alternatives(T, m, np.ones((1, 2)), np.full((1, 2), -1, np.int8))[0]
        n = int(out[1])
        for arm, rate, mu in zip(*(out[2 + 2 * i : 2 + 2 * i + n] for i in range(3)), strict=True):
            assert rate == (math.inf if arm in lacking else pytest.approx((m[0, int(arm)] - mu) ** 2 / 2)), problem
        assert lacking[0] in out[2 : 2 + n]


@pytest.mark.parametrize(("K", "k"), [(4, 2), (6, 2), (6, 4), (7, 3)])
def test_sets_of_all_sizes_share_delta(K: int, k: int) -> None:
    """Sets of s arms are C(k, s) C(K - k, s), by enumeration, and what each pays for sums to delta."""
    n, N, epsilon, total = min(k, K - k), 5000, 0.2, 0.0
    problem = TopK(k, epsilon)
    for size in range(1, n + 1):
        ones, others = (list(itertools.combinations(range(arms), size)) for arms in (k, K - k))
        count = sum(1 for _ in itertools.product(ones, others))
        # Arms whose exchange costs much, but for so many on each side.
        means = np.array([0.0] * size + [9.0] * (k - size) + [0.0] * size + [-9.0] * (K - k - size))
        gap = k * epsilon
        value = pair(N, N, gap) if size == 1 else swaps([N] * (2 * size), gap)
        paid = number_of(value, problem, [N] * K, means, np.arange(K) < k)
        assert paid == pytest.approx(n * count, rel=1e-9)
        total += count / paid
    assert total == pytest.approx(1, rel=1e-9)
    # The certificate by pairs, which is better after so many pulls, has the supermartingales of sets of size 1.
    means = np.repeat([0.0035, 0.0], [k, K - k])
    by_pairs = number_of(pair(10**6, 10**6, 0.0045), TopK(k, 0.001), [10**6] * K, means)
    assert by_pairs == pytest.approx(n * k * (K - k), rel=1e-9)


@pytest.mark.parametrize("arms", [1, 2, 3, 8])
@pytest.mark.parametrize(
    ("distribution", "price"),
    [("gaussian", derivations.kaufmann_gaussian), ("bernoulli", derivations.kaufmann_exponential)],
)
def test_levels_are_the_inverse_of_their_functions(distribution: str, price: Any, arms: int) -> None:
    """At small x and large: T has two forms, which meet where the inverse function is 1.5636, at x = 0.61."""
    numbers = common(distribution, boundary="kaufmann-koolen")
    for x in (0.02, 0.3, 0.9, 2.0, 5.0, 20.0, 300.0):
        assert enough(numbers, price(x, arms), float(arms)) == pytest.approx(x, rel=2e-5, abs=1e-6)


def test_penalties_of_one_arm() -> None:
    for N in (1.0, 7.0, 300.0, 1e6):
        for distribution, wanted in (
            ("gaussian", 2 * math.log(4 + math.log(N))),
            ("bernoulli", 3 * math.log(1 + math.log(N))),
        ):
            assert arm_penalty(common(distribution, boundary="kaufmann-koolen"), N, 0.3, 1.0) == pytest.approx(
                wanted, rel=1e-12
            )


@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli"])
def test_a_certificate_by_their_threshold(distribution: str) -> None:
    """A pair: its cost is two penalties and 2 C(x / 2), or 2 T(x / 2), x = ln(3 / level)."""
    N, M = 4000, 3000
    m = 0.6, 0.45
    middle = (N * m[0] + M * m[1]) / (N + M)
    if distribution == "gaussian":
        cost = (m[0] - m[1]) ** 2 / (2 * 0.25 * (1 / N + 1 / M))
        penalties, price = 2 * math.log(4 + math.log(N)) + 2 * math.log(4 + math.log(M)), derivations.kaufmann_gaussian
    else:
        cost = sum(
            n * (p * math.log(p / middle) + (1 - p) * math.log((1 - p) / (1 - middle)))
            for n, p in zip((N, M), m, strict=True)
        )
        penalties, price = (
            3 * math.log(1 + math.log(N)) + 3 * math.log(1 + math.log(M)),
            derivations.kaufmann_exponential,
        )
    seen = [N, M, M, M], [*m, 0.1, 0.1]
    value = value_of(BestArm(), *seen, distribution=distribution, sigma=0.5, boundary="kaufmann-koolen")
    assert price(value + math.log(3), 2) == pytest.approx(cost - penalties, rel=1e-5)
