"""The tasks of the splits: twelve settings, a budget and a delta for each problem, with seeds of their own.

They say what to give to `reset`, and nothing of the arms.
"""

from __future__ import annotations

from typing import Any

DELTA: dict[str, Any] = {"delta": 0.1, "max_pulls": 2000}
CORNER: dict[str, Any] = {"A": [[-1.0, 0.0], [0.0, 1.0]], "b": [-0.5, 0.5]}
GAUSSIAN = {"sampler": {"distribution": "gaussian", "arms": 6, "mean": {"normal": [0.0, 1.0]}}}
GAPS = {"sampler": {"arms": 6, "mean": {"around": [0.5, 0.15, 0.4]}}}
SETTINGS: list[dict[str, Any]] = [
    {"problem": "Threshold", "instance": "sampler(arms=6)", "threshold": 0.5, "budget": 60},
    {"problem": "BestArm", "instance": "sampler(arms=5)", "budget": 50, "story": "adverts"},
    {"problem": "TopK", "instance": "sampler(arms=8)", "k": 2, "budget": 80, "story": "assays"},
    {"problem": "AllGood", "instance": "sampler(arms=6)", "epsilon": 0.1, "budget": 60, "story": "adverts"},
    {"problem": "Feasible", "instance": "sampler(arms=5, dimensions=2)", "budget": 50, "story": "assays", **CORNER},
    {"problem": "BetterThanControl", "instance": "sampler(arms=5)", "margin": 0.05, "budget": 60},
    {"problem": "Threshold", "instance": GAPS, "threshold": 0.5, **DELTA, "story": "assays"},
    {"problem": "BestArm", "instance": GAUSSIAN, "epsilon": 0.2, "criterion": "each", **DELTA},
    {"problem": "TopK", "instance": GAUSSIAN, "k": 3, "epsilon": 0.3, "criterion": "each", **DELTA, "story": "adverts"},
    {"problem": "AllGood", "instance": GAUSSIAN, "epsilon": 0.5, "slack": 0.3, **DELTA, "story": "assays"},
    {"problem": "Feasible", "instance": "sampler(arms=4, dimensions=2)", **CORNER, **DELTA, "story": "adverts"},
    {"problem": "BetterThanControl", "instance": GAUSSIAN, "margin": 0.2, "tolerance": 0.2, **DELTA},
]
SPLITS = {"train": (1200, 1_000_000), "validation": (240, 2_000_000), "test": (240, 3_000_000)}  # tasks, first seed


def task(split: str, index: int) -> dict[str, Any]:
    """Task `index` of a split: its id, and in `reset` what `reset` takes; IndexError where there is none."""
    count, first = SPLITS[split]
    if not 0 <= index < count:
        raise IndexError(f"index must be from 0 to {count - 1}, got {index}")
    setting = SETTINGS[index % len(SETTINGS)]
    return {"id": f"{split}-{index}", "index": index, "reset": {**setting, "seed": first + index // len(SETTINGS)}}
