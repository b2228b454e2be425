"""`NativeVecEnv`: the vector environment as a Stable-Baselines3 `VecEnv`, with potential-based shaping for training.

One root seed serves all slots: a slot that begins takes the next episode number of the root, so that no two slots share
an episode, and neither do two seeds.

Shaping adds gamma Phi(s') - Phi(s) to the reward of a step from s to s'. Phi(s) is the score to be expected if the
answer were given now, and 0 where the episode has ended; where it is only cut short (truncated), the algorithm counts
the value of s', and Phi(s') stays. The optimal policy is what it was, whatever Phi (Ng, Harada & Russell, ICML 1999);
with gamma = 1 the shaped rewards of an ended episode sum to its return less Phi of its start.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv

from bandit_envs import FEATURES, PureExplorationVectorEnv, Task, fresh_root, integer, number, root_number

from ..evaluation.expected_loss import expectable, wrong
from ..evaluation.run import check_environment

__all__ = ["JoinedVecEnv", "NativeVecEnv", "make_vec_env"]

_ERROR = FEATURES.index("error")


class NativeVecEnv(VecEnv):
    """`PureExplorationVectorEnv` as SB3 wants it: an ended slot shows the first observation of its next episode.

    `infos[i]` is empty until slot i ends; then it holds what the environment tells of the end (`answer`, `correct`,
    `is_success`, `score`, `total_pulls`, the problem's metrics), `terminal_observation`, `TimeLimit.truncated`, and
    `episode` with the return `r` (never shaped), length `l` and time `t`, as SB3's Monitor writes it.

    Args:
        envs: with `actions="arm"` and autoreset DISABLED.
        shaping: add the potential-based term to the rewards; needs `observation="features"` and a problem whose score
            is the share of arms that are classified correctly.
            The posterior errors are the feature `error`: exact for Bernoulli arms of Threshold under a uniform prior,
            else a normal approximation, which costs speed of learning, not the optimum.
        gamma: of the shaping term, in (0, 1]. 1 keeps the optimum of the undiscounted return, the one that counts here;
            an algorithm's own discount then only trades bias for variance.
        pulls_per_action: how often each action is repeated, >= 1.
        expected: at the end, pay the score that is to be expected given all samples and the law of the instances, not
            the score itself: the same mean for every policy, less noise. With shaping, Phi is that expected score at
            every step. For Threshold on samplers of Bernoulli arms.
        reward_scale: factor of all rewards, > 0.
        siblings: so many slots in a row play the same episode, with the same samples, see `RelativeBuffer`.

    Raises:
        ValueError: naming what is not as it must be.
    """

    def __init__(
        self,
        envs: PureExplorationVectorEnv,
        *,
        shaping: bool = False,
        gamma: float = 1.0,
        pulls_per_action: int = 1,
        expected: bool = False,
        reward_scale: float = 1.0,
        siblings: int = 1,
    ) -> None:
        task = envs.task
        if task.actions != "arm":
            raise ValueError(f"SB3 takes actions='arm', not {task.actions!r}")
        if envs.autoreset_mode != AutoresetMode.DISABLED:
            raise ValueError(f"autoreset_mode must be DISABLED, got {envs.autoreset_mode}")
        if shaping and not envs.problem.scores_arms:
            raise ValueError(f"shaping needs a problem that scores each arm, as Threshold does, not {task.problem}")
        if shaping and task.observation != "features":
            raise ValueError(f"shaping needs observation='features', got {task.observation!r}")
        if expected and not expectable(envs):
            raise ValueError("expected scores are defined for Threshold on samplers of Bernoulli arms, reward='score'")
        self.siblings = integer("siblings", siblings, 1, envs.num_envs)
        if envs.num_envs % self.siblings:
            raise ValueError(f"siblings must divide the number of slots, {envs.num_envs}, got {siblings}")
        if self.siblings > 1 and (task.budget is None or task.delta is not None or task.pull_cost > 0):
            raise ValueError("siblings end together: they need a budget, and no reason to stop before")
        self.envs, self.shaping, self.expected = envs, bool(shaping), bool(expected)
        self.reward_scale = number("reward_scale", reward_scale, 0, above=True)
        self.gamma = number("gamma", gamma, 0, 1, above=True)
        self.pulls_per_action = integer("pulls_per_action", pulls_per_action, 1, 2**31)
        self._root: int | None = None  # for the next reset
        self._following = 0  # the episode number that the next slot takes
        N = envs.num_envs
        self._number, self._length, self._return = np.full(N, -1), np.zeros(N, np.int64), np.zeros(N)
        self._potential, self._actions = np.zeros(N), np.zeros(N, np.int64)
        self._seen = np.full((2, N, envs.task.K), -1.0)  # pulls and means that `_wrong` belongs to
        self._wrong = np.zeros((N, envs.task.K))
        self._begun = time.perf_counter()
        super().__init__(N, envs.single_observation_space, envs.single_action_space)
        self.seed()

    @property
    def task(self) -> Task:
        """What an agent may know."""
        return self.envs.task

    @property
    def widths(self) -> list[int]:
        """How many slots there are, as the only part of a mix."""
        return [self.num_envs]

    @property
    def episodes(self) -> NDArray[np.int64]:
        """Which episode of the root each slot runs, (N,)."""
        return self._number.copy()

    def potential(self, observation: NDArray[np.float32]) -> NDArray[np.float64]:
        """Phi (n,) of features (n, K * F): expected score, or probability of a correct answer, if it were given now."""
        error = observation.reshape(len(observation), self.task.stop, -1)[:, :, _ERROR].astype(np.float64)
        phi: NDArray[np.float64] = 1 - error.mean(1) if self.envs.setting.reward == "score" else np.prod(1 - error, 1)
        return phi

    def _expected_scores(self) -> NDArray[np.float64]:
        """The scores to be expected of the plug-in answers as of now, (N,); one arm of many changes at a step."""
        sampler: Any = self.envs.setting.source
        now = np.stack([self.envs.pulls, np.nan_to_num(self.envs.means())])
        changed = (now != self._seen).any(0)
        pulls, means = now[0][changed].astype(np.int64), now[1][changed]
        self._wrong[changed] = wrong(sampler, self.envs.problem.boundary, pulls, means)  # type: ignore[arg-type]
        self._seen = now
        score: NDArray[np.float64] = 1 - self._wrong.mean(1)
        return score

    def _phi(self, observation: Any) -> NDArray[np.float64]:
        """The potential of all slots, (N,)."""
        return self._expected_scores() if self.expected else self.potential(observation)

    # --- SB3's VecEnv -------------------------------------------------------------------------------------------------

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """The root of all slots from the next reset on, dealt out from its episode 0 on; None: a fresh root."""
        root = fresh_root() if seed is None else root_number(seed)
        self._root = root
        return [root] * self.num_envs

    def set_options(self, options: Any = None) -> None:
        """Nothing but None or {}: which episodes are next is this class's business."""
        if options and any(options):
            raise ValueError(f"NativeVecEnv takes no reset options, got {options!r}")

    def reset(self) -> Any:
        """Start the next episode of the root in every slot; returns the observations."""
        if self._root is not None:
            self._following = 0
        observation = self._begin(np.ones(self.num_envs, np.bool_), self._root)
        self._root = None
        self.reset_infos = [{} for _ in range(self.num_envs)]
        return observation

    def _begin(self, mask: NDArray[np.bool_], root: int | None = None) -> Any:
        """Start the next episodes in the slots of `mask` (N,); returns all observations."""
        count, each = int(np.count_nonzero(mask)), self.siblings
        if each > 1 and (mask.reshape(-1, each) != mask[::each, None]).any():
            raise ValueError("siblings end together: none may stop before the budget is spent")
        self._number[mask] = self._following + np.arange(count) // each
        self._following += count // each
        self._length[mask], self._return[mask] = 0, 0.0
        options: dict[str, Any] = {"reset_mask": mask, "episode": self._number}
        observation, _ = self.envs.reset(seed=root, options=options)
        if self.shaping:
            self._potential[mask] = self._phi(observation)[mask]
        return observation

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions (N,) for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Observations, rewards (N,) float32, dones (N,) and infos after one action in every slot."""
        reward, ends = np.zeros(self.num_envs), []
        for _ in range(1, self.pulls_per_action):  # slots that have ended stay as they are
            more, _, _, info = self.envs.advance(self._actions)
            reward += more
            if "answer" in info:
                ends.append(info)
        observation, more, terminated, truncated, info = self.envs.step(self._actions)
        reward += more
        if "answer" in info:
            ends.append(info)
        done = terminated | truncated
        self._length += 1
        self._return += reward
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for end in ends:
            self._tell(end, observation, truncated, infos)
        if self.expected and (over := np.flatnonzero(terminated)).size:
            reward[over] += self._expected_scores()[over] - [infos[i]["score"] for i in over]
        if self.shaping:
            phi = self._phi(observation)
            reward += np.where(terminated, 0.0, self.gamma * phi) - self._potential
            self._potential = phi
        reward *= self.reward_scale
        if done.any():
            observation = self._begin(done)
        return observation, reward.astype(np.float32), done, infos

    def _tell(self, end: dict[str, Any], last: Any, truncated: NDArray[np.bool_], infos: list[dict[str, Any]]) -> None:
        """Fill the infos of the slots that ended with what the environment said of them, and their last observation."""
        names = [name for name in end if f"_{name}" in end and name != "sample"]
        clock = round(time.perf_counter() - self._begun, 6)
        for i in np.flatnonzero(end["_answer"]).tolist():
            infos[i] = {name: value.item() if (value := end[name][i]).ndim == 0 else value.copy() for name in names}
            infos[i] |= {
                "terminal_observation": last[i].copy()
                if isinstance(last, np.ndarray)
                else {name: array[i].copy() for name, array in last.items()},
                "TimeLimit.truncated": bool(truncated[i]),
                "episode": {"r": self._return[i].item(), "l": self._length[i].item(), "t": clock},
            }

    def close(self) -> None:
        """Close the environment."""
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The attribute of the vector environment, once for each slot asked for."""
        return [getattr(self.envs, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refused: the slots share one environment."""
        raise AttributeError(f"the slots share one environment: {attr_name!r} cannot be set")

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """`action_masks`, one row (K + 1,) for each slot asked for.

        Raises:
            AttributeError: for any other method: the slots share one environment.
        """
        if method_name != "action_masks":
            raise AttributeError(f"the slots share one environment: call {method_name!r} on it (`.envs`)")
        masks = self.envs.action_masks()
        return [masks[i] for i in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: Any = None) -> list[bool]:
        """True for Monitor, whose `episode` info this class writes itself; False for all others."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]


class JoinedVecEnv(VecEnv):
    """Several `NativeVecEnv`s as one, so that a policy learns on a mix of budgets and laws; slots in the order given.

    Each part has a root seed of its own, made from the one that `seed` is given.

    Args:
        parts: with the same K and problem; rewards and observations are those of each.

    Raises:
        ValueError: if the spaces of the parts differ, or there is none.
    """

    def __init__(self, parts: Sequence[NativeVecEnv]) -> None:
        if not parts:
            raise ValueError("a mix needs at least one environment")
        self.parts = list(parts)
        first = self.parts[0]
        for part in self.parts[1:]:
            if part.action_space != first.action_space or part.observation_space != first.observation_space:
                raise ValueError(f"the environments of a mix need the same K, got {first.task.K} and {part.task.K}")
            if part.task.problem != first.task.problem:
                raise ValueError(f"a mix is of one problem, got {first.task.problem} and {part.task.problem}")
        self._ends = np.cumsum([part.num_envs for part in self.parts])
        super().__init__(int(self._ends[-1]), first.observation_space, first.action_space)

    @property
    def task(self) -> Task:
        """What an agent may know of the first part."""
        return self.parts[0].task

    @property
    def widths(self) -> list[int]:
        """How many slots each part has."""
        return [part.num_envs for part in self.parts]

    def _deal(self, indices: Any) -> list[tuple[NativeVecEnv, list[int]]]:
        """The parts, and which of their slots are asked for."""
        wanted = np.array(list(self._get_indices(indices)), np.intp)
        dealt, start = [], 0
        for part, end in zip(self.parts, self._ends.tolist(), strict=True):
            dealt.append((part, (wanted[(wanted >= start) & (wanted < end)] - start).tolist()))
            start = end
        return dealt

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """The root from which those of the parts are made; None: fresh ones."""
        root = fresh_root() if seed is None else root_number(seed)
        words = np.random.SeedSequence([root, len(self.parts)]).generate_state(len(self.parts), np.uint64)
        return [
            each
            for part, word in zip(self.parts, (words >> np.uint64(1)).tolist(), strict=True)
            for each in part.seed(word)
        ]

    def set_options(self, options: Any = None) -> None:
        """Nothing but None or {}, as `NativeVecEnv`."""
        for part in self.parts:
            part.set_options(options)

    def reset(self) -> Any:
        """Start the next episode in every slot; returns the observations."""
        self.reset_infos = [{} for _ in range(self.num_envs)]
        return np.concatenate([part.reset() for part in self.parts])

    def step_async(self, actions: NDArray[Any]) -> None:
        """Keep the actions (N,) for `step_wait`."""
        for part, own in zip(self.parts, np.split(actions, self._ends[:-1]), strict=True):
            part.step_async(own)

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        """Observations, rewards (N,) float32, dones (N,) and infos after one action in every slot."""
        observations, rewards, dones, infos = zip(*(part.step_wait() for part in self.parts), strict=True)
        return (
            np.concatenate(observations),
            np.concatenate(rewards),
            np.concatenate(dones),
            [info for each in infos for info in each],
        )

    def close(self) -> None:
        """Close the environments."""
        for part in self.parts:
            part.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """The attribute of each slot's environment."""
        return [value for part, own in self._deal(indices) for value in part.get_attr(attr_name, own)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refused, as in `NativeVecEnv`."""
        self.parts[0].set_attr(attr_name, value, indices)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """`action_masks`, one row (K + 1,) for each slot asked for."""
        return [row for part, own in self._deal(indices) for row in part.env_method(method_name, indices=own)]

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper[Any, Any, Any, Any]], indices: Any = None) -> list[bool]:
        """True for Monitor, as in `NativeVecEnv`."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]


def make_vec_env(
    env_id: str,
    num_envs: int,
    *,
    shaping: bool = False,
    gamma: float = 1.0,
    pulls_per_action: int = 1,
    expected: bool = False,
    reward_scale: float = 1.0,
    siblings: int = 1,
    **env_kwargs: Any,
) -> NativeVecEnv:
    """A registered environment as an SB3 VecEnv.

    Args:
        env_id: e.g. "bandit_envs/Threshold-v0". num_envs: N.
        shaping, gamma, pulls_per_action, expected, reward_scale, siblings: see `NativeVecEnv`.
        **env_kwargs: of the environment; SB3's policies want `observation="features"` in most cases.

    Raises:
        ValueError: naming what is not as it must be.
    """
    check_environment(env_id)
    envs: Any = gym.make_vec(env_id, num_envs=num_envs, autoreset_mode=AutoresetMode.DISABLED, **env_kwargs)
    return NativeVecEnv(
        envs,
        shaping=shaping,
        gamma=gamma,
        pulls_per_action=pulls_per_action,
        expected=expected,
        reward_scale=reward_scale,
        siblings=siblings,
    )
