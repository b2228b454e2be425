"""Networks in compiled code: what `policy.ArmNetwork` computes, without PyTorch.

Most of what the logit of an arm is made of changes only where the arm's own features do: those in a form without upper
bounds, the part of the logit that is no network's (its `head`), and what the own features add to the first layer. That
is kept, and computed anew for arms that have changed. The features that change with every pull, `share`, `left` and
`horizon`, are added to the first layer by three rows of weights.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from bandit_envs import FEATURES, Problem, Task, inlined

from ..core.agent import Floats
from .layers import LANES, further, load, muladd, padded, silu, spread, total

__all__ = [
    "CLOSE",
    "COMMON",
    "HALF_EVIDENCE",
    "HALF_FAIR",
    "HALF_PULLS",
    "INPUTS",
    "LN_100",
    "LOCAL",
    "MOST",
    "NEVER",
    "OPENED",
    "OWN",
    "TIE",
    "Known",
    "Network",
    "alone",
    "first_sums",
    "network_of",
    "numbers_of",
    "opened_doubt",
    "opened_pulls",
    "single",
]

LN_100, MOST = math.log(100.0), 3.0  # from e^MOST * 100 pulls per arm on, nu grows no more
HALF_EVIDENCE, HALF_PULLS, HALF_FAIR = 15.0, 8.0, 5.0  # x / (x + HALF) brings features without upper bounds into [0, 1)
NEVER = -1e8  # the logit of an action that is not to be taken: its probability is 0, and so is its share of the entropy
CLOSE, TIE = 1e-2, 1e-9  # differences of logits, far above the rounding errors of single and of double precision

# The features that are an arm's own, and those of them that do not tell of the time either.
OWN = np.array([FEATURES.index(name) for name in ("pulls", "width", "margin", "score", "error", "doubt")])
LOCAL = OWN[1:]
COMMON = [FEATURES.index(name) for name in ("share", "left", "horizon")]
OPENED = 3  # inputs that are features without upper bounds, closed
INPUTS = len(OWN) + OPENED  # kernel constants: of the first layer, but for the common ones


class Network(NamedTuple):
    """The weights of a `policy.ArmNetwork`, in one precision; those of a layer are (inputs, outputs), see `padded`.

    Layers that there are not have no inputs, or weights of 0.
    """

    second: Any  # (H, H): from the first layer to codes
    mean: Any  # (H, H): from the means of the codes to the context, and from their maxima
    largest: Any
    around: Any  # (H, H): from the context to the arms
    arm: Any  # (H, H): from the code of an arm; without context, from the first layer
    first: Any  # (9, H): from an arm's own features, and three of them without bounds, closed
    common: Any  # (3, H): from share, left, horizon
    first_bias: Any  # (H,)
    second_bias: Any
    context_bias: Any
    arm_bias: Any
    logit: Any  # (H,): to the logit of an arm, and to that of stopping
    stop: Any
    logit_bias: float
    stop_bias: float
    stops: bool
    slopes: Floats  # (3,)
    prior: Floats  # (2,): p and q
    steep: float


def network_of(network: Any, kind: Any) -> Network:
    """The weights of a `policy.ArmNetwork` in a precision, np.float32 or np.float64.

    Raises:
        ValueError: for weights that are neither in single nor in double precision.
    """
    told = {name: weight.detach().numpy() for name, weight in network.named_parameters()}
    dtype = told["arm.weight"].dtype
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"the weights of a network must be in single or in double precision, got {dtype}")
    H, context = len(told["arm.weight"]), told["context.0.weight"].T
    if "own.0.weight" in told:
        first, common, none = np.pad(told["own.0.weight"].T, [(1, 0), (0, 0)]), np.zeros((3, H)), np.zeros((0, H))
        bias, second, around = told["own.0.bias"], none, none
    else:
        encoder = told["encoder.0.weight"].T
        first, common = np.concatenate([encoder[OWN], encoder[len(FEATURES) :]]), encoder[COMMON]
        bias, second, around = told["encoder.0.bias"], told["encoder.2.weight"].T, told["surroundings.weight"].T
    squares = second, context[:H], context[H:], around, told["arm.weight"].T
    biases = bias, told["encoder.2.bias"], told["context.0.bias"], told["arm.bias"]
    rows = first, common, *biases, told["arm_logit.weight"][0], told["stop_logit.weight"][0]
    arrays = [padded(weights.astype(kind), rows=True) for weights in squares] + [padded(w.astype(kind)) for w in rows]
    ends = float(told["arm_logit.bias"][0]), float(told["stop_logit.bias"][0]), bool(network.stop)
    slopes, prior = told["slopes.weight"][0].astype(np.float64), told["prior"].astype(np.float64)
    return Network._make([*arrays, *ends, slopes, prior, float(network.steep)])


class Known:
    """The weights that a memory was made with: a base of memories.

    Args:
        network: a `policy.ArmNetwork`.
    """

    def __init__(self, network: Any) -> None:
        self._weights = _bytes_of(network)
        self._look_at(network)

    def _look_at(self, network: Any) -> None:
        """Note how often PyTorch has written to each of the weights, which are those of this memory now."""
        self._last = network, [(weight, weight._version) for weight in network.parameters()]

    def is_of(self, network: Any) -> bool:
        """Whether a network has these weights."""
        last, written = self._last
        if network is last and all(weight._version == version for weight, version in written):
            return True
        same = _bytes_of(network) == self._weights
        if same:
            self._look_at(network)
        return same

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles keep: not the network."""
        return vars(self) | {"_last": (None, [])}


def _bytes_of(network: Any) -> bytes:
    """All weights of a network."""
    return b"".join(weight.detach().numpy().tobytes() for weight in network.parameters())


def numbers_of(task: Task, problem: Problem) -> tuple[float, float, float, float]:
    """The last arguments of `arm_features` for a task: unit, sigma, theta, tolerance."""
    known = task.law == "bernoulli" and task.D == 1 and problem.boundary is not None
    theta = problem.boundary if known else math.nan
    return 1.0 / math.log1p(task.scale), float(task.sigma), float(theta), float(problem.tolerance)  # type: ignore[arg-type]


# --- an arm by itself -------------------------------------------------------------------------------------------------


@inlined
def single(feature: Any) -> Any:
    """A feature in single precision, as the environment shows it, but held as a double."""
    return np.float64(np.float32(feature))


@inlined
def unbounded(prior: Any, ln_K: Any, pulls: Any, width: Any) -> Any:
    """What follows from the pulls n of an arm: n / (n + nu), ln(1 + n), and how rich the episode is.

    That is ln((1 + scale) / 100 K), which is read off the pulls of the arm; at least -ln 100.

    Args:
        prior: p and q. ln_K: ln K.
        pulls, width: features of the arm.
    """
    ln_n = -2.0 * math.log(width)
    rich = max(ln_n / max(pulls, 1e-6) - ln_K, 0.0) - LN_100
    n = 1.0 / (width * width) - 1.0
    return n / (n + math.exp(prior[0] + prior[1] * min(rich, MOST))), ln_n, rich


@inlined
def closed(ln_n: Any, rich: Any) -> Any:
    """Two of these, brought into [0, 1)."""
    return ln_n / (ln_n + HALF_PULLS), (rich + LN_100) / (rich + LN_100 + HALF_FAIR)


@inlined
def opened_pulls(net: Any, ln_K: Any, pulls: Any, width: Any) -> Any:
    """What follows from the pulls of an arm: two closed features; and `trust` and `rest`, by which the head is made.

    The head is what a logit is made of but for the output of the network: trust * evidence + rest.

    Args:
        net: a `Network`. ln_K: ln K.
        pulls, width: features of the arm, as doubles.
    """
    ratio, ln_n, rich = unbounded(net.prior, ln_K, pulls, width)
    first, second = closed(ln_n, rich)
    trust, rest = (net.slopes[0] - 1.0) * (ratio * ratio), net.slopes[1] * ln_n + net.slopes[2] * (ln_n * rich) - ln_n
    return first, second, trust, net.logit_bias + rest


@inlined
def opened_doubt(doubt: Any) -> Any:
    """The evidence that a feature tells, and closed."""
    evidence = 4.0 / doubt - 4.0
    return evidence, evidence / (evidence + HALF_EVIDENCE)


@inlined
def first_sums(net: Any, x: Any, at: Any) -> Any:
    """LANES sums of the first layer, from `at` on, of the nine inputs x that are an arm's own."""
    s, H = load(net.first_bias, at), len(net.first_bias)
    for j in range(INPUTS):
        s = muladd(x[j], load(net.first, j * H + at), s)
    return s


@inlined
def alone(net: Any, ln_K: Any, pulls: Any, width: Any, margin: Any, score: Any, error: Any, doubt: Any) -> Any:
    """The logit of an arm, by a network without context."""
    ln_n, fair, trust, rest = opened_pulls(net, ln_K, pulls, width)
    evidence, certain = opened_doubt(doubt)
    x = (pulls, width, margin, score, error, doubt, certain, ln_n, fair)
    sums = spread(0.0)
    for at in range(0, len(net.arm_bias), LANES):
        s = load(net.arm_bias, at)
        for row in range(0, len(net.arm_bias), LANES):
            s = further(silu(first_sums(net, x, row)), row, net.arm, at, s)
        sums = muladd(silu(s), load(net.logit, at), sums)
    return net.steep * (total(sums) + trust * evidence + rest)
