"""Chen, Chen, Zhang & Zhou, ICML 2017, Figures 1 to 4: failure probability against the budget, four data sets.

A run fails where the aggregate regret of its answer exceeds epsilon = 0.01, which is the error of these instances. The
first round of AdaptiveTopK takes 49,000 pulls, and below that it samples uniformly: hence a line with other constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .claims import AnyClaim, Claim, Quote
from .figure import Figure, Values, alike
from .panels import AnyPanel, Panel, Sweep

__all__ = ["FIGURES"]

ENV = "bandit_envs/TopK-v0"
ADAPTIVE, CLUCB, OPT, POOLED = "AdaptiveTopK", "CLUCB", "OptMAI", "OptMAI, pooled means"
PRACTICAL = "AdaptiveTopK, practical"
AGENTS = {
    ADAPTIVE: "adaptive-top-k",
    CLUCB: "clucb",
    OPT: "opt-mai",
    POOLED: "opt-mai(reuse=True)",
    PRACTICAL: "adaptive-top-k(constants='practical')",
}
LARGEST = {"two-group": 100_000, "synthetic-0.5": 40_000, "uniform": 60_000, "synthetic-6": 80_000}
DATA = {name: range(5_000, largest + 1, 5_000) for name, largest in LARGEST.items()}  # the budgets
SIZES = (100, 250, 500)

OURS = {"": ADAPTIVE, "practical constants": PRACTICAL}  # by what a claim is read with
POOLINGS = (OPT, POOLED)


def _both(name: str, words: str, claims: Callable[[str], Sequence[AnyClaim]], reading: str = "") -> list[Quote]:
    """What is said of AdaptiveTopK, with the paper's constants and with practical ones."""
    quotes = []
    for constants, label in OURS.items():
        how = "; ".join(part for part in (reading, constants) if part)
        quotes.append(Quote(f"{name}-practical" if constants else name, words, claims(label), how))
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


def _figure(number: int, data: str) -> Figure:
    """The three panels of a data set."""
    titles = {K: f"{data}, K = {K}" for K in SIZES}
    panels: list[AnyPanel[Any]] = [
        Panel(title, ENV, _instance(data, K), list(DATA[data]), AGENTS, 200, "error_rate", "failure probability")
        for K, title in titles.items()
    ]
    small, _, large = titles.values()
    quotes = _both(
        "clucb",
        "AdaptiveTopK outperforms CLUCB-PAC in almost all the datasets",
        lambda one: [Claim(title, one, CLUCB) for title in titles.values()],
    )
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
    else:
        quotes += [
            Quote(
                f"small-{name}",
                "when K is relatively small, OptMAI has the best performance in most datasets",
                [Claim(small, one, other) for other in (ADAPTIVE, CLUCB)],
                f"K = 100, {reading}",
            )
            for name, reading, one in (("fresh", "fresh means", OPT), ("pooled", "pooled means", POOLED))
        ]
        quotes += _both(
            "large",
            "when K is large, AdaptiveTopK outperforms OptMAI",
            lambda one: [Claim(large, one, other) for other in POOLINGS],
            "K = 500",
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
    values = [Values({panel.title: tuple(sweep) for panel in panels}, "pulls ahead of OptMAI at p =", ",.0f")]
    return Figure("chen2017-extremes", "Chen, Chen, Zhang & Zhou, ICML 2017, section 3", panels, quotes, values=values)


FIGURES = alike([*(_figure(j + 1, data) for j, data in enumerate(DATA)), _extremes()])
