"""A task of Inspect (https://inspect.aisi.org.uk): the model pulls arms until it has seen enough, and answers a set.

    pip install inspect_ai
    inspect eval examples/language_inspect.py --model openai/gpt-4o-mini
    inspect eval examples/language_inspect.py --model openai/gpt-4o-mini -T problem=TopK -T k=3 -T arms=8
    inspect view                                   # the dialogues, and the scores
    python examples/language_inspect.py            # a mock model, so that nothing is paid

A sample is an episode, a solver plays it in words (`bandit_envs.text.TextView`), and the score is the environment's.
Logs, limits, caches and providers are Inspect's. Beside the mean score the log has, in each sample's metadata, the
pulls, and the scores of `uniform` and of an agent made for the problem on the same episode.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

import agents
from bandit_envs.text import TextView

RIVAL = {"Threshold": "lsa", "Feasible": "lsa", "BetterThanControl": "lsa"}  # else evidence


@solver
def played(problem: str, kwargs: dict[str, Any], view: str, story: str) -> Solver:
    """Play the episode of a sample to its end."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        env = TextView(gym.make(f"bandit_envs/{problem}-v0", actions="full", **kwargs), story=story, view=view)
        said, _ = env.reset(seed=0, options={"episode": int(state.sample_id)})
        state.messages, over, info = [ChatMessageUser(content=said)], False, dict[str, Any]()
        truncated = False
        while not over and not state.completed:
            state = await generate(state)
            said, _, terminated, truncated, info = env.step(state.output.completion)
            state.messages.append(ChatMessageUser(content=said))
            over = terminated or truncated
        state.metadata |= {name: info[name] for name in ("score", "total_pulls", "correct") if name in info}
        if not over or truncated:  # no answer
            state.metadata |= {"score": 0.0, "correct": False}
        return state

    return solve


@scorer(metrics=[mean(), stderr()])
def score_of_episode() -> Scorer:
    """The environment's score; 0 where a limit of Inspect has cut the episode."""

    async def score(state: TaskState, target: Target) -> Score:
        pulls = state.metadata.get("total_pulls")
        return Score(value=float(state.metadata.get("score", 0.0)), explanation=f"{pulls} pulls")

    return score


@task
def bandits(
    problem: str = "Threshold",
    episodes: int = 20,
    budget: int = 40,
    arms: int = 6,
    view: str = "history",
    story: str = "buttons",
    **parameters: Any,
) -> Task:
    """So many episodes of a problem with arms that are drawn afresh in each.

    Args:
        problem: "Threshold", "AllGood", "TopK", "BestArm" or "BetterThanControl" (Feasible needs a matrix).
        budget: pulls of an episode.
        view, story: of `TextView`. parameters: the problem's own, as k.
    """
    kwargs = {"instance": f"sampler(arms={arms})", "budget": budget, **parameters}
    rivals = ["uniform", RIVAL.get(problem, "evidence")]
    result = agents.evaluate(rivals, problem, episodes=episodes, env_kwargs=kwargs, progress=False)
    scores = {name: result.column(name, "score") for name in rivals}
    samples = [
        Sample(id=str(e), input="an episode", metadata={name: float(scores[name][e]) for name in rivals})
        for e in range(episodes)
    ]
    return Task(
        dataset=MemoryDataset(samples),
        solver=played(problem, kwargs, view, story),
        scorer=score_of_episode(),
        message_limit=8 * budget,
    )


def mock() -> Any:
    """A model that presses each button once and names the first two."""
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def reply(messages: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
        names = messages[0].text.splitlines()[0].partition(": ")[2].rstrip(".").split(", ")
        done = sum(message.role == "assistant" for message in messages)
        text = f"PULL {names[done]}" if done < len(names) else f"ANSWER {names[0]}, {names[1]}"
        output = ModelOutput.from_content("mockllm/model", text)
        output.usage = ModelUsage(input_tokens=3, output_tokens=2, total_tokens=5)
        return output

    return get_model("mockllm/model", custom_outputs=reply, memoize=False)


if __name__ == "__main__":
    from inspect_ai import eval as inspect_eval

    (log,) = inspect_eval(bandits(episodes=5), model=mock(), display="none")
    for sample in log.samples or []:
        print(sample.id, {name: round(float(value), 3) for name, value in sample.metadata.items()})
    print(
        log.status, log.results and {name: round(one.value, 3) for name, one in log.results.scores[0].metrics.items()}
    )
