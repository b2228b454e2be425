"""The evidence of one episode as a routine for compiled code, and over batches for callers in Python."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels.checks import Floats, Ints, choice, errors_of, flag, interval, number
from ..kernels.compiled import part, view
from ..kernels.routines import call_routine, routine
from ..kernels.structs import kernel
from . import boundaries
from .betting import BETS_SCRATCH
from .boundaries import BOUNDARIES, COMMON, D_AT, DEPENDENT, DISTRIBUTION, DOUBT, NEEDED, PRIOR, RHO, VARIANCE, wanted
from .distributions import BOUNDED, CODES, GAUSSIAN, PAIRED
from .scale import Trial, is_borne_out, trial
from .versions import version

DECIDED = ("threshold", "top-k", "all-good", "control")  # their search may end before the closest one is known
OWN = "own"  # the kind of a routine that a user has written

Table = Annotated[Floats, 2]


@functools.cache
def _routine_of(kind: str | Callable[..., None], distribution: int) -> Any:
    from .kinds import KINDS, unpacked  # late: importing this package makes none of them

    floats, is_ours = "float64*", isinstance(kind, str)
    function = version(KINDS[kind] if isinstance(kind, str) else kind, distribution=distribution)
    with errors_of(f"the evidence routine {function.__name__!r}", function):
        made = unpacked(function) if is_ours else function
        return routine(made, "int64*", floats, floats, "int8*", "int64", floats, "int64", floats, floats)


@view
def with_known_scale(numbers, scratch):
    """The numbers with the known scale, at the end of the scratch, which forgets what it holds of the other one."""
    scratch[:] = 0.0
    known = scratch[len(scratch) - len(numbers) :]
    for i in range(len(numbers)):
        known[i] = numbers[i]
    known[VARIANCE] *= numbers[DOUBT]
    known[PRIOR] *= numbers[DOUBT]
    return known


@part
def nearest_alternative(address, pulls, mean, variance, inside, numbers, scratch, out):
    """Ask the routine of a `Certifier` for the closest alternative to an answer, from compiled code.

    Args:
        address: `certifier.address`.
        pulls: (K,) int64, contiguous as all others.
        mean, variance: (K,) or (K, D) floats. Of bounded samples, variance is (3 K D,), see `with_moments`; of the
            columns of a table, their scores (K N,).
        inside: (K,) int8: the answer, of 0 and 1; with -1 in its first place it is filled with the plug-in one.
        numbers: `certifier.numbers`.
        scratch: `certifier.scratch` floats, all 0 at first. It keeps what has been computed of arms whose statistics
            have not changed: one for each episode is quickest, one for all episodes works.
        out: 2 + 3 K floats. out[0]: -ln of the level, or the evidence; n = out[1]: how many arms the alternative
            moves; for p < n, out[2 + p]: the arm, out[2 + K + p]: its divergence, the derivative of the evidence by its
            pulls (inf for an arm that lacks pulls), out[2 + 2 K + p]: the mean it is moved to (in D dimensions, how
            far).

    Where the results do not bear out a scale in doubt, the known one counts; where none is known, out[0] is -inf.
    """
    call_routine(address, pulls, mean, variance, inside, len(pulls), numbers, len(numbers), scratch, out)
    if numbers[DOUBT] > 0.0 and out[0] > 0.0 and not is_borne_out(numbers, pulls, variance.reshape(-1)):
        if numbers[DOUBT] == math.inf:
            out[0] = -math.inf
        else:
            known = with_known_scale(numbers, scratch)
            call_routine(address, pulls, mean, variance, inside, len(pulls), known, len(known), scratch, out)
            scratch[:] = 0.0


@kernel
def _all(
    address: int,
    pulls: Annotated[Ints, 2],
    mean: Table,
    variance: Table,
    inside: Annotated[NDArray[np.int8], 2],
    numbers: Floats,
    scratch: Floats,
    out: Table,
):
    """`nearest_alternative` of all episodes, (E, ..)."""
    for e in range(len(pulls)):
        if numbers[DISTRIBUTION] == PAIRED:
            scratch[0] = 0.0  # it holds what the rows of the last episode have shown
        nearest_alternative(address, pulls[e], mean[e], variance[e], inside[e], numbers, scratch, out[e])


class Certifier(NamedTuple):
    """The closest alternative to an answer, as a routine for compiled code; see `nearest_alternative`.

    `Problem.certifier` makes it. It is to be kept for as long as its address is in use.
    """

    routine: Callable[[], Any]  # it is compiled when its address is asked for: numbers alone need none
    numbers: Floats  # what it is given of the distribution, the boundary and the problem
    scratch: int  # how many floats it needs to work in
    K: int
    D: int
    kind: str  # of `KINDS`, or `OWN`

    @classmethod
    def of(
        cls, kind: str | Callable[..., None], K: int, common: Floats, *numbers: float, scratch: int = 0
    ) -> Certifier:
        """A certifier whose routine is compiled once its address is asked for.

        Args:
            kind: of `KINDS`; or a function of one's own, a routine as docs/own-problem.md explains it.
            K: number of arms.
            common: the numbers of the distribution and the boundary, which `Problem.evidence_routine` is given.
            *numbers: of the problem, which stand behind them.
            scratch: how many floats the routine needs to work in beyond 5 K.
        """
        given = np.concatenate([common, np.array(numbers, np.float64)])
        name = kind if isinstance(kind, str) else OWN
        D = int(common[D_AT])
        # Bets are worked out behind it, and what `with_moments` gives is at its end.
        moments = BETS_SCRATCH + 3 * K * D if common[DISTRIBUTION] == BOUNDED else 0
        made = functools.partial(_routine_of, kind, int(common[DISTRIBUTION]))
        return cls(made, given, 5 * K + scratch + moments, K, D, name)

    @property
    def kernels_needed(self) -> tuple[Any, ...]:
        """What its address and `alternatives` need, for `expect`."""
        return ((self.routine.func, *self.routine.args), _all) if isinstance(self.routine, functools.partial) else ()

    @property
    def address(self) -> int:
        """Of the routine, for `nearest_alternative`."""
        return int(self.routine().address)

    def doubting(self, sigma: float, known: float) -> Certifier:
        """One that counts on its scale sigma as long as results bear it out (see `scale`), else on the known one.

        Where none is known, that is inf.
        """
        if self.numbers[DISTRIBUTION] != GAUSSIAN or sigma >= known * (1.0 - 1e-9):
            return self
        numbers = self.numbers.copy()
        numbers[DOUBT] = known / sigma * (known / sigma)  # inf beyond all floats
        return self._replace(numbers=numbers, scratch=self.scratch + len(numbers))

    def trial(self, pulls: Ints, variance: Floats) -> Trial | None:
        """What pulls (K,) and variances (K,) or (K, D) say of a scale in doubt; None where it is in no doubt."""
        return trial(self.numbers, pulls, variance) if self.numbers[DOUBT] > 0 else None

    def decider(self, delta: float) -> Certifier:
        """One that only decides whether the level of the plug-in answer is delta or less, which is quick.

        out[0] is then inf or -inf, out[2] an arm to pull; out[1] and out[3] are to be handed in again at the next look
        at the episode, 0 at first. It is this certifier itself for problems in which there is nothing quicker.
        """
        if self.numbers[DISTRIBUTION] == PAIRED:  # what it looks at depends on it
            return self._replace(numbers=np.append(self.numbers[:-1], delta))
        if self.kind not in DECIDED:
            return self
        numbers, needed = self.numbers.copy(), self.needed(delta)
        numbers[NEEDED : NEEDED + len(needed)] = needed
        return self._replace(numbers=numbers)

    def needed(self, delta: float) -> list[float]:
        """What a statistic must reach at a level; of AllGood: in the answer, left out by one arm, and by all."""
        from .nearest import all_good_alternatives, top_k_alternatives

        K, arms, given, alternatives = self.K, 2, self.numbers, [float(self.K)]
        if self.kind == "all-good":
            alternatives = list(all_good_alternatives(K))
        elif self.kind == "control":
            alternatives = [K - 1.0]
        elif self.kind == "top-k":
            alternatives = [top_k_alternatives(K, int(given[COMMON]), given[COMMON + 1])]
        else:
            arms = 1
        found = [wanted(given, math.log(number / delta), arms) for number in alternatives]
        if self.kind == "all-good" and given[boundaries.BOUNDARY] != boundaries.MIXTURE:
            found[2] = math.inf
        return found

    def alternatives(
        self, pulls: Ints, mean: Floats, variance: Floats, inside: NDArray[np.int8], moments: Floats | None = None
    ) -> Floats:
        """What `nearest_alternative` reports, (E, 2 + 3 K), of episodes (E, K); inside (E, K) is filled in where -1.

        Bounded samples are judged by their moments too, (E, K, 2) or (E, K, D, 2), where these are known; columns of a
        table by their scores, (E, K, N) or (E, K, N, D), in the place of moments.
        """
        if self.numbers[DISTRIBUTION] == BOUNDED:
            variance = with_moments(variance, moments)
        if self.numbers[DISTRIBUTION] == PAIRED:
            variance = np.ascontiguousarray(math.nan if moments is None else moments, np.float64)
            if variance.shape != (shape := (*pulls.shape, int(abs(self.numbers[-4])), *mean.shape[2:])):
                raise ValueError(f"of columns of a table scores must be given, {shape}, got the shape {variance.shape}")
        out = np.full((len(pulls), 2 + 3 * self.K), math.nan)
        rows = len(pulls), math.prod(mean.shape[1:])  # the kernel is compiled for one kind of arrays
        mean, variance = mean.reshape(rows), variance.reshape(len(pulls), math.prod(variance.shape[1:]))
        _all(self.address, pulls, mean, variance, inside, self.numbers, np.zeros(self.scratch), out)
        return out

    def levels(self, *arguments: Any, **keywords: Any) -> Floats:
        """The smallest delta at which answers are certified, (E,), in [0, 1]; arguments as of `alternatives`."""
        return level_of(self.alternatives(*arguments, **keywords)[:, 0])


def level_of(value: Floats) -> Floats:
    """The smallest delta at which an answer is certified, of out[0] of `nearest_alternative`: in [0, 1]."""
    return np.exp(-np.maximum(value, 0.0))


def with_moments(variance: Floats, moments: Floats | None) -> Floats:
    """Variances (E, K) or (E, K, D) with third and fourth central moments (..., 2) behind them: (E, 3 K D).

    Moments that are not known (None) are NaN: less is certified then.
    """
    rows = len(variance), math.prod(variance.shape[1:])
    higher = np.full((*variance.shape, 2), math.nan) if moments is None else moments.reshape(*variance.shape, 2)
    return np.concatenate([x.reshape(rows) for x in (variance, higher[..., 0], higher[..., 1])], axis=1)


def common(
    distribution: str = "gaussian",
    sigma: float = 1.0,
    boundary: str = "mixture",
    rho: float | None = RHO,
    centre: float = 0.0,
    D: int = 1,
    dependent: bool = False,
    support: tuple[float, float] = (0.0, 1.0),
) -> Floats:
    """The numbers that all kinds have in common, checked.

    Args:
        distribution: "gaussian", "bernoulli", "student" or "bounded".
        sigma: known scale of a sample; "student": about what it may be, for the prior; others do not use it.
        boundary: "none": the evidence itself; "mixture" or "kaufmann-koolen".
        rho: pulls per arm at which the Gaussian mixture is sharpest; None: a mixture over several.
        centre: "student": about where means may be, for the prior.
        D: dimensions of an arm.
        dependent: whether the coordinates of a sample may depend on each other, for D > 1.
        support: "bounded": the lowest and the highest sample.

    Raises:
        ValueError: naming the value and what is allowed.
    """
    choice("distribution", distribution, list(CODES))
    choice("boundary", boundary, list(BOUNDARIES))
    if distribution in ("student", "bounded") and boundary == "kaufmann-koolen":
        raise ValueError(f"boundary={boundary!r} is for 'gaussian' and 'bernoulli', got distribution={distribution!r}")
    if D > 1 and boundary == "kaufmann-koolen":
        raise ValueError(f"arms of {D} dimensions need the mixture, got {boundary!r}")
    dependent = flag("dependent", dependent) and D > 1
    if dependent and distribution not in ("gaussian", "bounded"):
        raise ValueError(
            f"distribution={distribution!r} needs independent coordinates; where they may depend on each other (rows "
            "of data, several attributes of one measurement), arms are certified with distribution='gaussian'"
        )
    if rho is not None and boundary == "kaufmann-koolen":
        raise ValueError(f"rho belongs to boundary='mixture', got rho={rho!r:.200} with boundary='kaufmann-koolen'")
    variance = number("sigma", sigma, 1e-100, 1e100) ** 2
    found = np.zeros(COMMON)
    found[boundaries.DISTRIBUTION] = CODES[distribution]
    found[boundaries.VARIANCE] = 1.0 if distribution == "bernoulli" else variance
    found[boundaries.BOUNDARY] = BOUNDARIES[boundary]
    found[boundaries.RHO_AT] = 0.0 if rho is None else number("rho", rho, 0, above=True)
    found[boundaries.CENTRE], found[boundaries.PRIOR] = number("centre", centre), variance
    found[D_AT], found[DEPENDENT], found[NEEDED : NEEDED + 3] = D, dependent, -math.inf
    found[boundaries.PAIRS_AT] = boundary == "mixture" and rho is None
    if distribution == "bounded":
        low, high = interval("support", support)
        found[VARIANCE], found[boundaries.CENTRE], found[PRIOR] = 0.25 * (high - low) ** 2, low, high - low
        found[boundaries.RHO_AT] = boundaries.ROUNDED
    return found
