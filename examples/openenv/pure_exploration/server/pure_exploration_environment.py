"""The environment of a session: `TextView` behind `reset`, `step` and `state`; and the tasks of the splits."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any
from uuid import uuid4

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import EnvironmentMetadata, State

import bandit_envs
from bandit_envs.text import TextView

try:
    from ..models import BanditAction, BanditObservation
    from .settings import Refused, opened
    from .tasks import SPLITS, task
except ImportError:  # as `uvicorn server.app:app` in this package's folder
    from models import BanditAction, BanditObservation
    from server.settings import Refused, opened
    from server.tasks import SPLITS, task

MOST_SEED = 2**32 - 1


class BanditEnvironment(Environment[BanditAction, BanditObservation, State]):
    """One episode after the other. Sessions share nothing."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self) -> None:
        super().__init__()
        self._view: TextView | None = None
        self._settings: dict[str, Any] = {}
        self._over, self._state = True, State()

    def reset(self, /, seed: int | None = None, episode_id: str | None = None, **settings: Any) -> BanditObservation:
        """Start an episode; its message says the task.

        Args:
            seed: episode 0 of this root, or number `episode=`. None: of the same settings as before the next episode,
                else one that was never there.
            episode_id: in `state`; None: a new one.
            settings: `problem`, "BestArm" unless given; its settings and those of `TextView`. Or `split` and `index`
                of a task, and no problem, instance or parameter beside them.

        Raises:
            Refused: for anything else. The episode before is then as it was.
        """
        if "split" in settings or "index" in settings:
            seed, settings = self._of_task(seed, settings)
        seed, episode = _whole("seed", seed), _whole("episode", settings.pop("episode", None))
        if not (episode_id is None or isinstance(episode_id, str) and len(episode_id) <= 255):
            raise Refused(f"episode_id must be a text of at most 255 characters, got {episode_id!r:.80}")
        same = self._view is not None and repr(settings) == repr(self._settings)
        given = {**settings}
        view = self._view if same else opened(given.pop("problem", "BestArm"), given)
        assert view is not None
        options = None if episode is None else {"episode": episode}
        try:
            message, _ = view.reset(seed=seed, options=options)
        except ValueError as error:
            raise Refused(f"{error}") from error
        self._view, self._settings, self._over = view, settings, False
        self._state = State(episode_id=str(uuid4()) if episode_id is None else episode_id, step_count=0)
        return BanditObservation(message=message)

    async def reset_async(
        self, /, seed: int | None = None, episode_id: str | None = None, **settings: Any
    ) -> BanditObservation:
        """As `reset`, in a thread. Any name may be among the settings, as "self", and is then refused."""
        return await asyncio.to_thread(partial(self.reset, seed, episode_id, **settings))

    def step(self, action: BanditAction, timeout_s: float | None = None) -> BanditObservation:
        """Do what a text asks for; Refused where there is no episode, or it has ended."""
        if self._view is None:
            alone = "over HTTP each request is a session of its own, and an episode is played at /ws"
            raise Refused(f"there is no episode: reset first ({alone})", 409)
        if self._over:
            raise Refused("the episode has ended: reset first", 409)
        message, reward, terminated, truncated, _ = self._view.step(action.text)
        self._state.step_count += 1
        self._over = terminated or truncated
        return BanditObservation(message=message, reward=reward, done=self._over)

    @property
    def state(self) -> State:
        """The id of the episode, and the number of its steps."""
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        """What the server says of itself."""
        return EnvironmentMetadata(
            name="pure_exploration",
            description="Pure-exploration bandits in words: when have you seen enough, and what do you answer?",
            version=bandit_envs.__version__,
        )

    # The task interface

    def list_splits(self) -> list[dict[str, str]]:
        """The splits."""
        return [{"name": name, "type": name} for name in SPLITS]

    def num_tasks(self, split: str) -> int:
        """How many tasks a split has."""
        return SPLITS[_split(split)][0]

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """A task: what `reset` takes for it."""
        return task(_split(split), index)

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[dict[str, Any]]:
        """The tasks of a slice."""
        return [task(split, i) for i in range(self.num_tasks(split))[start:stop]]

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        """All of a split."""
        return self.get_task_range(split)

    def _of_task(self, seed: Any, settings: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """The seed and the settings of a task, with what is given of its text."""
        split, index = settings.pop("split", None), _whole("index", settings.pop("index", None))
        if index is None or seed is not None or not {*settings} <= {"story", "view", "tool_calls", "patience"}:
            raise Refused("a task is chosen by split and index alone, with story, view, tool_calls and patience")
        try:
            found = task(_split(split), index)["reset"]
        except IndexError as error:
            raise Refused(f"{error}") from error
        return found.pop("seed"), {**found, **settings}


def _split(name: Any) -> str:
    if not isinstance(name, str) or name not in SPLITS:
        raise Refused(f"split must be one of {[*SPLITS]}, got {name!r:.80}", 404)
    return name


def _whole(name: str, value: Any) -> int | None:
    """An integer of a client, checked."""
    if value is not None and (type(value) is not int or not 0 <= value <= MOST_SEED):
        raise Refused(f"{name} must be an integer from 0 to {MOST_SEED}, got {value!r:.80}")
    return value
