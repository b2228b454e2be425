"""Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Figures 4 and 5: F1, precision, recall on captions and cancer drugs."""

from __future__ import annotations

from .figure import Claim, Figure, Panel

__all__ = ["FIGURES_4_5"]

# The constants of the published experiments: widths with c = 2.08, running bounds, sigma 1.
RIVALS = {"UCB": "ucb", "APT (oracle)": "apt-oracle"}
CAPTIONS = {
    "(ST)^2": "st2(c=2.08, bounds='running')",
    "LUCB, k = 46 (oracle)": "lucb(k=46, widths='lil')",
    "LUCB, k = 23": "lucb(k=23, widths='lil')",
    "LUCB, k = 92": "lucb(k=92, widths='lil')",
    **RIVALS,
}
DRUGS = {"(ST)^2": "st2(c=2.08, bounds='running')", "LUCB, k = 34 (oracle)": "lucb(k=34, widths='lil')", **RIVALS}

BUDGETS = [250_000 * (j + 1) for j in range(12)]
SHORT = [500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000]
ENV = "bandit_envs/AllGood-v0"

PANELS = [
    *(Panel(f"Captions 651, {metric}", ENV, {"instance": "captions-651"}, BUDGETS, CAPTIONS, 600, key, metric)
      for metric, key in (("F1", "f1"), ("precision", "precision"), ("recall", "recall"))),
    Panel("ACVRL1 inhibitors, F1", ENV, {"instance": "kinase-acvrl1"}, SHORT, DRUGS, 600, "f1", "F1"),
]  # fmt: skip

FIGURES_4_5 = Figure(
    name="mason2020-figures-4-5",
    source="Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Figures 4 and 5",
    panels=PANELS,
    # "(ST)^2 outperforms all baselines including the oracle APT, and almost matches the performance of the top-k
    # oracle"; k = 23 and 92 "result in a poor performance"; "near-perfect precision quickly, matched only by UCB"
    claims=[
        *(Claim("Captions 651, F1", "(ST)^2", other, larger=True)
          for other in ("UCB", "APT (oracle)", "LUCB, k = 23", "LUCB, k = 92")),
        Claim("Captions 651, precision", "(ST)^2", "APT (oracle)", larger=True),
        *(Claim("ACVRL1 inhibitors, F1", "(ST)^2", other, larger=True) for other in RIVALS),
    ],
)  # fmt: skip
