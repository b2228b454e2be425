"""Evaluations that are kept: what a panel asks for is run once, and found again, in this process and on the disk.

Each evaluation has a folder of its own, named by a hash of all that it depends on, so that panels, figures and later
runs that ask for the same one share it. A run that was killed goes on at the evaluation that it was at.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ..evaluation import Evaluation, evaluate

__all__ = ["Evaluator", "Store"]

ASKED = "asked"  # the key of the settings under which a stored evaluation tells what it was asked for


class Evaluator(Protocol):
    """What runs agents for a panel: `evaluate`, or a store, which keeps what that yields."""

    def __call__(
        self,
        agents: Any,
        env_id: str,
        *,
        episodes: int,
        seed: int = 0,
        at: Sequence[int] | None = None,
        budgets: Sequence[int] | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        jobs: int = 1,
        progress: bool | None = None,
    ) -> Evaluation:
        """Run agents on the same episodes of an environment."""
        ...


class Store:
    """Evaluations by what they were asked for, kept in memory, and in a folder where one is given.

    Args:
        folder: that of the evaluations, which is made with the first; None: they are kept in memory alone.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.found: dict[str, Evaluation] = {}
        self.error: OSError | None = None  # of the disk that was to keep one
        self.made = 0  # evaluations that were run, because the store did not have them

    def evaluate(
        self,
        agents: Any,
        env_id: str,
        *,
        episodes: int,
        seed: int = 0,
        at: Sequence[int] | None = None,
        budgets: Sequence[int] | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        jobs: int = 1,
        progress: bool | None = None,
    ) -> Evaluation:
        """What `evaluate` yields, which runs only what has not been kept.

        Warns:
            RuntimeWarning: where what was kept is damaged, and run anew.
        """
        asked = {
            "agents": dict(agents),
            "env_id": env_id,
            "env_kwargs": dict(env_kwargs or {}),
            "episodes": int(episodes),
            "seed": int(seed),
            "at": None if at is None else [int(x) for x in at],
            "budgets": None if budgets is None else [int(x) for x in budgets],
        }
        asked = json.loads(json.dumps(asked, default=repr))  # what has no form in JSON is not found in a later process
        name = self.name(asked)
        if name not in self.found:
            kept = self._kept(name, asked)
            if kept is None:
                kept = evaluate(
                    agents,
                    env_id,
                    episodes=episodes,
                    seed=seed,
                    at=at,
                    budgets=budgets,
                    env_kwargs=env_kwargs,
                    jobs=jobs,
                    progress=progress,
                )
                self.keep(kept, asked)
                self.made += 1
            self.found[name] = kept
        return self.found[name]

    @staticmethod
    def name(asked: Mapping[str, Any]) -> str:
        """The name of the folder of an evaluation: a hash of what was asked for; labels in their order count."""
        text = json.dumps({**asked, "agents": list(asked["agents"].items())}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def keep(self, evaluation: Evaluation, asked: Mapping[str, Any]) -> None:
        """Write an evaluation into its folder, if there is one for them."""
        evaluation.settings[ASKED] = dict(asked)
        if self.folder is None:
            return
        try:
            evaluation.save(self.folder / self.name(asked))
        except OSError as error:
            self.error = error
            raise

    def _kept(self, name: str, asked: Mapping[str, Any]) -> Evaluation | None:
        """What is kept in the folder of this name; None where nothing is, or what is damaged."""
        if self.folder is None or not (self.folder / name).exists():
            return None
        folder = self.folder / name
        try:
            kept = Evaluation.load(folder)
            if kept.settings.get(ASKED) != asked:
                raise ValueError(f"{folder} holds an evaluation that was asked for something else")
        except FileNotFoundError:  # a kill has come before the first file was complete
            return None
        except (ValueError, OSError) as error:
            warnings.warn(f"a stored evaluation is damaged, and is run anew: {error}", RuntimeWarning, stacklevel=2)
            return None
        return kept
