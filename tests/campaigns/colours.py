"""How far apart the colours of figures are, to readers with all cones and to those who lack one kind.

python tests/campaigns/colours.py
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from agents.evaluation import plots

# Machado, Oliveira & Fernandes (2009): what linear red, green and blue are to a reader who lacks one kind of cone.
SEEN_BY = {
    "all cones": np.eye(3),
    "no red ones": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "no green ones": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "no blue ones": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


def lab(colour: str, seen: Any) -> Any:
    """The coordinates of a colour in CIELAB, in which distances are those that are perceived."""
    part = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.clip(seen @ np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4), 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = (np.cbrt(v) if v > 0.008856 else 7.787 * v + 16 / 116 for v in to_xyz @ linear / [0.9505, 1, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def main() -> None:
    for who, seen in SEEN_BY.items():
        pairs = itertools.combinations(plots.COLOURS, 2)
        found = sorted((float(np.linalg.norm(lab(a, seen) - lab(b, seen))), a, b) for a, b in pairs)
        print(f"{who:14}", *(f"{far:.1f} {a} {b}" for far, a, b in found[:3]), sep="   ")


if __name__ == "__main__":
    main()
