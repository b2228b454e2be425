"""Actions of learned models drawn from their policy, the same in any batch.

A draw is the inversion of the distribution function of the actions at a uniform number of the episode and the decision.
PyTorch rounds the logits of an episode differently in batches of different sizes. So where the uniform number is close
to a step of the distribution function, the logits are computed once more for this episode alone: they are then the same
in every batch. A recurrent policy is the exception: its state is made of all that it has seen, with the rounding of the
batch, so that now and then, in millions of decisions, a batch of another size may draw another action.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.forms import forms_of
from ..core.optional import require
from ..core.wrapped import Behind

Floats = NDArray[np.float64]
STUCK, UNSURE, MOST = 0.95, 0.5, 400  # share of pulls; chance of a decision; decisions that are looked at
CLOSE = 1e-3  # of probabilities, far above what rounding in single precision changes


def warn_of_one_arm(label: str, agent: Any, envs: Any) -> None:
    """Warn where a model's most probable arm is nearly always the same, and hardly more probable than others.

    envs: a few episodes, which are begun: up to 8 decisions for each arm, of which the second half is looked at. Errors
    are of models that have no distribution of arms.
    """
    drawing, task, pulls, chances = Drawing(label, agent), envs.task, envs.asked, list[Floats]()
    if drawing.recurrent or drawing.masked or task.D > 1 or task.K < 3:
        return
    (observation, _), before, begins = envs.reset(seed=0), 0 * pulls, np.ones(len(pulls), np.bool_)
    for decision in range(min(8 * task.K, MOST)):
        before = envs.asked.copy() if 2 * decision == min(8 * task.K, MOST) else before
        chance = drawing.chances(observation, begins)
        chances.append(chance.max(axis=1))
        observation, _, terminated, truncated, _ = envs.step(chance.argmax(axis=1))
        if (terminated | truncated).any():
            return
    made = envs.asked - before
    stuck, sure = (made.max(axis=1) > STUCK * made.sum(axis=1)).mean(), np.mean(chances[len(chances) // 2 :])
    if stuck >= 0.5 and sure < UNSURE:
        text = f"{label} pulls one arm in nearly all of its decisions, each of which its policy gives a chance of only"
        warnings.warn(f"{text} {sure:.2g}: deterministic=False draws them, and may do far better", UserWarning, 4)


class Drawing:
    """A model of Stable-Baselines3 that draws its actions: `agent`, or the attribute `model` of that."""

    def __init__(self, label: str, agent: object) -> None:
        self.model = getattr(agent, "model", agent)
        policy: Any = getattr(self.model, "policy", None)
        if not hasattr(policy, "get_distribution"):
            kind = type(self.model).__name__
            text = f"{label} ({kind}) has no distribution of actions to draw from: deterministic=False is for models of"
            raise ValueError(f"{text} Stable-Baselines3 with a stochastic policy, as PPO and A2C have it, not for DQN")
        self.policy, self.agent = policy, agent
        self.observation = forms_of(agent).observation
        self.recurrent = hasattr(policy, "lstm_hidden_state_shape")
        self.masked = "action_masks" in inspect.signature(policy.get_distribution).parameters

    def chances(self, observation: Any, begins: NDArray[np.bool_]) -> Floats:
        """The chance of each action, (E, K) or (E, K + 1), of a policy that is not recurrent and has no masks."""
        torch = require("torch", "a model that draws its actions", "training")
        observation = self.agent.through(observation) if isinstance(self.agent, Behind) else observation
        self.policy.set_training_mode(False)
        steps, _ = self._steps(torch, observation, None, begins, None)
        return np.diff(steps, axis=1, prepend=0.0, append=1.0)

    def drawn(
        self, observation: Any, state: Any, begins: NDArray[np.bool_], u: Floats, masks: Callable[[], NDArray[np.bool_]]
    ) -> tuple[NDArray[np.int64], object]:
        """The next action of each episode, and the state (None at first), by uniform numbers u (E,).

        `begins` (E,): whether an episode begins. `masks` returns the allowed actions (E, K + 1), for policies that ask.
        """
        torch = require("torch", "a model that draws its actions", "training")
        observation = self.agent.through(observation) if isinstance(self.agent, Behind) else observation
        threads, by_name = torch.get_num_threads(), isinstance(observation, dict)
        torch.set_num_threads(1)
        try:
            self.policy.set_training_mode(False)
            allowed = masks() if self.masked else None
            steps, after = self._steps(torch, observation, state, begins, allowed)
            for e in np.flatnonzero((np.abs(steps - u[:, None]) < CLOSE).any(axis=1)):
                row = np.array([e])
                seen = {name: x[row] for name, x in observation.items()} if by_name else observation[row]
                before = None if state is None else tuple(part[:, row] for part in state)
                own = None if allowed is None else allowed[row]
                steps[e] = self._steps(torch, seen, before, begins[row], own)[0][0]
        finally:
            torch.set_num_threads(threads)
        return (steps <= u[:, None]).sum(axis=1), after

    def _steps(
        self, torch: Any, observation: object, state: Any, begins: NDArray[np.bool_], allowed: object
    ) -> tuple[Floats, object]:
        """The distribution function of the actions 0 .. K - 1 of each episode, (E, K), and the state."""
        policy, after = self.policy, state
        with torch.no_grad():
            seen, _ = policy.obs_to_tensor(observation)
            if self.recurrent:
                if state is None:
                    layers, _, width = policy.lstm_hidden_state_shape
                    state = (np.zeros((layers, len(begins), width), np.float32),) * 2
                before = tuple(torch.tensor(part, device=policy.device) for part in state)
                starts = torch.tensor(begins, dtype=torch.float32, device=policy.device)
                distribution, new = policy.get_distribution(seen, before, starts)
                after = tuple(part.cpu().numpy() for part in new)
            elif self.masked:
                distribution = policy.get_distribution(seen, action_masks=allowed)
            else:
                distribution = policy.get_distribution(seen)
            logits = distribution.distribution.logits.double().cpu().numpy()
        mass = np.exp(logits - logits.max(axis=1, keepdims=True))
        steps = np.cumsum(mass, axis=1)
        return np.ascontiguousarray((steps / steps[:, -1:])[:, :-1]), after
