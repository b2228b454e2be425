"""Chen, Chen, Zhang & Zhou, ICML 2017, Figures 1 to 4: failure probability against the budget, four data sets.

A run fails where the aggregate regret of its answer exceeds epsilon = 0.01, which is the error of these instances. With
the paper's constants AdaptiveTopK is uniform sampling at all of these budgets: its first round cannot decide an arm,
and its second ends at 267,000 pulls. Hence a line of uniform sampling, and one with other constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import gymnasium as gym
import numpy as np

from ..evaluation import play
from .claims import AnyClaim, Claim, Found, Number, Quote, ratio
from .figure import Figure, Values, alike
from .panels import AnyPanel, Exact, Numbers, Panel, Sweep, bars

ENV = "bandit_envs/TopK-v0"
ADAPTIVE, CLUCB, OPT, POOLED = "AdaptiveTopK", "CLUCB", "OptMAI", "OptMAI, pooled means"
PRACTICAL, UNIFORM = "AdaptiveTopK, practical", "Uniform"
AGENTS = {
    ADAPTIVE: "adaptive-top-k",
    CLUCB: "clucb",
    OPT: "opt-mai",
    POOLED: "opt-mai(reuse=True)",
    PRACTICAL: "adaptive-top-k(constants='practical')",
    UNIFORM: "uniform",
}
LARGEST = {"two-group": 100_000, "synthetic-0.5": 40_000, "uniform": 60_000, "synthetic-6": 80_000}
DATA = {name: range(5_000, largest + 1, 5_000) for name, largest in LARGEST.items()}  # the budgets
SIZES = (100, 250, 500)

SAME = "of uniform sampling"  # what a verdict on AdaptiveTopK with the paper's constants is a verdict on
OURS = {"": ADAPTIVE, "practical constants": PRACTICAL}  # by what a claim is read with
POOLINGS = (OPT, POOLED)


def _both(
    name: str, words: str, claims: Callable[[str], Sequence[AnyClaim]], reading: str = "", beside: bool = False
) -> list[Quote]:
    """What is said of AdaptiveTopK, with the paper's constants and with practical ones."""
    quotes = []
    for constants, label in OURS.items():
        how = "; ".join(part for part in (reading, constants) if part)
        caveat = "" if constants else SAME
        quotes.append(
            Quote(
                f"{name}-practical" if constants else name, words, claims(label), how, caveat, beside or bool(constants)
            )
        )
    return quotes


def _instance(data: str, K: int) -> dict[str, str]:
    """Keyword arguments of the environment."""
    return {"instance": f"chen2017-{data}(K={K})"}


def _lead(title: str, sweep: Mapping[float, tuple[str, int]], label: str) -> Sweep:
    """By how many pulls the others are ahead of OptMAI on several pairs (data, K); on the runs of the other panels."""
    kwargs = {x: _instance(*pair) for x, pair in sweep.items()}
    budgets = {x: list(DATA[data]) for x, (data, _) in sweep.items()}
    ahead = "pulls ahead of OptMAI"
    return Sweep(title, ENV, kwargs, AGENTS, 200, "error_rate", ahead, label, budgets=budgets, rival=OPT)


def _number(name: str) -> Found:
    return lambda _, result: result.number(name)


T, H = ((_number(f"{name}, K = 500"), _number(f"{name}, K = 100")) for name in "tH")


SPREAD, DECIDED = "largest less least pulls", "arms with as many pulls, practical"

# What has no chance in it: the hardness of two-group, and how AdaptiveTopK spreads its pulls in an episode.


def _hardness(seed: int) -> Numbers:
    """t(epsilon, K) and H(t, epsilon) of two-group. [equations 3 to 6]"""
    found: dict[str, float] = {}
    for K in SIZES:
        envs: Any = gym.make_vec(ENV, num_envs=1, instance=f"chen2017-two-group(K={K})").unwrapped
        theta, epsilon = np.sort(envs.instance.arms.means)[::-1], envs.task.parameters["epsilon"]
        gaps = np.where(np.arange(len(theta)) < K, theta - theta[K], theta[K - 1] - theta)
        able = [t for t in range(K) if max(gaps[K - t - 1], gaps[K + t]) * t <= K * epsilon]
        t = max(able)
        psi = max(epsilon, min(gaps[K - t - 1], gaps[K + t]))
        found |= {f"t, K = {K}": t, f"H, K = {K}": float((np.maximum(gaps, psi) ** -2.0).sum())}
    return bars(found, {"env_id": ENV})


def _spreads(data: str, seed: int) -> Numbers:
    """Of an episode at the largest budget: by how many pulls arms differ, and the most arms that a round decides."""
    found: dict[str, float] = {}
    for K in SIZES:
        kwargs = {**_instance(data, K), "budget": LARGEST[data]}
        paper, ours = (play(AGENTS[label], ENV, env_kwargs=kwargs, seed=seed).pulls for label in (ADAPTIVE, PRACTICAL))
        found |= {f"{SPREAD}, K = {K}": float(np.ptp(paper))}
        found |= {f"{DECIDED}, K = {K}": float(np.unique(ours, return_counts=True)[1].max())}
    return bars(found, {"env_id": ENV})


def _figure(number: int, data: str) -> Figure:
    """The three panels of a data set."""
    titles = {K: f"{data}, K = {K}" for K in SIZES}
    panels: list[AnyPanel[Any]] = [
        Panel(title, ENV, _instance(data, K), list(DATA[data]), AGENTS, 200, "error_rate", "failure probability")
        for K, title in titles.items()
    ]
    small, _, large = titles.values()
    pulls = Exact("pulls of AdaptiveTopK", partial(_spreads, data))
    panels.append(pulls)
    quotes: list[Quote | AnyClaim] = list(
        _both(
            "clucb",
            "AdaptiveTopK outperforms CLUCB-PAC in almost all the datasets",
            lambda one: [Claim(title, one, CLUCB) for title in titles.values()],
        )
    )
    quotes += [
        Number(pulls.title, f"{ADAPTIVE} pulls all arms alike, K = {K}", _number(f"{SPREAD}, K = {K}"), 0, 0)
        for K in SIZES
    ]
    if data == "two-group":
        grows = "advantage against K"
        panels.append(_lead(grows, {K: (data, K) for K in SIZES}, "K"))
        quotes += _both(
            "all-k",
            "AdaptiveTopK outperforms other algorithms significantly for all values of K",
            lambda one: [Claim(title, one, other) for title in titles.values() for other in (CLUCB, *POOLINGS)],
        )
        quotes += _both(
            "grows",
            "as K increases, the advantage of AdaptiveTopK over other algorithms (OptMAI in particular) becomes more "
            "significant",
            lambda one: [Claim(grows, one, other, than=100) for other in POOLINGS],
            "pulls ahead at K = 250 and 500 against K = 100",
        )
        hard = Exact("hardness of two-group", _hardness)
        panels.append(hard)
        quotes += [
            Quote(
                "hardness",
                "This can be explained by the definition of H(t,epsilon): t = t(epsilon, K) usually becomes bigger as "
                "K grows, leading to a smaller hardness parameter H(t,epsilon)",
                [
                    ratio(hard.title, "t at K = 500 is larger than at K = 100", *T, 1.01),
                    ratio(hard.title, "H at K = 500 is smaller than at K = 100", *H, most=0.99),
                ],
            ),
            Quote(
                "many",
                "the inner while loop (Line 7) of Algorithm 1 make it possible to accept/reject a large number of "
                "arms in one round",
                [
                    Number(
                        pulls.title,
                        f"a round decides a tenth of the arms, K = {K}",
                        _number(f"{DECIDED}, K = {K}"),
                        100,
                    )
                    for K in SIZES
                ],
                "practical constants: with the paper's no round decides an arm",
            ),
        ]
    else:
        quotes += [
            Quote(
                f"small-{name}",
                "when K is relatively small, OptMAI has the best performance in most datasets",
                [Claim(small, one, other) for other in (ADAPTIVE, CLUCB)],
                f"K = 100, {reading}",
                beside=one == POOLED,
            )
            for name, reading, one in (("fresh", "fresh means", OPT), ("pooled", "pooled means", POOLED))
        ]
        quotes += _both(
            "large",
            "when K is large, AdaptiveTopK outperforms OptMAI",
            lambda one: [Claim(large, one, other) for other in POOLINGS],
            "K = 500",
            beside=True,
        )
    shown = [x for x in (10_000, 20_000, 30_000, 40_000, 50_000, 60_000) if x in DATA[data]]
    values = [Values({title: shown for title in titles.values()}, "failure probability at")]
    source = f"Chen, Chen, Zhang & Zhou, ICML 2017, Figure {number}"
    return Figure(f"chen2017-figure-{number}", source, panels, quotes, values=values)


def _extremes() -> Figure:
    """The text on SYNTHETIC-p, p = .5, 1 (UNIFORM) and 6, for each K: a comparison of Figures 2 to 4, on their runs."""
    sweep = {0.5: "synthetic-0.5", 1.0: "uniform", 6.0: "synthetic-6"}
    panels = [_lead(f"K = {K}", {p: (data, K) for p, data in sweep.items()}, "p") for K in SIZES]
    quotes = _both(
        "extremes",
        "the advantage of AdaptiveTopK over other algorithms (OptMAI in particular) becomes significant in both "
        "extreme scenarios, i.e., when arms are very well separated (p << 1) and when arms are very close to the "
        "separation boundary (p >> 1)",
        lambda one: [Claim(panel.title, one, other, than=1.0) for panel in panels for other in POOLINGS],
        "pulls ahead at p = .5 and 6 against p = 1",
    )
    quotes += _both(
        "large-areas",
        "when K is large, AdaptiveTopK outperforms OptMAI",
        lambda one: [Claim(panels[-1].title, one, other) for other in POOLINGS],
        "K = 500: the areas below the curves, as most points are at 1 or 0 for both",
    )
    values = [Values({panel.title: tuple(sweep) for panel in panels}, "pulls ahead of OptMAI at p =", ",.0f")]
    return Figure("chen2017-extremes", "Chen, Chen, Zhang & Zhou, ICML 2017, section 3", panels, quotes, values=values)


FIGURES = alike([*(_figure(j + 1, data) for j, data in enumerate(DATA)), _extremes()])
