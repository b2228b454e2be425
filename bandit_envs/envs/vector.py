"""Many episodes side by side: `PureExplorationVectorEnv`, a gymnasium.vector.VectorEnv."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space, iterate
from numpy.typing import NDArray

from ..kernels import rng
from ..kernels.checks import flag, integer, integers, ours
from ..simulation.arrays import ENDED, Simulation
from ..simulation.simulator import PULLED
from ..stopping import Certifier
from .episodes import Array, Environment, Episodes, Info, read_options
from .history import History
from .setting import resolve

OPTIONS = ("episode", "reset_mask")  # of `reset`


class PureExplorationVectorEnv(Environment, VectorEnv[Any, Any, Any]):
    """The native vector form of `PureExplorationEnv`: slot i gives bit for bit what a single environment would.

    Args:
        num_envs: N.
        problem, **settings: as in `PureExplorationEnv`.
        autoreset_mode: NEXT_STEP (the step after an end starts the next episode and ignores the action), SAME_STEP (the
            step that ends an episode also starts the next: it returns the first observation of that one, and what
            belongs to the end is in the info, as `final_obs` and `final_info`) or DISABLED (actions of finished slots
            are ignored until `reset(options={"reset_mask": mask})`).
        copy: return copies of the observations; False gives live views, which the next step overwrites.
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}
    bound = ("_core", "_sim", "_all")

    def __init__(
        self,
        num_envs: int = 1,
        *,
        problem: str,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        render_mode: str | None = None,
        max_episode_steps: int | None = None,
        **settings: Any,
    ) -> None:
        if render_mode is not None:
            raise ValueError(f"the vector environment does not render: render_mode must be None, got {render_mode!r}")
        if max_episode_steps is not None:
            raise ValueError(f"use max_pulls to cap an episode, not max_episode_steps={max_episode_steps!r}")
        self.num_envs, self.render_mode = integer("num_envs", num_envs, 1, 2**31), None
        try:
            self.autoreset_mode = AutoresetMode(autoreset_mode)
        except ValueError:
            names = ", ".join(f"{one.name} ({one.value!r})" for one in AutoresetMode)
            raise ValueError(f"autoreset_mode must be an AutoresetMode: {names}; got {autoreset_mode!r:.200}") from None
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.copy = flag("copy", copy)
        self.setting = resolve(problem, **settings)
        self.single_observation_space = self.setting.observation_space(self.num_envs)
        self.single_action_space = self.setting.action_space()
        self._next_step = self.autoreset_mode == AutoresetMode.NEXT_STEP
        self._same_step = self.autoreset_mode == AutoresetMode.SAME_STEP
        self._waiting = self.num_envs  # slots that have ended
        self.advises = self.setting.is_bare  # whether who acts here may be a learner; agents of `agents` clear it
        self._open(self.num_envs)

    @functools.cached_property
    def observation_space(self) -> Any:  # type: ignore[override]  # made when it is asked for: it takes the longest
        return batch_space(self.single_observation_space, self.num_envs)

    @functools.cached_property
    def action_space(self) -> Any:  # type: ignore[override]
        return batch_space(self.single_action_space, self.num_envs)

    def _bind(self) -> None:
        """Make the slots of the episodes."""
        self._core = Episodes(self.setting, self.num_envs)
        self._sim = self._core.simulator
        self._all = np.ones(self.num_envs, np.bool_)
        self._all.setflags(write=False)

    @property
    def pulls(self) -> NDArray[np.int64]:
        """A live view of the pulls of every arm in every slot, (N, K), or of every coordinate, (N, K, D)."""
        return self._core.pulls

    @property
    def pending(self) -> NDArray[np.int64]:
        """Pulls whose results are not shown yet, a live view of the shape of `pulls`; without batch and delay zeros."""
        waiting = self._core.waiting
        return np.zeros_like(self.pulls) if waiting is None else waiting.pending

    @property
    def asked(self) -> NDArray[np.int64]:
        """The pulls that have been asked, of the shape of `pulls`: a live view, with batch or delay a sum."""
        return self.pulls + self.pending if self.task.waits else self.pulls

    @property
    def total_pulls(self) -> NDArray[np.int64]:
        """A live view of the pulls in every slot, (N,)."""
        return self._sim.spent

    @property
    def remaining(self) -> NDArray[np.int64]:
        """A live view of the budget left in every slot, (N,), -1 without a budget."""
        return self._sim.remaining[:, 0]

    @property
    def public_seeds(self) -> NDArray[np.int64]:
        """The public seed of each slot's episode, (N,), as in the observation; it must not be written to."""
        return self._sim.public_seed[:, 0]

    @property
    def simulation(self) -> Simulation:
        """The arrays in which the episodes run, for players (`bandit_envs.simulation`), which write no histories."""
        if self.task.waits:
            text = f"players know no pending results: with batch={self.task.batch} and"
            raise ValueError(f"{text} delay={self.task.delay!r} agents choose each action by `predict`")
        return self._sim.arrays

    def keep_history(self) -> History:
        """The histories of all slots, live, which are written from the next reset on, whatever observations show."""
        core = self._core
        if core._history is None:
            core._history = History(self.task.replace(observation="history"), self.num_envs)
            core.choose_advance()
        return core._history

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: Info | None = None) -> tuple[Any, Info]:
        """Start episodes: without a seed the next one of every slot.

        Args:
            seed: s gives slot i the root s + i; a list gives each slot its root (None: the next episode of its own).
            options: {"reset_mask": bool (N,)} restarts only these slots; {"episode": int array (N,)} names the episode
                of each slot, and then an integer seed is the one root of all slots. The dict is not altered.
        """
        read = read_options(options, OPTIONS)
        mask, asked = read.get("reset_mask"), read.get("episode")
        rows = np.arange(self.num_envs)
        if mask is not None:
            if not isinstance(mask, np.ndarray) or mask.shape != rows.shape or mask.dtype != np.bool_:
                raise ValueError(f"options['reset_mask'] must be a bool array of shape {rows.shape}, got {mask!r:.200}")
            if not mask.any():
                raise ValueError("options['reset_mask'] must name at least one slot")
            rows = np.flatnonzero(mask)
        seeds = None if seed is None else self._seeds(seed, shared=asked is not None)
        if asked is not None:
            shape = () if isinstance(asked, (int, np.integer)) else (self.num_envs,)
            asked = np.broadcast_to(integers("options['episode']", asked, shape), self.num_envs)[rows].tolist()
        self._begin(rows, seeds, asked)
        if seeds is not None and seeds[0] is not None:
            super().reset(seed=seeds[0])
        observation = self._core.observe(self.copy)
        return observation, self._ranks(self._all if mask is None else mask)

    def _seeds(self, seed: Any, shared: bool) -> list[int | None]:
        """The root that is asked for in each slot."""
        if isinstance(seed, (list, tuple)) or (isinstance(seed, np.ndarray) and seed.ndim > 0):
            if len(seed) != self.num_envs:
                raise ValueError(f"a list of seeds has one per slot ({self.num_envs}), got {len(seed)}")
            return [None if root is None else rng.root_number(root) for root in seed]
        first = rng.root_number(seed)
        return [first if shared else first + i for i in range(self.num_envs)]

    def _begin(self, rows: Array, seeds: Sequence[int | None] | None = None, numbers: Any = None) -> None:
        """Start episodes in the slots `rows`, see `_start`; by itself the next ones, as an autoreset does."""
        self._start(rows, seeds, numbers)
        self._waiting = int(np.count_nonzero(self._sim.status == ENDED))

    def step(self, actions: Any) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Info]:
        """One action per slot: arms (N,), or for `actions="full"` a dict of `arm` (N,), `times` (N,), `answer` (N, K).

        Raises:
            ValueError: for an action of wrong type, shape or range; no episode is then touched.
            gymnasium.error.ResetNeeded: before the first reset.
        """
        *outcome, info = self.advance(actions)
        observation = self._core.observe(self.copy)
        return observation, *outcome, info | self._ranks(self._all)

    def _ranks(self, slots: NDArray[np.bool_]) -> dict[str, Array]:
        """The entries of the info for the order in which the arms of some slots (N,) were shown last."""
        if not self.setting.ranked:
            return {}
        order = self._core.order if slots is self._all else np.where(slots[:, None], self._core.order, 0)
        return {"order": order.copy(), "_order": slots.copy()}

    def advance(self, actions: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Info]:
        """`step` without the observations, which take the most time where they are features."""
        if self._roots is None:
            raise self._core.need_reset()
        if self.advises:
            self.advises = False
            self.setting.advise(trains=True)
        sim = self._sim
        restart = np.flatnonzero(sim.status == ENDED) if self._waiting and self._next_step else None
        everyone = self._waiting == 0
        count, answers = self._core.advance(actions)
        info: Info = {}
        if self._core.waiting is not None:
            pass  # results are seen in the observation
        elif everyone and not count:
            info["sample"], info["_sample"] = sim.sample.copy(), self._all
        elif (pulled := sim.did == PULLED).any():
            info["sample"], info["_sample"] = sim.sample.copy(), pulled
        if count:
            over = np.zeros(self.num_envs, np.bool_)
            over[sim.ended[:count]] = True
            ended = np.flatnonzero(over)
            for name, value in self._core.finish(ended, answers).items():
                column = np.zeros((self.num_envs, *value.shape[1:]), value.dtype)
                column[ended] = value
                info[name], info[f"_{name}"] = column, over
            self._waiting += count
        if restart is not None:
            self._begin(restart)
        outcome = sim.reward.copy(), sim.terminated.copy(), sim.truncated.copy()
        if count and self._same_step:
            info = self._final(ended, over, info)
            self._begin(ended)
        return *outcome, info

    def _final(self, ended: NDArray[np.intp], over: NDArray[np.bool_], info: Info) -> Info:
        """The info of a step in SAME_STEP, as Gymnasium's SyncVectorEnv gives it, of the info in the other modes.

        The entries `final_obs` and `final_info` are of the slots `ended` (n,), marked by `over` (N,); all others go on.
        """
        before = self._core.order.copy()  # of the slots that go on, as they were shown
        last = self._core.observe(copy=False)
        info |= self._ranks(over)
        self._core.order[~over] = before[~over]
        last = {name: array[ended] for name, array in last.items()} if isinstance(last, dict) else last[ended]
        observations = np.full(self.num_envs, None, object)
        for slot, observation in zip(ended, iterate(self.observation_space, last), strict=True):
            observations[slot] = observation
        sample, pulled = info.pop("sample", None), info.pop("_sample", over)
        going: Info = {}
        for found, slots in ((info, pulled & over), (going, pulled & ~over)):
            if sample is not None and slots.any():
                found["sample"], found["_sample"] = np.zeros_like(sample), slots
                found["sample"][slots] = sample[slots]
        return going | {"final_obs": observations, "_final_obs": over, "final_info": info, "_final_info": over}

    def means(self, slots: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Empirical means of the given slots (None: all), (n, K) or (n, K, D), NaN for arms never pulled."""
        return self._core.seen(slots)

    def true_means(self, slots: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """The true means of the given slots (None: all), (n, K) or (n, K, D): for pictures, not for agents."""
        means = np.broadcast_to(self._core.means, (self.num_envs, *self._core.means.shape[1:]))
        return np.array(means if slots is None else means[slots])

    def as_listed(self, slots: NDArray[np.int64], values: Array) -> Array:
        """Values of the arms of slots (n,), (n, K, ..), in the order in which the instance lists its arms."""
        places = self._core.places
        return values if places is None else values[np.arange(len(values))[:, None], places[slots]]

    def assess(self, slots: NDArray[np.int64], answers: NDArray[np.bool_] | None = None) -> dict[str, Array]:
        """`correct`, `score` and the metrics, (n,) each, of answers (n, K) in slots (n,), without ending anything.

        None: of the plug-in answers, which the stop action gives.
        """
        return self._core.assess(slots, answers)[1]

    def certify(self, slots: NDArray[np.int64], **options: Any) -> dict[str, Array]:
        """What `Problem.certificate` says of the plug-in answers of slots (n,): {name: (n,)}.

        The options, e.g. `bounds` of `TopK.certificate`, are for the problems of this package; others do without them.
        """
        sim = self._sim
        if not self.problem.certificate_names:
            return {}
        seen = sim.pulls[slots], sim.mean[slots], sim.variance[slots]
        given = options if ours(self.problem) else {}
        return self.problem.certificate(*seen, width=self.task.width, **given)

    @property
    def certifier(self) -> Certifier | None:
        """The certifier of `level` and of the info of ended episodes, see `Task.certifier`, or None; it can be set."""
        return self._core.certifier

    @certifier.setter
    def certifier(self, certifier: Certifier | None) -> None:
        self._core.certifier = certifier

    def level(self, slots: NDArray[np.int64], answers: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
        """The smallest delta at which the plug-in answers of slots (n,) are certified now; 1 without a certifier.

        Of columns of a table they may be others, answers (n, K).
        """
        return self._core.level(slots, answers)
