"""The agents: one table of rows, from which `make`, documentation, tests and `bandit-envs list` derive."""

from __future__ import annotations

import inspect
from typing import Any

from bandit_envs import PROBLEMS, PureExplorationEnv, PureExplorationVectorEnv, Task, parse_call, unknown

from .all_good import ST2, UCB, APTOracle, East, Fareast, UniformElimination
from .baselines import Random, Uniform
from .core.agent import Agent, task_of
from .evolved import Evolved
from .models.cards import is_stored, stored_card
from .thresholding import APT, LSA, SAR, UCBE, DPIndex, OptKG
from .top_k import (
    CLUCB,
    KLLUCB,
    LUCB,
    Adapt,
    AdaptiveTopK,
    Direct,
    Halving,
    ImprovedTopK,
    Incremental,
    LilUCB,
    MedianElimination,
    OCBAm,
    OptMAI,
    Pi1,
    Pi2,
    Pi3,
    Racing,
)

__all__ = ["AGENTS", "ALIASES", "LEARNED", "make", "names"]

AGENTS: dict[str, type[Agent]] = {
    row.name: row
    for row in (
        Uniform,
        Random,
        LSA,
        APT,
        UCBE,
        SAR,
        OptKG,
        DPIndex,
        ST2,
        Fareast,
        East,
        UniformElimination,
        UCB,
        APTOracle,
        LUCB,
        MedianElimination,
        Direct,
        Incremental,
        Halving,
        AdaptiveTopK,
        ImprovedTopK,
        OptMAI,
        Racing,
        Pi1,
        Pi2,
        Pi3,
        Adapt,
        OCBAm,
        CLUCB,
        KLLUCB,
        LilUCB,
        Evolved,
    )
}
# Networks that come with the package, see `stored`; PyTorch runs them.
LEARNED = {"ppo": "this package: a network for each arm, trained by PPO on random instances"}
ALIASES = {"md-apt": "apt", "md-ucbe": "ucbe", "md-sar": "sar"}


def names(problem: str | None = None) -> list[str]:
    """Names that `make` accepts, of the agents that solve `problem` (None: of all); learned ones come last.

    Raises:
        ValueError: for an unknown problem.
    """
    if problem is not None and problem not in PROBLEMS:
        raise unknown("problem", problem, PROBLEMS)
    written = [name for name, kind in AGENTS.items() if problem is None or problem in kind.solves]
    return written + [name for name in LEARNED if problem is None or is_stored(name, problem)]


def _fixed_instance(source: Any) -> Any:
    """The true instance of an environment where all episodes share it, for oracles; else None."""
    layers: tuple[Any, ...] = (source, getattr(source, "unwrapped", None))
    for envs in layers:
        if isinstance(envs, (PureExplorationEnv, PureExplorationVectorEnv)):
            return envs.instance
    for envs in layers:
        if not isinstance(source, Task) and hasattr(envs, "get_attr"):
            return _fixed_instance(envs.get_attr("unwrapped" if hasattr(envs, "env_is_wrapped") else "instance")[0])
    return source if source is not None and hasattr(source, "arms") else None


def make(name: str, env_or_task: Any, **parameters: Any) -> Any:
    """The agent of this name for an environment or a task: an `Agent`, or for a name of `LEARNED` a trained one.

    Args:
        name: a name of `names()`, possibly with parameters: "apt(tolerance=0.05)".
        env_or_task: an environment (single or vector, wrapped or not, or an SB3 VecEnv) or a `Task`. An environment
            with a fixed instance also fills in what oracle agents must know of the truth.
        **parameters: the algorithm's own; they override those in the name.

    Raises:
        ValueError: for an unknown name (with the nearest ones), a learned agent of which no model is stored for the
            task (telling how to train one), an agent that does not solve the problem (naming those
            it does), unknown parameters or values out of range, and oracles without their truth.
    """
    if not isinstance(name, str):
        raise ValueError(f"an agent's name is text, got {name!r:.200}")
    bare, own = parse_call(name)
    bare = ALIASES.get(bare, bare)
    if bare in LEARNED:
        if own or parameters:
            raise ValueError(f"{bare} has no parameter {next(iter(own | parameters))!r}; it takes none")
        task = task_of(env_or_task)
        stored_card(bare, task)  # a clear error comes before the import of PyTorch
        from .learned.weights import load_stored

        return load_stored(bare, task)
    if bare not in AGENTS:
        raise unknown("agent", bare, [*AGENTS, *LEARNED, *ALIASES])
    kind, task = AGENTS[bare], task_of(env_or_task)
    given = own | parameters
    allowed = [p for p in inspect.signature(kind.__init__).parameters if p not in ("self", "task")]
    if surplus := sorted(set(given) - set(allowed)):
        takes = f"it takes {', '.join(allowed)}" if allowed else "it takes none"
        raise ValueError(f"{bare} has no parameter {surplus[0]!r}; {takes}")
    instance = _fixed_instance(env_or_task) if kind.oracles and task.problem in kind.solves else None
    if instance is not None:
        truth = {key: f for key, f in kind.oracles.items() if key not in given}
        given |= {key: f(task.make_problem(), instance.arms.means) for key, f in truth.items()}
    return kind(task, **given)
