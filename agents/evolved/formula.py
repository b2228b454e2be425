"""evolved: an index of 18 parameters, and a small network that corrects it, tuned on random instances. Fixed budget.

The arm with the smallest index is pulled:

    index = alpha w + (beta + eta ln(T / 100 K)) ln n + gamma ln(w + delta / n)
            + sum over j = 1, 2 of c_j f(p_j ln(1 + w) + q_j ln n + r_j ln(n K / T) + s_j)                           (1)

with f(x) = x / (1 + |x|). No parameter has a unit: the evidence w of an arm is the number of its samples, divided by
the number that it takes to tell the arm from one on the boundary.

Special cases. With alpha = 0.675, beta = 1/2 and all other parameters 0 it is the index of LSA (Tao et al. 2019, with
their alpha = 1.35). With alpha = beta = 1, gamma = 1/2 and all others 0 it is, roughly, the index of `dp-index` far
from the horizon: minus the logarithm of the posterior error of an arm, e^-w / sqrt(w), per pull made.

What the other parameters are for. For an arm on the boundary, w = 0, the logarithm of w is not bounded: delta / n is
added to w. With more pulls per arm, pulls are better spent on smaller gaps. So the weight of ln n grows by
eta ln(T / 100 K), and an arm that is still undecided after many pulls is given up sooner. And a distance that is large
after a few samples is then most likely luck: it is shrunk as by nu further samples that lie on the boundary, and mu
says how fast nu grows with the pulls per arm. The two bends c_j f let the index depart from a straight line.

symbols     n pulls of the arm, d the distance of its empirical mean from the boundary, K arms, T budget
            sigma sub-Gaussian scale of the arms
            nu = |kappa| (T / 100 K)^mu samples on the boundary, by which the distance is shrunk to d n / (n + nu)
            m the mean at the shrunk distance from the boundary
            w = (1 - rho) n (d n / (n + nu))^2 / (2 sigma^2) + rho n kl(m, boundary), kl of Bernoulli arms;
               rho = 0 for arms that are not Bernoulli
departures  none: this is the source
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from bandit_envs.kernels import inlined, kernel

from ..core.agent import Floats
from .network import HUNDRED, own_features, single_correction

PARAMETERS = (
    *("alpha", "beta", "rho", "kappa", "gamma", "delta", "eta", "mu"),
    *(f"{name}{j}" for j in (1, 2) for name in "cpqrs"),
)
LSA = (0.675, 0.5, *[0.0] * 16)  # the index of LSA with alpha = 1.35
START = (1.0, 1.0, 1.0, 2.0, 0.5, 0.1, 0.0, 0.5, 0.0, 1.0, 0.0, 1.0, 0.0, *[0.0] * 5)  # where a search starts
MOST = 600.0  # an exponent that does not overflow
CLOSE = 1e-3  # boundaries of Bernoulli arms nearer to 0 or 1 are taken for it, and |delta| is larger by it


def at_budget(parameters: Floats, fair: float) -> Floats:
    """The same parameters (P, 18), with the weight of ln n for beta, and nu for kappa. fair: ln(T / K)."""
    own = parameters.copy()
    more = fair - HUNDRED
    own[:, 1] += parameters[:, 6] * more
    own[:, 3] = [abs(kappa) * math.exp(min(mu * more, MOST)) for kappa, mu in parameters[:, [3, 7]].tolist()]
    return own


@inlined
def _kl(m, b):
    """kl(m, b) of Bernoulli distributions, 0 < b < 1."""
    one = m * math.log(m / b) if m > 0.0 else 0.0
    zero = (1.0 - m) * math.log((1.0 - m) / (1.0 - b)) if m < 1.0 else 0.0
    return max(one + zero, 0.0)


@inlined
def evidence(n, d, centre, side, sigma2, g, row):
    """The evidence w; centre: of Bernoulli arms the boundary, else NaN; side * d = mean - centre; g: of `at_budget`."""
    drawn = d * n / (n + g[row, 3])
    w = n * drawn * drawn / (2.0 * sigma2)
    rho = min(max(g[row, 2], 0.0), 1.0)
    if rho > 0.0 and not math.isnan(centre):
        boundary = min(max(centre, CLOSE), 1.0 - CLOSE)
        w += rho * (n * _kl(min(max(centre + side * drawn, 0.0), 1.0), boundary) - w)
    return w


@inlined
def formula(n, w, fair, g, row):
    """The index [1] of an arm with n pulls and the evidence w."""
    ln_n, ln_w = math.log(n), math.log(1.0 + w)
    index = g[row, 0] * w + g[row, 1] * ln_n
    if g[row, 4] != 0.0:
        index += g[row, 4] * (math.log(n * w + abs(g[row, 5]) + CLOSE) - ln_n)
    for j in (8, 13):
        if g[row, j] != 0.0:
            x = g[row, j + 1] * ln_w + g[row, j + 2] * ln_n + g[row, j + 3] * (ln_n - fair) + g[row, j + 4]
            index += g[row, j] * x / (1.0 + abs(x))
    return index


class Own(NamedTuple):
    """What the index of a single arm is computed from."""

    centre: float  # boundary of Bernoulli arms, else NaN
    sigma2: float
    fair: float  # ln(T / K)
    parameters: Floats  # (P, 18), as of `at_budget`
    nets: Floats  # (P, LAYERS, HIDDEN), of `network`, or (0, 0, 0)
    faces: float  # ln max(m - 1, 1): m faces of the polyhedron that arms are judged by can meet, 0 where there is none
    sure: float  # the evidence from which on its side counts wholly: 1 where there is one, else 0


@inlined
def _index_at(n, margin, own, row):
    """The index of an arm with n >= 1 pulls whose empirical mean has this margin, by the parameters of a row."""
    side = 1.0 if margin >= 0.0 else -1.0
    w = evidence(n, abs(margin), own.centre, side, own.sigma2, own.parameters, row)
    index = formula(n, w, own.fair, own.parameters, row)
    if len(own.nets) > 0:
        features = own_features(n, w, own.centre + margin, own.fair)
        side *= min(w / own.sure, 1.0) if own.sure > 0.0 else 1.0
        index += single_correction(own.nets, row, features, side, own.fair, own.faces)
    return index


def arm_index(own: Own, n: float, margin: float) -> float:
    """The same for players, by the parameters of the only row."""
    return _index_at(n, margin, own, 0)  # type: ignore[no-any-return]


@kernel
def _indices(n, margin, own: Own, per_row: int, out):
    for i in range(len(n)):
        out[i] = _index_at(n[i], margin[i], own, i // per_row)


def indices(n: Floats, margin: Floats, own: Own, per_row: int) -> Floats:
    """Indices of single arms, (m,), of n >= 1 pulls and margins (m,); `per_row` arms in a row share parameters."""
    out = np.empty(len(n))
    _indices(n, margin, own, per_row, out)
    return out
