"""Digests of the stored models, which the comments below the tables of learned agents name.

python tests/campaigns/model_digests.py     each model and its digest
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from safetensors.numpy import load_file

STORED = Path(__file__).parents[2] / "agents" / "models"


def digest_of(name: str) -> str:
    """Eight digits that stand for how a stored model decides, of its card and weights.

    Args:
        name: of its card.
    """
    card = json.loads((STORED / f"{name}.json").read_text())
    parts = [card.get("names"), card.get("parameters", card.get("genes")), card.get("network"), card.get("features")]
    found = hashlib.sha256(json.dumps(parts).encode())
    weights = STORED / f"{name}.safetensors"
    if weights.is_file():
        for array, values in sorted(load_file(weights).items()):
            found.update(array.encode() + values.tobytes())
    return found.hexdigest()[:8]


if __name__ == "__main__":
    for path in sorted(STORED.glob("*.json")):
        print(path.stem, digest_of(path.stem))
