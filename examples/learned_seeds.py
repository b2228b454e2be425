"""Train the stored models of `evolved` anew with several seeds: what the calls on their cards say, but for the time.

What the seed decides: docs/learned-results.md; `learned_laws.py` compares the cards that this writes. A card that is
there already is not made again.

    python examples/learned_seeds.py results/seeds           # five seeds of five problems, half an hour or more
    python examples/learned_seeds.py results/seeds TopK 1 5  # one seed of one problem, five generations
    python examples/learned_seeds.py results/longer AllGood 5 300  # longer: BestArm 130, Feasible 90
    python examples/learned_laws.py 20000 TopK results/seeds/TopK-0.json results/seeds/TopK-1.json
"""

import ast
import json
import re
import sys
from pathlib import Path

import agents
from agents.models.cards import FOLDER

OUT = Path(sys.argv[1] if len(sys.argv) > 1 else "results/seeds")
PROBLEMS = re.compile(sys.argv[2] if len(sys.argv) > 2 else ".")
SEEDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
GENERATIONS = int(sys.argv[4]) if len(sys.argv) > 4 else None
LIMITS = {  # problem: how pulls are limited; generations if none are given, about a minute
    "Threshold": ("budget", 30),
    "TopK": ("budget", 24),
    "BestArm": ("budget", 32),
    "Feasible": ("budget", 20),
    "AllGood": ("cost", 90),
}
LEFT_OUT = {"seconds", "generations", "seed"}

OUT.mkdir(parents=True, exist_ok=True)
for seed in range(SEEDS):
    for problem, (limit, generations) in LIMITS.items():
        out = OUT / f"{problem}-{seed}.json"
        if not PROBLEMS.match(problem) or out.exists():
            continue
        call = json.loads((FOLDER / f"evolved-{problem.lower()}-{limit}.json").read_text())["call"]
        words = {word.arg: ast.literal_eval(word.value) for word in ast.parse(call, mode="eval").body.keywords}
        kept = {name: value for name, value in words.items() if name not in LEFT_OUT}
        _, card = agents.evolve(problem, seed=seed, generations=GENERATIONS or generations, out=out, **kept)
        print(problem, seed, [one["ratio"] for one in card["result"]], f"{card['cpu_seconds']} s", flush=True)
