"""The client: an episode by websocket. It needs openenv alone, and no bandit_envs."""

from typing import Any

from openenv.core import EnvClient
from openenv.core.client_types import StepResult
from openenv.core.env_server.types import State

from .models import BanditAction, BanditObservation


class BanditEnv(EnvClient[BanditAction, BanditObservation, State]):
    """A session on a server; see README.md for what `reset` takes.

    async with BanditEnv(base_url="http://localhost:8000") as env:
        result = await env.reset(seed=1, problem="TopK", k=2, budget=60)
        result = await env.step(BanditAction(text="PULL teal 3"))
    """

    def _step_payload(self, action: BanditAction) -> dict[str, Any]:
        return {"text": action.text}

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[BanditObservation]:
        said, reward, done = payload["observation"], payload["reward"], payload["done"]
        observation = BanditObservation(message=said["message"], reward=reward, done=done)
        return StepResult(observation=observation, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> State:
        return State(**payload)
