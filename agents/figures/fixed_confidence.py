"""Stopping times of the agents that stop by themselves, against delta, on the instances of fixed-confidence papers.

Drawn are pulls over the lower bound T* kl(delta, 1 - delta), T* being the characteristic time of the instance. No paper
prints these figures as they stand: Garivier & Kaufmann, COLT 2016, print mean numbers of pulls at delta = .1 for the
first two instances, of rules with a threshold of their own; see docs/instances.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .declared import declared
from .panels import Sweep

DELTAS = (0.1, 0.01, 0.001, 0.0001)
CERTIFIED = {"Evidence": "evidence", "Track-and-Stop": "track-and-stop"}
TOP_TWO = {"Top-two, EB-TCI": "top-two"}
BEST = {
    **CERTIFIED,
    **TOP_TWO,
    "KL-LUCB": "kl-lucb",
    "KL-LUCB, lil": "kl-lucb(threshold='lil')",
    "UGapEc": "ugape",
    "LUCB": "lucb",
    "LUCB, lil": "lucb(widths='lil')",
    "CLUCB": "clucb",
    "lil'UCB, heuristic": "lil-ucb(constants='heuristic')",
}
TOP = {label: name for label, name in BEST.items() if not label.startswith("lil'UCB")}
THRESHOLD = {**CERTIFIED, **TOP_TWO, "LSA, certified": "lsa(stop='certificate')", "HDoC": "hdoc"}
ALL_GOOD = {
    **CERTIFIED,
    "(ST)^2": "st2(bounds='running')",
    "EAST": "east",
    "Uniform elimination": "uniform-elimination",
}


def _against_delta(
    title: str, problem: str, kwargs: Mapping[str, object], agents: Mapping[str, str], deltas: Sequence[float] = DELTAS
) -> Sweep:
    """Mean pulls of these agents until they stop over the bound, against 1 / delta."""
    sweep = {1 / delta: {**kwargs, "delta": delta, "budget": None, "max_pulls": 10**9} for delta in deltas}
    env_id = f"bandit_envs/{problem}-v0"
    label = "pulls / lower bound"
    how: dict[str, Any] = {"log": True, "over_bound": True, "trials": 3000}  # those of Garivier & Kaufmann
    return Sweep(title, env_id, sweep, agents, 200, "total_pulls", label, "1 / delta", **how)


EXACT = {"criterion": "exact", "epsilon": 0.0}
PANELS = {
    "fixed-confidence-bestarm": [
        _against_delta(".5 .45 .43 .4", "BestArm", {"instance": "garivier2016-1", **EXACT}, BEST),
        _against_delta(".3 .21 .2 .19 .18", "BestArm", {"instance": "garivier2016-2", **EXACT}, BEST),
        _against_delta("Gaussian ladder, K = 10", "BestArm", {"instance": "jamieson2014-ladder", **EXACT}, BEST),
    ],
    "fixed-confidence-topk": [
        _against_delta("k = 3 of .5 .45 .43 .4", "TopK", {"instance": "garivier2016-1", "k": 3, **EXACT}, TOP),
        _against_delta("k = 3 of a Gaussian ladder", "TopK", {"instance": "jamieson2014-ladder", "k": 3, **EXACT}, TOP),
    ],
    "fixed-confidence-threshold": [
        _against_delta(".2 .. .8 around .5", "Threshold", {"instance": "tao2019-1"}, THRESHOLD)
    ],
    "fixed-confidence-allgood": [
        _against_delta("diverse means, n = 25", "AllGood", {"instance": "mason2020-3a"}, ALL_GOOD)
    ],
}
FIGURES = declared("fixed_confidence", PANELS)
