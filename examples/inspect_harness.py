"""Choose a prompt with Inspect (https://inspect.aisi.org.uk) as the grader: `Session.run` asks, Inspect answers.

An arm is a model with a system prompt, an item is the id of a sample of an Inspect task, and a cell of the table is one
`inspect_ai.eval` of one sample. An evaluation keeps the thread and the event loop that it runs in, so that each worker
is a process. Here the model is Inspect's mock, so that nothing is paid. Put your own task in the place of `sums`, your
prompts in that of `PROMPTS`, a name as "openai/gpt-4o-mini" in that of `mock()`, and a path of your own in that of the
temporary store. Of a task with several scores, say in `grade` which one counts.

    pip install inspect_ai
    python examples/inspect_harness.py
"""

from __future__ import annotations

import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

WORKERS = 2
PROMPTS = {"terse": "Answer.", "careful": "Think, then answer.", "kind": "Please answer, and be careful."}


def mock() -> Any:
    """A model that adds up small numbers, and larger ones the better it is told to think."""
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def reply(messages: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
        a, b = map(int, messages[-1].text.split("+"))
        most = {"terse": 40, "careful": 90, "kind": 60}[next(k for k, v in PROMPTS.items() if v == messages[0].text)]
        output = ModelOutput.from_content("mockllm/model", f"Answer: {a + b if a + b <= most else 0}")
        output.usage = ModelUsage(input_tokens=3, output_tokens=2, total_tokens=5)
        return output

    return get_model("mockllm/model", custom_outputs=reply, memoize=False)


def sums() -> Any:
    """A task of 60 sums."""
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.scorer import match
    from inspect_ai.solver import generate

    samples = [Sample(id=f"sum-{i}", input=f"{i}+{i % 50}", target=str(i + i % 50)) for i in range(60)]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=match(numeric=True))


def grade(arm: str, item: str) -> float:
    """The score of one prompt on one sample."""
    from inspect_ai import eval as inspect_eval
    from inspect_ai.scorer import value_to_float
    from inspect_ai.solver import generate, system_message

    with tempfile.TemporaryDirectory() as logs:
        (log,) = inspect_eval(
            sums(),
            model=mock(),
            solver=[system_message(PROMPTS[arm]), generate()],
            sample_id=[item],
            epochs=1,
            log_dir=logs,
            display="none",
            log_realtime=False,
        )
        (sample,) = log.samples or [None]
        if log.status != "success" or sample is None or sample.error is not None or not sample.scores:
            raise RuntimeError(f"{arm} on {item}: {log.error or sample and sample.error or 'no score'}")
        (score,) = sample.scores.values()
        return float(value_to_float()(score.value))


def main() -> None:
    """Find the best prompt."""
    import agents

    facts = {
        "problem": "BestArm",
        "arms": list(PROMPTS),
        "items": [sample.id for sample in sums().dataset],
        "binary": True,
        "delta": 0.1,
        "epsilon": 0.05,
    }
    with (
        ProcessPoolExecutor(WORKERS, get_context("spawn")) as pool,
        tempfile.TemporaryDirectory() as place,  # your own keeps the file
        agents.Session("paired-elimination", facts, store=Path(place) / "prompts.db") as session,
    ):
        count = session.run(grade, executor=pool)
        best = [name for name, inside in zip(session.names, session.answer(), strict=True) if inside]
        print(f"{best[0]} after {count} of {len(PROMPTS) * 60} calls, right with probability {session.certificate:.2f}")


if __name__ == "__main__":
    main()
