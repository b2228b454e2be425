"""A language model behind an endpoint plays the benchmark for text: any server with the chat completions of OpenAI.

    export OPENAI_API_KEY=..
    python examples/language_endpoint.py --model gpt-4o-mini
    python examples/language_endpoint.py --url http://localhost:11434/v1 --model llama3.2   # Ollama, vLLM, llama.cpp

It prints how many calls it takes at most before it begins. Replies are kept in replies-<model>.db: after a kill, or a
limit, the same command goes on. Nothing but the standard library is needed for the calls.
"""

from __future__ import annotations

import argparse
import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any

import agents
from bandit_envs import benchmark_tasks


def endpoint(url: str, model: str, **settings: Any) -> Callable[[list[dict[str, str]]], tuple[str, int]]:
    """The function from messages to the reply and its tokens. `settings`: others of the endpoint, as temperature=0."""
    place = url.rstrip("/") + "/chat/completions"

    def complete(messages: list[dict[str, str]]) -> tuple[str, int]:
        body = json.dumps({"model": model, "messages": messages, **settings}).encode()
        head = {"Content-Type": "application/json"}
        if key := os.environ.get("OPENAI_API_KEY"):
            head["Authorization"] = f"Bearer {key}"
        try:
            with urllib.request.urlopen(urllib.request.Request(place, body, head), timeout=100) as answer:
                found = json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise OSError(f"{error.code} {error.reason}: {error.read(300).decode(errors='replace')}") from None
        text = found["choices"][0]["message"]["content"] or ""  # none where the model only thinks
        return text, int((found.get("usage") or {}).get("total_tokens", 0))

    return complete


def main(arguments: Sequence[str] | None = None) -> agents.Benchmark:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="https://api.openai.com/v1")
    parser.add_argument("--model", required=True)
    parser.add_argument("--view", default="table", choices=["table", "history", "raw"])
    parser.add_argument("--tasks", nargs="+", help="some of the set quick-v2-text")
    parser.add_argument("--max-calls", type=int, default=20_000)
    parser.add_argument("--against", nargs="*", default=["uniform", "evidence"], help="agents beside it")
    given = parser.parse_args(arguments)
    tasks = benchmark_tasks(given.tasks or "quick-v2-text")
    turns = sum(task.episodes * (1 + task.kwargs.get("budget", task.kwargs.get("max_pulls"))) for task in tasks)
    print(f"{turns:,} calls if each pull is one, more for replies that cannot be read; at most {given.max_calls:,}")
    model = agents.LanguageAgent(
        endpoint(given.url, given.model),
        name=given.model,
        view=given.view,
        store=f"replies-{given.model.replace('/', '-')}.db",
        max_calls=given.max_calls,
    )
    result = agents.benchmark([model, *given.against], [task.name for task in tasks])
    columns = ["agent", "all", "all_low", "all_high", "calls", "tokens", "unreadable", "forfeited"]
    print(result.summary()[columns].round(2).to_string(index=False))
    tasks, pulls = {task.name: task for task in result.tasks}, result.table.set_index(["task", "agent"])["value"]
    for _, row in result.stops("none").iterrows():
        task, low, high = tasks[row["task"]], row["errors_low"], row["errors_high"]
        delta = task.kwargs["delta"]
        word = "too many" if low > delta else "few enough" if high <= delta else "undecided"
        print(
            f"{row['agent']} on {task.name} stops after {row['pulls']:.1f} pulls and is wrong in {row['errors']:.0%}",
            end="",
        )
        print(f" [{low:.0%}, {high:.0%}] of its answers; {delta:.0%} are allowed: {word}.", end=" ")
        print(", ".join(f"{name}: {pulls[task.name, name]:.1f} pulls, certified" for name in given.against))
    return result


if __name__ == "__main__":
    main()
