"""No agent decides differently from the golden episodes: see `golden` for what is played, and how to record it anew."""

from __future__ import annotations

import functools
from typing import Any

import golden
import pytest

import agents

HEADER, DIGESTS = golden.read()


@functools.cache
def reason() -> str | None:
    """Why digests cannot be compared here."""
    return golden.incomparable(HEADER)


@pytest.mark.filterwarnings("ignore:.*has no effect:UserWarning")  # some variants differ from others in nothing
@pytest.mark.parametrize("name", sorted({golden.bare(key) for key in DIGESTS}))
def test_an_agent_plays_as_recorded(name: str) -> None:
    if reason():
        pytest.skip(str(reason()))
    if name in golden.NETWORKS:
        pytest.importorskip("torch", reason=f"{name} needs PyTorch")
    differ = [key for key in DIGESTS if golden.bare(key) == name and golden.digest(key) != DIGESTS[key]]
    assert differ == []


def test_every_agent_is_played_on_every_problem_that_it_solves() -> None:
    settings = golden.SETTINGS
    played = {(golden.bare(key), settings[golden.split(key)[1]].problem) for key in DIGESTS}
    problems = {setting.problem for setting in settings.values()}
    assert played == {(name, problem) for problem in problems for name in agents.names(problem)}
    assert set(golden.VARIANTS) <= {golden.split(key)[0] for key in DIGESTS}


@pytest.mark.parametrize(
    ("key", "changed"),
    [
        ("st2 | AllGood epsilon=.4 gaussian K=12 delta", "st2(delta=0.09)"),
        ("lucb | TopK k=2 bernoulli K=6 delta, arms, memory dropped", "lucb(delta=0.05)"),
        ("random | BestArm bernoulli K=10 budget", "random(seed=1)"),
        ("lsa | Threshold gaussian K=300 budget, arms", "lsa(alpha=1.25)"),
    ],
)
def test_a_changed_agent_gives_another_digest(key: str, changed: str) -> None:
    _, setting = golden.split(key)
    assert golden.digest(key) == golden.digest(key) != golden.digest(f"{changed} | {setting}")


class Slip:
    """An agent that pulls another arm once, in one of the slots.

    Args:
        agent: the agent. call: of `predict` at which that happens; None: never.
    """

    def __init__(self, agent: Any, call: int | None) -> None:
        self.agent, self.call, self.calls = agent, call, 0
        self.recommend = agent.recommend

    def predict(self, observation: Any, state: Any) -> tuple[Any, Any]:
        action, state = self.agent.predict(observation, state)
        if self.calls == self.call:
            action["arm"][4] = (action["arm"][4] + 1) % self.agent.task.K
        self.calls += 1
        return action, state


def test_a_single_arm_in_a_single_slot_counts() -> None:
    key = "uniform | Threshold bernoulli K=10 budget"
    setting = golden.SETTINGS[golden.split(key)[1]]

    def played(call: int | None) -> str:
        envs, agent = golden.make("uniform", setting)
        return golden.play(envs, Slip(agent, call), setting)[0]

    assert golden.digest(key) == played(None) != played(37)
