"""End an evaluation of Inspect (https://inspect.aisi.org.uk) once it is decided which of two models is better.

A task that was run in full is the reference: here the dict `REFERENCE`, else the path of its log. `Decided` is an
`EarlyStopping` of Inspect. It compares the samples so far with the reference, at any time, and lets no more samples
begin when the interval of the difference leaves out 0.

That holds if the samples come in a random order, which `Task`'s dataset is given before the run, and if which of them
count does not depend on how they went. So a sample counts only when all before it are done: of samples side by side
those that end first may be the easy ones. A sample that ends in an error holds up those behind it.

    pip install inspect_ai
    python examples/inspect_stopping.py
"""

from __future__ import annotations

import tempfile
from typing import Any

import agents

ITEMS = 400
REFERENCE = {f"sum-{i}": float(i % 5 > 0) for i in range(ITEMS)}  # right on four of five; or the path of a log


class Decided:
    """Ends a task when its model is shown to be better or worse than the reference.

    Args:
        reference: scores by the ids of samples. scorer: of the task. delta: the error rate.
    """

    def __init__(self, reference: dict[str, float], scorer: str, delta: float = 0.05) -> None:
        self.reference, self.scorer, self.delta = reference, scorer, delta
        self.order: list[Any] = []
        self.scores: dict[Any, float] = {}
        self.sentence = ""

    async def start_task(self, task: Any, samples: list[Any], epochs: int) -> str:
        """Inspect calls it with all samples, in their order."""
        if epochs > 1:
            raise ValueError(f"epochs must be 1, got {epochs}")
        self.order = [sample.id for sample in samples]
        return "decided"

    async def schedule_sample(self, id: str | int, epoch: int) -> Any:
        """Inspect calls it before each sample: what it returns keeps the sample from being run."""
        from inspect_ai.util import EarlyStop

        return EarlyStop(id=id, epoch=epoch, reason=self.sentence) if self.sentence else None

    async def complete_sample(self, id: str | int, epoch: int, scores: dict[str, Any]) -> None:
        """Inspect calls it with the scores of a sample."""
        from inspect_ai.scorer import value_to_float

        self.scores[id] = float(value_to_float()(scores[self.scorer].score.value))
        done = next((n for n, one in enumerate(self.order) if one not in self.scores), len(self.order))
        if self.sentence or id not in self.order[:done]:
            return
        logs = {"reference": self.reference, "new": {one: self.scores[one] for one in self.order[:done]}}
        (row,) = agents.compare_logs(logs, delta=self.delta).to_dict("records")
        if not row["low"] <= 0 <= row["high"]:
            self.sentence = row["sentence"]

    async def complete_task(self) -> dict[str, Any]:
        """Inspect writes this into the log."""
        return {"decision": self.sentence or "none"}


def sums(stopping: Any) -> Any:
    """A task of sums, in a random order."""
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.scorer import match
    from inspect_ai.solver import generate

    data = MemoryDataset([Sample(id=name, input=f"{name[4:]}+1", target=str(int(name[4:]) + 1)) for name in REFERENCE])
    data.shuffle(seed=1)
    return Task(dataset=data, solver=generate(), scorer=match(numeric=True), early_stopping=stopping)


def mock() -> Any:
    """A model that is right on three of five."""
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def reply(messages: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
        number = int(messages[-1].text.split("+")[0])
        output = ModelOutput.from_content("mockllm/model", str(number + 1 if number % 5 > 1 else 0))
        output.usage = ModelUsage(input_tokens=3, output_tokens=2, total_tokens=5)
        return output

    return get_model("mockllm/model", custom_outputs=reply, memoize=False)


def main() -> None:
    """Run the task."""
    from inspect_ai import eval as inspect_eval

    decided = Decided(REFERENCE, "match")
    with tempfile.TemporaryDirectory() as logs:
        (log,) = inspect_eval(
            sums(decided), model=mock(), max_samples=4, log_dir=logs, display="none", log_realtime=False
        )
        if log.status != "success" or log.results is None:
            raise RuntimeError(f"the evaluation ended with {log.status}: {log.error}")
        stops = log.results.early_stopping.early_stops if log.results.early_stopping else []
        print(f"{len(decided.scores)} samples were run, {len(stops)} were not needed")
        print(decided.sentence or "not decided")


if __name__ == "__main__":
    main()
