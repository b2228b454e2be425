"""Prune a trial of Optuna when it is shown to be worse than the best one on the same instances, asked after each.

pip install optuna; python examples/optuna_pruner.py [runs]
"""

import sys

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState, create_trial

import agents


class GatePruner(optuna.pruners.BasePruner):
    """Prunes a trial that is as good with probability `delta` at most. Values of an instance are from low to high."""

    def __init__(self, delta: float = 0.1, low: float = 0.0, high: float = 1.0) -> None:
        self.delta, self.range = delta, (low - high, high - low)

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        """Whether the mean difference from the best trial is shown to be below 0."""
        best = study.best_trial.intermediate_values if study.get_trials(states=(TrialState.COMPLETE,)) else {}
        sign = 1 if study.direction == optuna.study.StudyDirection.MAXIMIZE else -1
        gains = [sign * (x - best[i]) for i, x in trial.intermediate_values.items() if i in best]
        return bool(gains) and agents.gate(gains, at_least=0, range=self.range, delta=self.delta).verdict == "fail"


optuna.logging.set_verbosity(optuna.logging.ERROR)
runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
for mean in (0.6, 0.4):  # of the values of the second trial; of the first, .6 on 200 instances
    for pruner in (GatePruner(0.1), optuna.pruners.WilcoxonPruner(p_threshold=0.1)):
        rng, ends = np.random.default_rng(0), []
        for first, second in rng.beta(*np.array([[[1.2], [2 * mean]], [[0.8], [2 - 2 * mean]]]), (runs, 2, 200)):
            study, reference = optuna.create_study(direction="maximize", pruner=pruner), dict(enumerate(first.tolist()))
            study.add_trial(create_trial(value=first.mean(), intermediate_values=reference))
            trial = study.ask()
            ends.append(next((i + 1 for i, x in enumerate(second) if trial.report(x, i) or trial.should_prune()), 0))
        name, took = type(pruner).__name__, np.mean([n or 200 for n in ends])
        print(f"means .6 and {mean}: {np.count_nonzero(ends)} of {runs} pruned by {name}, {took} instances on average")
