"""The evidence of a `Problem`: its certifier, the closest alternative, the game of proportions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..kernels.checks import Bools, Floats, choice, ours
from .boundaries import COMMON, D_AT, DEPENDENT, DISTRIBUTION, RHO_AT, VARIANCE
from .certifier import OWN, Certifier, common, with_moments
from .distributions import PAIRED
from .rates import sides
from .statistics import Arms, Statistics, answers, check_support, moments_like, one_instance, statistics

if TYPE_CHECKING:
    from .game import Game

BETTING = ("threshold", "top-k", "all-good", "polyhedron", "control")  # kinds that know bounded samples


def tells_evidence(problem: Any) -> bool:
    """Whether no subclass has put other margins or verdicts in the place of those that `evidence_routine` is of."""
    others = "margin", "arm_margin", "plug_in", "truth", "verdict", "bands"
    return bool(type(problem).has_latest("evidence_routine", *others))


def of_ones_own(problem: Any, means: ArrayLike, distribution: str) -> bool:
    """Whether the best proportions are not known: alternatives of a user's own routine, or in several dimensions."""
    if problem.local or ours(type(problem).evidence_routine):
        return not problem.local and np.ndim(means) == 2
    K = len(one_instance(means, choice("distribution", distribution, ("gaussian", "bernoulli"))))
    certifier: Certifier = problem.certifier(K, distribution=distribution, boundary="none", search="exact")
    return certifier.kind == OWN


def _turns(problem: Any) -> tuple[float, float]:
    """The margin below which an arm in the answer is wrong there, and above which one left out is wrong."""
    must_in, must_out = problem.bands
    return -float(must_out), float(must_in)


def certifier_of(problem: Any, K: int, numbers: Floats, distribution: str, search: str) -> Certifier:
    """`Problem.certifier`: the problem's own, or that of a local one's margins; numbers: those of `common`."""
    found: Certifier | None = problem.evidence_routine(K, numbers, search) if tells_evidence(problem) else None
    if found is not None and (distribution != "bounded" or found.kind in BETTING):
        return found
    if problem.local and distribution == "gaussian" and problem.measure is not None:
        address, given = float(problem.measure.routine.address), problem.measure.numbers.tolist()
        return Certifier.of("margins", K, _widest(numbers), *_turns(problem), 0.0, address, *given, scratch=K)
    if found is not None:
        why = "its evidence_routine counts on 'gaussian', 'bernoulli' or 'student'; leave distribution out"
    elif problem.local and problem.measure is not None:
        why = "its distance_routine has that of 'gaussian', which holds in a range too; leave distribution out"
    else:
        why = f"it needs {'a distance_routine or ' * problem.local}an evidence_routine (docs/own-problem.md shows them)"
    raise ValueError(f"the problem {problem.name!r} has no evidence for distribution={distribution!r}: {why}")


def paired_certifier(
    problem: Any,
    K: int,
    items: int,
    ranges: Sequence[tuple[float, float]],
    delta: float,
    blocks: bool = False,
    hint: Sequence[float] | None = None,
) -> Certifier:
    """The certifier of the K columns of a table of `items` rows, each with D scores in these ranges, (D, 2).

    It is by the alternatives of Threshold, TopK, AllGood or Feasible.

    `hint`: of BestArm, means that its arms may have, by which it bets as long as the rows bear them out.
    `blocks`: the rows have no end, and `items` is how many can be kept; not of Threshold, and of no share of the best.
    """
    from .paired import FIRST, PAIRED_KINDS, scratch_of_paired  # late, as it is not needed before
    from .paired_alone import limits_of
    from .paired_best import HINTED

    numbers = common("gaussian", D=len(ranges))
    plain = certifier_of(problem, K, numbers, "gaussian", "pairs")
    if plain.kind not in PAIRED_KINDS:
        text = "columns of a table have certificates for Threshold, TopK,"
        raise ValueError(f"{text} AllGood and Feasible, got the problem {problem.name!r}")
    numbers[DISTRIBUTION] = PAIRED
    own = plain.numbers[COMMON:].tolist()
    if plain.kind == "all-good" and own[0] <= 0.0:
        raise ValueError(f"certificates of multiplicative {problem.name} need epsilon + slack < 1, got {problem!r}")
    if blocks and (plain.kind in ("threshold", "polyhedron") or plain.kind == "all-good" and own[0] != 1.0):
        text = "blocks take their effects out of differences of two arms alone,"
        raise ValueError(f"{text} and {problem!r} is of others")
    low, high = ranges[0]
    local = plain.kind in ("threshold", "polyhedron")
    own = limits_of(plain.kind, np.array(own), ranges).ravel().tolist() if local else own
    size = scratch_of_paired(plain.kind, K, len(own) / (FIRST + len(ranges)) if local else own[0], items)
    best = plain.kind == "top-k" and own[0] == 1
    means, worth = ([0.0] * K, 0.0) if hint is None else ([(x - low) / (high - low) for x in hint], HINTED)
    known = [*[0.0] * K, *means, worth] if best else []
    rest = float(size), *known, float(-items if blocks else items), low, high - low, delta
    return Certifier.of(f"{'best' if best else plain.kind}-paired", K, numbers, *own, *rest, scratch=size)


def counted_arms(scratch: Floats, K: int) -> Bools:
    """Of tables, which arms a row must still show before it counts, (E, K), by the scratches of E episodes."""
    from .paired import SIZE  # late, as it is not needed before

    counts: Bools = (scratch[:, SIZE + K : SIZE + 2 * K] != 0.0) | (scratch[:, :1] == 0.0)
    return counts


def _widest(numbers: Floats) -> Floats:
    """The same numbers, with the scale of any direction: sigma sqrt(D) where coordinates may depend on each other."""
    found = numbers.copy()
    found[VARIANCE] *= numbers[D_AT] if numbers[DEPENDENT] else 1.0
    return found


def _by_margins(problem: Any, seen: Statistics, options: dict[str, Any]) -> tuple[Certifier, Statistics]:
    """A certifier of a local problem whose margins only Python computes, and statistics with margins for means."""
    numbers = _widest(common(**{name: x for name, x in options.items() if name != "search"}, D=seen.D))
    margins = np.where(seen.pulls > 0, problem.arm_margin(seen.mean), 0.0)
    certifier = Certifier.of("margins", seen.K, numbers, *_turns(problem), 0.0, 0.0, scratch=seen.K)
    return certifier, seen._replace(mean=margins, variance=np.zeros(margins.shape))


def alternatives(
    problem: Any,
    pulls: ArrayLike,
    mean: ArrayLike,
    answer: ArrayLike | None,
    variance: ArrayLike | None,
    moments: ArrayLike | None = None,
    **options: Any,
) -> Floats:
    """out[0] of `nearest_alternative`, (...,), of statistics and answers with any batch axes, as `Problem.evidence`."""
    seen = statistics(pulls, mean, variance, options["distribution"])
    _check_arms(problem, Arms(seen.K, seen.D))
    if answer is None:
        inside = np.ascontiguousarray(problem.plug_in(seen.seen), np.int8)
    else:
        inside = answers(answer, (*seen.lead, seen.K), problem.answer_size, problem.name)
    compiled = tells_evidence(problem) or problem.measure is not None or options["distribution"] != "gaussian"
    if problem.local and not compiled:
        certifier, seen = _by_margins(problem, seen, options)
    else:
        certifier = problem.certifier(seen.K, seen.D, **options)
    higher = None if moments is None else moments_like(moments, seen.variance.shape)
    if options["distribution"] == "bounded":
        low, high = options.get("support", (0.0, 1.0))
        check_support(seen, (low, high))
        certifier.numbers[RHO_AT] *= max(max(abs(low), abs(high)) / (high - low), 1.0)  # a sum of samples as they are
    found = certifier.alternatives(seen.pulls, seen.mean, seen.variance, inside, higher)
    return found[:, 0].reshape(seen.lead)


def arm_evidence(
    problem: Any,
    pulls: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike | None,
    moments: ArrayLike | None,
    **options: Any,
) -> Floats:
    """`Problem.arm_evidence`: (..., K, 2)."""
    seen = statistics(pulls, mean, variance, options["distribution"])
    _check_arms(problem, Arms(seen.K, seen.D))
    certifier, v = problem.certifier(seen.K, seen.D, **options), seen.variance
    if options["distribution"] == "bounded":
        check_support(seen, options.get("support", (0.0, 1.0)))
        v = with_moments(v, None if moments is None else moments_like(moments, v.shape))
    found = sides(certifier, seen.pulls, seen.mean, v)
    return found.reshape(*seen.lead, seen.K, 2)


def _check_arms(problem: Any, arms: Arms) -> None:
    """Refuse arms that a problem is not defined on, or too few of them."""
    problem.check(arms)
    if problem.fewest_arms > arms.K:
        raise ValueError(f"{arms.K} arms are too few for {problem!r:.200}")


def game_of(problem: Any, means: ArrayLike, distribution: str, sigma: float) -> Game:
    """Optimal proportions (K,) and the value of the game, for one instance; see `game`."""
    from .game import single, solve  # late, as few ask for it

    m = one_instance(means, choice("distribution", distribution, ("gaussian", "bernoulli")))
    _check_arms(problem, Arms(len(m), m.shape[1] if m.ndim == 2 else 1))
    answer = problem.plug_in(m)
    if problem.local:
        one, known = np.ones((len(m), 1), np.int64), {"distribution": distribution, "sigma": sigma, "dependent": False}
        return single(problem.evidence(one, m[:, None], answer[:, None], **known))
    if of_ones_own(problem, m, distribution):
        raise ValueError(
            f"the characteristic time of the problem {problem.name!r} is not known, as the alternatives are those of "
            "its own evidence_routine, or of several dimensions; it may define characteristic_time and "
            "optimal_proportions itself"
        )
    certifier = problem.certifier(len(m), distribution=distribution, sigma=sigma, boundary="none", search="exact")
    game = solve(certifier.kind, certifier.numbers[COMMON:], distribution, float(sigma) ** 2, m, answer)
    if not game.is_solved:
        text = f"the characteristic time of {problem!r:.200} is not found to its accuracy: it lies between "
        text += f"{1 / game.most:.9g}, which is returned, and {1 / game.value if game.value > 0 else math.inf:.9g}"
        warnings.warn(text, RuntimeWarning, stacklevel=4)
    return game
