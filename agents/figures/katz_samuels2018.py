"""Katz-Samuels & Scott, ICML 2018, Figures 1 to 7: logarithm of the failure probability against time, one run each.

Beside the printed panels: experiments 1 and 3 with tolerance 0 and the Gaussian crowd workers, whose figures are in the
paper's supplement, with standard deviations of each worker, of each scale, and one for all; experiment 4 on rows of
norm 1, and experiment 5 on rows as written, as 4 needs them. LSA on margins is not in the paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from .claims import Claim, Found, Level, Number, Quote, last, printed, ratio
from .figure import Figure, Values, alike
from .panels import Exact, Numbers, Panel, bars, log_rates

UCBE = {f"MD-UCBE[{scale}]": f"md-ucbe(scale={scale})" for scale in (".1", "1", "10", "100")}
AGENTS = {"MD-APT": "md-apt", "MD-SAR": "md-sar", "UA": "uniform", **UCBE, "LSA": "lsa"}

PAPER = {
    "1: four groups, irrelevant arms": ("katz-samuels2018-1", 2000),
    "2: four groups": ("katz-samuels2018-2", 2000),
    "3: linear progression": ("katz-samuels2018-3", 2000),
    "4: simplex": ("katz-samuels2018-4", 2000),
    "5: ordered polyhedron": ("katz-samuels2018-5", 2000),
    "6: dose-finding": ("dose-finding", 1000),
    "7: crowdsourcing": ("crowdsourcing", 4000),
}
BESIDE = {
    "1 with tolerance 0": ("katz-samuels2018-1(tolerance=0)", 2000),
    "3 with tolerance 0": ("katz-samuels2018-3(tolerance=0)", 2000),
    "4 on rows of norm 1": ("katz-samuels2018-4(normalise=True)", 2000),
    "5 on rows as written": ("katz-samuels2018-5(normalise=False)", 2000),
    "7 with Gaussian workers": ("crowdsourcing(gaussian=True)", 4000),
    "7, Gaussian, sd pooled by scale": ("crowdsourcing(gaussian='pooled')", 4000),
    "7, Gaussian, sd .185": ("crowdsourcing(gaussian=.185)", 4000),
}
ONE_HARD, THREE_HARD, NORM, WRITTEN, GAUSSIAN, POOLED, COMMON = BESIDE
ONE, TWO, THREE, FOUR, FIVE, DOSES, CROWD = PAPER


PANELS = [
    Panel(
        title,
        "bandit_envs/Feasible-v0",
        {"instance": name},
        [T * (j + 1) // 10 for j in range(10)],
        AGENTS,
        2000,
        "error_rate",
        "ln(failure probability)",
        at=True,
    )
    for title, (name, T) in (PAPER | BESIDE).items()
]

SYNTHETIC = (ONE, TWO, THREE, FOUR, FIVE)
CHOSEN, OURS = ("MD-APT", "MD-UCBE[10]"), ("MD-APT", "MD-SAR")
SLIGHTLY = 0.1  # the largest difference of failure probabilities that is called slight


def pulled(title: str, x: int, agent: str, arm: int, value: float, tolerance: float = 0.05) -> Number:
    """An agent's mean pulls of an arm at x, the last point, are a number that the paper prints, up to a part of it."""
    claim = f"{agent} pulls arm {arm} {value:g} times, within {100 * tolerance:g} %"
    least, most = value - tolerance * value, value + tolerance * value
    return Number(title, claim, lambda panel, result: float(panel.pulls(result, agent)[arm]), least, most, x)


def _until_3000(title: str) -> list[Claim]:
    """Who is ahead with the workers, and until when; checkpoints are 400 pulls apart."""
    others = ("MD-SAR", "UA", "MD-UCBE[.1]", "MD-UCBE[1]", "MD-UCBE[100]")
    return [Claim(title, name, other, until=2800) for name in CHOSEN for other in others]


def _after_3000(title: str) -> list[Claim]:
    return [Claim(title, "MD-SAR", name, since=3200) for name in CHOSEN]


def _most(agent: str, arm: int | None = None) -> Found:
    """An agent's mean pulls of an arm at the last point; of its most pulled one."""
    return lambda panel, result: float(
        panel.pulls(result, agent).max() if arm is None else panel.pulls(result, agent)[arm]
    )


def _sensitive(titles: Sequence[str]) -> list[Number]:
    """The worst of the settings of MD-UCBE fails twice as often as the best."""
    told = "the worst MD-UCBE fails at least 2 times as often as the best"
    return [ratio(title, told, last(max, *UCBE), last(min, *UCBE), 2) for title in titles]


def _finals(title: str, within: float, reading: str, beside: str = "") -> list[Quote]:
    """The final error rates with the workers; `beside`: the end of the names, on a crowd that is not the paper's."""
    rates = {
        "ua": ("UA has a final error rate of roughly 52%", "UA", 0.52),
        "sar": ("whereas MD-SAR has a final error rate of roughly 5%", "MD-SAR", 0.05),
    }
    return [
        Quote(
            f"final-{key}{beside}", words, [Level(title, agent, x, 4000, within=within)], reading, beside=bool(beside)
        )
        for key, (words, agent, x) in rates.items()
    ]


TENTH = "UA fails ten times as often as the better of MD-SAR and MD-APT"
TWICE = "MD-APT pulls arm 4 at least twice as often as MD-SAR"
EVEN = "MD-SAR pulls its most pulled arm less often than MD-APT"


def _workers(seed: int) -> Numbers:
    """Workers of the crowd that are good, bad and within the tolerance of the boundary."""
    envs: Any = gym.make_vec("bandit_envs/Feasible-v0", num_envs=1, instance="crowdsourcing").unwrapped
    margins = envs.problem.margin(envs.instance.arms.means[None])[0]
    free = np.abs(margins) <= envs.task.parameters["tolerance"]
    found = {"workers": len(free), "good": (margins > 0) & ~free, "bad": (margins < 0) & ~free, "irrelevant": free}
    return bars({name: int(np.sum(x)) for name, x in found.items()}, {"env_id": "bandit_envs/Feasible-v0"})


WORKERS = Exact("workers of the crowd", _workers)

FIGURE_1_7 = Figure(
    name="katz-samuels2018-figures-1-7",
    source="Katz-Samuels & Scott, ICML 2018, Figures 1 to 7",
    panels=[*PANELS, WORKERS],
    claims=[
        *Quote.readings(
            "MD-APT performs better than MD-SAR in experiments 1, 4, and 5",
            ("apt-better", [Claim(title, "MD-APT", "MD-SAR") for title in (ONE, FOUR, FIVE)]),
            ("apt-better-norm-1", [Claim(NORM, "MD-APT", "MD-SAR")], "experiment 4 on rows of norm 1"),
            ("apt-better-as-written", [Claim(WRITTEN, "MD-APT", "MD-SAR")], "experiment 5 on rows as written"),
        ),
        Quote(
            "apt-worse-2",
            "and worse than MD-SAR in experiments 2 and 3",
            [Claim(TWO, "MD-SAR", "MD-APT")],
            "experiment 2",
        ),
        Quote(
            "apt-worse-3",
            "and worse than MD-SAR in experiments 2 and 3",
            [Claim(THREE, "MD-SAR", "MD-APT")],
            "experiment 3",
        ),
        *Quote.readings(
            "we observe a similar phenomenon in a variant of experiment 3 where we set epsilon = 0",
            (
                "apt-worse-3-tolerance-0",
                [ratio(THREE_HARD, TWICE, _most("MD-APT", 4), _most("MD-SAR", 4), 2, x=2000)],
                "experiment 3 with tolerance 0: MD-APT pulls arm 4, the nearest to the boundary, twice as often as "
                "MD-SAR",
            ),
            ("apt-worse-3-tolerance-0-errors", [Claim(THREE_HARD, "MD-SAR", "MD-APT")], "read as: MD-SAR is ahead"),
        ),
        Quote(
            "spreads",
            "on the other hand, MD-SAR utilizes knowledge of the time horizon T to effectively spread out samples",
            [ratio(title, EVEN, _most("MD-SAR"), _most("MD-APT"), most=0.99) for title in (TWO, THREE_HARD)],
            "the most pulled arm gets a smaller share of the pulls than MD-APT's, in experiment 2 and in 3 with "
            "tolerance 0",
        ),
        Quote(
            "counteracts",
            "the epsilon parameter can be used to counteract the sensitivity of MD-APT to arms with means near the "
            "boundary",
            [Claim(ONE_HARD, "MD-SAR", "MD-APT", since=1000), Claim(ONE, "MD-APT", "MD-SAR", until=1000)],
            "in experiment 1 MD-APT falls behind MD-SAR from 1000 pulls on with tolerance 0, and is ahead with it",
        ),
        Quote(
            "too-hard",
            "otherwise the difficulty of the problem prevents any algorithm from achieving substantial progress after "
            "2000 time steps",
            [Level(ONE_HARD, name, 0.5, 2000, above=True) for name in AGENTS if name != "LSA"],
            "experiment 1 with tolerance 0: all fail in more than half of the runs",
        ),
        Quote(
            "sensitive",
            "The performance of MD-UCBE is very sensitive to the selection of its hyperparameter",
            _sensitive(SYNTHETIC),
            "the worst of the four fails at least twice as often as the best at the full budget",
        ),
        Quote(
            "sensitive-summary",
            "although MD-UCBE is a competitive algorithm, it is highly sensitive to hyperparameter selection",
            _sensitive(list(PAPER)),
            "the worst of the four fails at least twice as often as the best at the full budget",
        ),
        Quote(
            "factor",
            "in several of our experiments, our methods find the feasible arms with a probability that is a factor of "
            "10 better than that of a uniform allocation strategy",
            [ratio(t, TENTH, last(min, "UA"), last(min, "MD-SAR", "MD-APT"), 10) for t in (ONE, THREE, CROWD)],
            "several of the experiments: UA fails ten times as often as the better of MD-SAR and MD-APT in 1, 3 and "
            "the crowd",
        ),
        Quote(
            "workers",
            "There is a total of 38 workers, where 30 workers are bad arms, 3 workers are good arms, and 5 workers "
            "are irrelevant",
            [
                printed(WORKERS.title, "workers", 38),
                printed(WORKERS.title, "bad", 30),
                printed(WORKERS.title, "good", 3),
                printed(WORKERS.title, "irrelevant", 5),
            ],
        ),
        Quote(
            "arm-8",
            "MD-APT pulls arm 8 on average 904.8125 times, whereas MD-SAR pulls arm 8 on average 317.751 times",
            [pulled(TWO, 2000, "MD-APT", 8, 904.8125), pulled(TWO, 2000, "MD-SAR", 8, 317.751)],
        ),
        Quote(
            "well",
            "MD-UCBE[1] and MD-UCBE[10] tend to do well",
            [Claim(title, name, "UA") for title in SYNTHETIC for name in ("MD-UCBE[1]", "MD-UCBE[10]")],
            "ahead of UA in experiments 1 to 5",
        ),
        Quote(
            "too-much",
            "MD-UCBE[100] explores too much so that it tends to perform only slightly better than UA",
            [
                *(Claim(title, "MD-UCBE[100]", "UA") for title in SYNTHETIC),
                *(Claim(title, "MD-UCBE[100]", "UA", within=SLIGHTLY) for title in SYNTHETIC),
            ],
            "slightly: by at most .1",
        ),
        Quote(
            "never",
            "MD-UCBE[.1] does not explore enough; it never makes progress in solving the problems",
            [Claim(title, "UA", "MD-UCBE[.1]") for title in SYNTHETIC],
        ),
        *Quote.readings(
            "MD-SAR and MD-APT tend to perform dramatically better than UA",
            ("ua", [Claim(title, name, "UA") for title in PAPER for name in OURS]),
            ("ua-as-written", [Claim(WRITTEN, name, "UA") for name in OURS], "experiment 5 on rows as written"),
        ),
        Quote(
            "doses",
            "MD-APT and MD-UCBE[10] perform better than the rest of the algorithms",
            [
                Claim(DOSES, name, other)
                for name in CHOSEN
                for other in ("MD-SAR", "UA", "MD-UCBE[.1]", "MD-UCBE[1]", "MD-UCBE[100]")
            ],
            "doses",
        ),
        Quote(
            "doses-ucbe-1",
            "MD-UCBE[1] performs slightly worse than UA",
            [Claim(DOSES, "UA", "MD-UCBE[1]"), Claim(DOSES, "MD-UCBE[1]", "UA", within=SLIGHTLY)],
            "doses; slightly: by at most .1",
        ),
        Quote(
            "doses-sar",
            "MD-SAR only performs slightly better than UA",
            [Claim(DOSES, "MD-SAR", "UA"), Claim(DOSES, "MD-SAR", "UA", within=SLIGHTLY)],
            "doses; slightly: by at most .1",
        ),
        Quote(
            "until-3000", "until roughly time step 3000, MD-APT and MD-UCBE[10] perform the best", _until_3000(CROWD)
        ),
        Quote(
            "after-3000", "afterwards, MD-SAR does substantially better than MD-APT and MD-UCBE[10]", _after_3000(CROWD)
        ),
        Quote(
            "marginally",
            "MD-UCBE[1] and MD-UCBE[100] perform only marginally better than UA",
            [
                *(Claim(CROWD, name, "UA") for name in ("MD-UCBE[1]", "MD-UCBE[100]")),
                *(Claim(CROWD, name, "UA", within=SLIGHTLY) for name in ("MD-UCBE[1]", "MD-UCBE[100]")),
            ],
            "crowd; marginally: by at most .1",
        ),
        *_finals(CROWD, 0.03, "± 3 %"),
        *(
            quote
            for title, name in ((POOLED, "pooled"), (COMMON, "common"))
            for quote in (
                *_finals(title, 0.05, f"{title}; ± 5 %", f"-{name}"),
                Quote(
                    f"after-3000-{name}",
                    "afterwards, MD-SAR does substantially better than MD-APT and MD-UCBE[10]",
                    _after_3000(title),
                    title,
                    beside=True,
                ),
            )
        ),
        *Quote.readings(
            "we simulate each arm as a Gaussian distribution; the results are very similar",
            ("gaussian", [*_until_3000(GAUSSIAN), *_after_3000(GAUSSIAN)]),
            ("gaussian-pooled", [*_until_3000(POOLED), *_after_3000(POOLED)], POOLED),
        ),
    ],
    transform=log_rates,
    values=[
        Values({panel.title: (panel.budgets[-1],) for panel in PANELS}, "failures at the full budget", ".1%"),
        Values({title: (2800, 3600, 4000) for title in (CROWD, GAUSSIAN, POOLED, COMMON)}, "failures, crowd", ".1%"),
    ],
)

FIGURES = alike([FIGURE_1_7])
