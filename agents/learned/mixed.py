"""`mixed`: an on-policy algorithm of SB3 learns on several environments, whose numbers of arms may differ.

Each environment has a rollout of its own, in which nothing is padded. An update goes over the minibatches of all of
them in random order: each is of one environment, so that advantages are normalised within a task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .algorithms import TrainingEnvironment, TrainingPlan


class Rollouts:
    """The rollouts of a model on several environments, with what SB3 asks of a rollout buffer when it learns."""

    def __init__(self, model: Any, environments: Sequence[TrainingEnvironment], root: int) -> None:
        self._model, self._random = model, np.random.default_rng(root)
        self._parts: list[Any] = []  # environments, buffers, and where a rollout goes on, as SB3 has it
        for i, envs in enumerate(one.vec_env() for one in environments):
            kind, forms = model.rollout_buffer_class, (envs.observation_space, envs.action_space)
            buffer = kind(model.n_steps, *forms, "cpu", model.gae_lambda, model.gamma, envs.num_envs)
            envs.seed(root + i)
            self._parts.append([envs, buffer, (envs.reset(), np.ones(envs.num_envs, np.bool_))])

    def collect(self, env: object, callback: Any, rollout_buffer: object, n_rollout_steps: int) -> bool:
        """Fill all rollouts, as SB3's `collect_rollouts`; returns whether the training goes on."""
        model = self._model
        for part in self._parts:
            envs, buffer, (model._last_obs, model._last_episode_starts) = part
            if not type(model).collect_rollouts(model, envs, callback, buffer, n_rollout_steps):
                return False
            part[2] = model._last_obs, model._last_episode_starts
        return True

    def get(self, batch_size: int | None = None) -> Iterator[Any]:
        """The minibatches of all rollouts; None: each rollout is one."""
        for name in ("values", "returns"):  # of which SB3 computes how much variance is explained
            setattr(self, name, np.concatenate([getattr(buffer, name).ravel() for _, buffer, _ in self._parts]))
        batches = [list(buffer.get(batch_size)) for _, buffer, _ in self._parts]
        for i in self._random.permutation(np.repeat(np.arange(len(batches)), list(map(len, batches)))):
            yield batches[i].pop(0)


@contextmanager
def mixed(model: Any, plan: TrainingPlan) -> Iterator[None]:
    """While this lasts, a model of PPO or A2C learns on the environments of the mix, if there is one."""
    if plan.mix is None:
        yield
        return
    buffer, model.rollout_buffer = model.rollout_buffer, Rollouts(model, plan.environments, plan.roots["learning"])
    model.collect_rollouts = model.rollout_buffer.collect
    try:
        yield
    finally:
        model.rollout_buffer = buffer
        del model.collect_rollouts
