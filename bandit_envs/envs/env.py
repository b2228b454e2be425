"""`PureExplorationEnv`, a gymnasium.Env: one episode at a time, as a batch of one."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium as gym
import numpy as np
from numpy import int64

from ..kernels import Bools, rng
from ..simulation.simulator import PULLED
from .drawing import Viewer, Window, image, text
from .episodes import Array, Environment, Episodes, Info, read_options
from .setting import SB3, resolve

OPTIONS = ("episode",)  # of `reset`
MODES = ("human", "ansi", "rgb_array")  # of `render`


class PureExplorationEnv(Environment, gym.Env[Any, Any]):
    """A pure-exploration bandit, one episode at a time: pull arms, then stop and answer; see docs/environments.md.

    Action: `actions="arm"`: an arm 0 .. K - 1, or K to stop with the plug-in answer; a spent budget ends the episode
    with it. `actions="full"`: a dict of `arm`, `times` (bulk pull) and `answer` (mask (K,)), read when `arm` is K or
    the budget is spent; where results are pending, `times` 0 closes a batch, and shows the next result.

    Observation: `"statistics"`: a dict of `pulls` (K,), `total`, `mean`, `variance` (K,) or (K, D), `remaining` (1,)
    (-1 without a budget) and `public_seed` (1,); with `Task.keeps_moments` also `moments`, (K, 2) or (K, D, 2), third
    and fourth central ones; with `Task.items` also `scores`, (K, N) or (K, N, D), of arm k the first pulls[k] shown.
    `"features"`: float32 (K * F,), arm-major, of `bandit_envs.FEATURES`. `"relative"`: float32 (6 K + 4,), what is
    believed of the arms, in any units (docs/potential.md). `"history"`: a dict of `arms` (H,), `samples` (H,) or
    (H, D), `times` (H,), `length` (1,), the entries so far, `remaining` and `public_seed`; H is the budget or
    max_pulls, the smaller one; behind the last entry arms are -1, samples and times 0. With `batch` or `delay` dicts
    have `pending`, of the shape of `pulls`, and arrays one more number of each arm: pending / (pulls + pending);
    histories have single pulls. Results count in the order of the pulls, or of their arm's where arms count alone.

    Reward: 0, less `pull_cost` per pull; at the end the answer's score in [0, 1] (or 1 if correct, with
    `reward="correct"`). With `reward="gain"`: of each pull its expected gain in the score at the end, less `pull_cost`,
    when its result is shown, and nothing at the end. Terminated: the agent answered, or the budget is spent.
    Truncated: `max_pulls` is reached.

    Info: `sample`, what the pull yielded (the average of a bulk pull; none with `batch` or `delay`); `order` (K,), the
    arms by rank, with `ranked`. At the end also `answer`, `correct`, `is_success`, `score`, `total_pulls`, `money` with
    `cost`, and the problem's metrics.

    With these defaults learners end behind random play: to train, make the id with "-learn-", or call `agents.train`.

    With `cost`, sums may exceed the budget by 1e-9 of it. `remaining` is what is left, rounded down, at least 1 while
    some arm can be paid. A bulk pull is cut to what can be paid; a pull of an arm that cannot be paid pulls nothing,
    and ends the budget; its `sample` is NaN. Shuffled arms change places with those of the same price alone.

    A copy in mid-episode (`copy.deepcopy`, pickle) shows the same next samples: planning on copies sees the future.

    Args:
        problem: a name of `PROBLEMS` ("Threshold"), or "module:Class" of a problem of one's own.
        instance: a name ("tao2019-1", "sampler(arms=20)"), "module:factory", a dict in JSON form, `Arms`, an
            `Instance`, a `Sampler`, or a function that makes one; None: the problem's own `sampler`, else 10 Bernoulli
            arms drawn afresh in every episode.
        budget: pulls per episode, or None. delta: allowed error probability, or None.
        max_pulls: pulls after which an episode is truncated, or None. pull_cost: price of a pull, >= 0.
        cost: prices of a pull, > 0: a list of K, a dict by names (others: 1), or "row"; it goes without pull_cost.
        reward: "score", "correct" or "gain", which needs actions="arm", a budget or max_pulls, and, as `ranked` and
            beliefs do, pulls of whole arms. actions: "arm" or "full".
        observation: "statistics", "features", "relative" or "history", which needs a budget or max_pulls.
        shuffle_arms: give the arms in a random order in every episode; None: as the instance has it; else, where arms
            are compared with each other and may change places (`Problem.any_order`), unless all are drawn alike.
        pull: what a pull samples: an "arm", or one "coordinate" of a D-dimensional arm; then the actions are
            arm * D + coordinate, K * D stops, `pulls` has shape (K, D), and a sample is a number.
        stop: whether there is an action that stops; without it, arms alone are actions, and a budget is needed.
        ranked: show the arms, and name them in actions, in the order of |d| / sd of `Lookahead.beliefs`.
        salt: an integer in 0 .. 2^63 - 1; another one gives unrelated public seeds, on the same samples.
        batch: results are shown so many at a time, an integer >= 1. Up to 2^26 may be pending side by side.
        delay: results are shown so many further pulls later, a number >= 0; or "exponential(8)", drawn with this mean.
        render_mode: None, "ansi" (a table), "rgb_array" (a picture), or "human" (a window in which the picture moves);
            pictures need matplotlib.
        **parameters: the problem's own, e.g. `threshold`, `epsilon`, `k`.

    Raises:
        ValueError: naming the value and what is allowed. TypeError: for an unknown keyword.
    """

    metadata = {"render_modes": list(MODES), "render_fps": 10}
    bound = ("_core", "_row", "_arm", "_advance", "_sample", "_views", "_window")

    def __init__(self, problem: str, *, render_mode: str | None = None, **settings: Any) -> None:
        if not (render_mode is None or isinstance(render_mode, str) and render_mode in MODES):
            raise ValueError(f"render_mode must be None or one of {list(MODES)}, got {render_mode!r:.200}")
        self.render_mode = render_mode
        self.setting = resolve(problem, **settings)
        self.setting.advise(trains=False, below=SB3)  # TorchRL swallows the warnings of constructors
        self.observation_space, self.action_space = self.setting.observation_space(), self.setting.action_space()
        self._over = True
        self._open(1)

    def _bind(self) -> None:
        """Make the episode's slot, and keep at hand what `step` needs."""
        self._window: Window | None = None
        self._core = Episodes(self.setting, 1)
        self._row, self._arm = np.zeros(1, np.int64), np.zeros(1, np.int64)
        sim = self._core.simulator
        self._advance, self._sample, self._scalar = self._core.bind(self._arm), sim.sample, sim.D == 1
        self._is_ranked = self.setting.ranked
        self._last, self._gains = self.task.last, self.setting.reward == "gain"
        self._paid = 0.0 - self.task.pull_cost  # the reward of a single pull
        self._full, self._waits, plain = self._core.full, self.task.waits, self.task.observation == "statistics"
        self._plain = plain and not (self._is_ranked or self._waits or self.task.keeps_moments or self.task.items)
        self._views = tuple(view[0] for view in self._core.observe(copy=False).values()) if self._plain else ()

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        """Start an episode: number 0 of root `seed`; without a seed, the next one.

        Args:
            seed: root seed, an integer >= 0.
            options: {"episode": e} goes to episode e of the root.
        """
        # Gymnasium's `check_env` asks so before any step; its vector environments do after an episode.
        self.setting.advise(trains=seed is None and options == {} and not self._core.simulator.spent.any())
        root = None if seed is None else rng.root_number(seed)
        asked = read_options(options, OPTIONS).get("episode")
        self._start(self._row, None if root is None else [root], None if asked is None else [asked])
        super().reset(seed=root)
        self._over = False
        return self._observe(), self._ranks()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        """Pull, or stop and answer.

        Raises:
            ValueError: for an action or answer of wrong type, shape or range; the episode is then untouched.
            gymnasium.error.ResetNeeded: when the episode has ended.
        """
        if self._over:
            raise self._core.need_reset()
        sim = self._core.simulator
        if self._full:
            ended, answers = self._core.advance(self._batch(action))
            paid = sim.reward.item(0)
        else:
            answers = None
            if type(action) is not int and type(action) is not int64:
                action = self._core.plain_arms(action, ()).item()
            if not 0 <= action <= self._last:
                raise ValueError(sim.no_action(action))
            self._arm[0] = self._core.order[0, action] if self._is_ranked and action < self._core.K else action
            ended = self._advance()
            paid = sim.reward.item(0) if self._gains else self._paid
        if ended:
            return self._end(answers)
        if self._waits:
            return self._observe(), paid, False, False, self._ranks()
        sample = self._sample.item(0) if self._scalar else self._sample[0].copy()
        return self._observe(), paid, False, False, {"sample": sample, **self._ranks()}

    def _end(self, answers: Array | None) -> tuple[Any, float, bool, bool, Info]:
        """What `step` returns when the episode has ended; answers: (1, K), or None for the plug-in answer."""
        self._over, sim = True, self._core.simulator
        info: Info = {}
        if sim.did[0] == PULLED and not self._waits:
            info["sample"] = self._sample.item(0) if self._scalar else self._sample[0].copy()
        end = self._core.finish(self._row, answers)
        info["answer"] = end.pop("answer")[0]
        info |= {name: value[0].item() for name, value in end.items()}
        seen = self._observe()
        return seen, sim.reward[0].item(), bool(sim.terminated[0]), bool(sim.truncated[0]), info | self._ranks()

    def _ranks(self) -> Info:
        """The entry of the info for the order in which arms have just been shown."""
        return {"order": self._core.order[0].copy()} if self._is_ranked else {}

    def _batch(self, action: Any) -> Any:
        """A full action with an axis of length 1 in front."""
        if not isinstance(action, dict):
            return action
        batch = dict(action)
        for name, value in action.items():
            if name in ("arm", "times", "answer"):
                try:
                    batch[name] = np.asarray(value)[None]
                except (TypeError, ValueError):
                    raise ValueError(f"{name} must be a plain array of integers, got {value!r:.200}") from None
        return batch

    def _observe(self) -> Any:
        """A copy of what the agent sees; what a human sees is drawn again."""
        if self.render_mode == "human":
            self.render()
        if not self._plain:
            seen = self._core.observe(copy=True)
            return {name: array[0] for name, array in seen.items()} if isinstance(seen, dict) else seen[0]
        pulls, total, mean, variance, remaining, public_seed = self._views
        return {
            "pulls": pulls.copy(),
            "total": total.copy(),
            "mean": mean.copy(),
            "variance": variance.copy(),
            "remaining": remaining.copy(),
            "public_seed": public_seed.copy(),
        }

    def action_masks(self) -> Bools:
        return super().action_masks()[0]  # type: ignore[no-any-return]

    @functools.cached_property
    def _viewer(self) -> Viewer:
        return Viewer(self.task, self.problem)

    def render(self) -> Any:
        """The episode as it stands.

        Returns:
            A table as text (`render_mode="ansi"`), or an image (480, 640, 3) uint8 (`"rgb_array"`); else None. With
            `"human"` it draws into a window, which `step` and `reset` do by themselves.
        """
        core, sim = self._core, self._core.simulator
        pulls, mean = core.pulls[0], core.mean[0]
        if self.render_mode == "ansi":
            return text(self.setting, pulls, mean, int(sim.remaining[0, 0]), self._over)
        if self.render_mode is None:
            return None
        view = self._viewer.view(pulls, mean, core.variance[0])
        of = "" if self.task.budget is None else f" of {self.task.budget:,}"
        title = f"{self.problem.name}: {pulls.sum():,}{of} pulls{', ended' if self._over else ''}"
        if self.render_mode == "rgb_array":
            return image(self._viewer, view, title)
        if self._window is None:
            self._window = Window()
        self._window.show(self._viewer, view, title)
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None
        super().close()
