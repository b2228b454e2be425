"""The printed table of the benchmark is what the code gives, and the cheats that it is made against gain nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import benchmark_table
import numpy as np
import pytest
from benchmark_table import behaviour, main, printed, stale

import agents
from agents.benchmarking import run
from agents.registry import recipes_of
from bandit_envs import benchmark_tasks
from bandit_envs.instances.datasets import local_folder

pd = pytest.importorskip("pandas")

SLOW = ("ppo", "look-ahead", "racing", "lil-ucb")


def test_every_cell_has_a_digest() -> None:
    rows, tasks = printed(), {task.name for some in ("v2", "quick-v2-text") for task in benchmark_tasks(some)}
    assert len({(task, agent) for task, agent, _ in rows}) >= len(rows) - len(benchmark_tasks())
    assert {task for task, _, _ in rows} == tasks
    assert all(len(digest) == 16 for _, _, digest in rows)


def test_some_cells_are_what_the_code_gives() -> None:
    quick = {task.name for task in benchmark_tasks("quick-v2")}
    rows = [row for row in printed() if row[0] in quick and row[1] not in SLOW]
    some = np.random.default_rng(87).permutation(len(rows))[:10]
    assert not stale([rows[i] for i in some])


def test_all_cells_are_what_the_code_gives() -> None:
    if local_folder() is None:
        pytest.skip("data of many tasks are downloaded")
    with pytest.raises(SystemExit) as ended:
        main(["--stale"])
    assert ended.value.code == 0


def test_an_agent_that_is_made_better_is_stale(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`evidence` takes some tenth less pulls than `top-two`: in its place, it is named, and the command fails."""
    [task] = benchmark_tasks(["best-gap-delta"])
    monkeypatch.setattr(benchmark_table, "printed", lambda agent: [(task.name, agent, behaviour(task, agent))])
    with pytest.raises(SystemExit) as ended:
        main(["--stale", "--agent", "top-two"])
    assert ended.value.code == 0
    [better], digest = recipes_of("evidence").values(), behaviour(task, "top-two")
    monkeypatch.setattr(benchmark_table, "recipes_of", lambda agent: {agent: better})
    monkeypatch.setattr(benchmark_table, "printed", lambda agent: [(task.name, agent, digest)])
    with pytest.raises(SystemExit) as ended:
        main(["--stale", "--agent", "top-two"])
    assert ended.value.code == 1
    assert "best-gap-delta, top-two: " in capsys.readouterr().out


# --- cheats -----------------------------------------------------------------------------------------------------------


class Bold(agents.Agent):
    """The two arms that are hardest to tell apart; it stops where a likelihood ratio of Gaussians exceeds 2 nats."""

    name, solves, stops = "bold", ("BestArm",), True

    def choose(self, observation: Any, state: Any) -> Any:
        n, mean = observation["pulls"], observation["mean"]
        E, few = np.arange(len(n)), n.min(axis=1) == 0
        best = np.where(n > 0, mean, -np.inf).argmax(axis=1)
        noise = 2 * self.task.sigma**2 * (1 / np.maximum(n, 1) + 1 / np.maximum(n[E, best], 1)[:, None])
        nats = (mean[E, best][:, None] - mean) ** 2 / noise
        nats[E, best] = np.inf
        rival = nats.argmin(axis=1)
        arm = np.where(n[E, best] <= n[E, rival], best, rival)
        arm = np.where(few, n.argmin(axis=1), arm)
        return np.where(~few & (nats.min(axis=1) > 2), self.task.stop, arm)


class Walker(agents.Agent):
    """Looks for the true means in all frames above it, and answers by them at once."""

    name, solves, stops = "walker", ("BestArm",), True

    def choose(self, observation: Any, state: Any) -> Any:
        return np.full(len(observation["pulls"]), self.task.stop)

    def recommend(self, observation: Any, state: Any = None, slots: Any = None) -> Any:
        import sys

        frame: Any = sys._getframe()
        while frame is not None:
            for one in [*frame.f_locals.values()]:
                if (envs := getattr(one, "envs", one)) is not None and hasattr(envs, "true_means"):
                    answers = self.problem.plug_in(envs.true_means())
                    return answers if slots is None else answers[slots]
            frame = frame.f_back
        return super().recommend(observation, state, slots)


def test_no_cheat_is_ahead_where_deltas_are_ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    """On drawn arms; inside the process of the evaluation the walker is always right without a pull."""
    names = {"bold": Bold, "walker": Walker, "nominal": "evidence(boundary='nominal')", "evidence": "evidence"}
    tasks = ["best-steps-delta"]
    few = [replace(task, episodes=60) for task in benchmark_tasks(tasks)]
    monkeypatch.setattr(run, "benchmark_tasks", lambda set: few)
    result = agents.benchmark(names, tasks)
    for bold, walker, nominal, evidence in zip(*result.cells.values(), strict=True):
        assert max(bold.score, walker.score, nominal.score) < 0.5 * evidence.score
        assert bold.own.pulls < nominal.own.pulls < evidence.value
        assert walker.own.errors > 0.5 * walker.task.episodes
        assert (bold.own.proof, nominal.own.proof, evidence.own.proof) == ("none", "none", "certificate")
    [task] = benchmark_tasks(tasks[:1])
    inside = agents.evaluate(Walker, task.env_id, episodes=20, env_kwargs=task.kwargs)
    assert inside.column("walker", "correct").all()
    assert inside.column("walker", "total_pulls").max() == 0


class Named(Bold):
    """Takes the name of the option by which others are certified, and does without."""

    name = "named"

    def __init__(self, task: Any, stop: str | None = None, delta: float | None = None) -> None:
        super().__init__(task)
        self.delta = delta


class Twice(agents.Agent):
    """Keeps the answers to episodes that it has played to the end, by their public seeds, and knows them then."""

    name, solves, stops = "twice", ("BestArm",), True
    known: ClassVar[dict[int, Any]] = {}

    def choose(self, observation: Any, state: Any) -> Any:
        n, seeds = observation["pulls"], observation["public_seed"][:, 0]
        for seed, row, pulls in zip(seeds.tolist(), observation["mean"], n, strict=True):
            if pulls.sum() > 300:
                self.known[seed] = row.argmax()
        done = np.array(
            [seed in self.known and pulls.sum() < 50 for seed, pulls in zip(seeds.tolist(), n, strict=True)]
        )
        return np.where(done, self.task.stop, n.argmin(axis=1))


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Any:
    """One task with a delta, of 60 episodes."""
    [task] = [replace(task, episodes=60) for task in benchmark_tasks(["best-steps-delta"])]
    monkeypatch.setattr(run, "benchmark_tasks", lambda set: [task])
    return task


def test_no_name_and_no_option_is_a_certificate(steps: Any) -> None:
    """Agents whose certificate has options of its own stop too soon by it, and arms come in turn."""
    made = agents.make("evidence", steps.env().unwrapped.task, stop="certificate", delta=0.9)
    names = {"evidence": "evidence", "named": "evidence(stop='certificate', delta=0.9)", "made": made}
    names["sharper"] = "evidence(stop='certificate', rho=40)"
    cells = {label: cell for label, [cell] in agents.benchmark(names, [steps.name]).cells.items()}
    assert cells["sharper"].value == pytest.approx(cells["evidence"].value, rel=0.01)  # it is looked at at other times
    for label in ("named", "made"):
        assert (cells[label].values >= cells["evidence"].values).all()
        assert cells[label].own.pulls < cells["evidence"].value
    assert (cells["named"].own.proof, cells["sharper"].own.proof) == ("none", "own")


def test_no_parameter_and_no_earlier_play_is_a_certificate(steps: Any) -> None:
    names = {"own option": f"{__name__}:Named(stop='certificate', delta=0.1)", "twice": Twice, "uniform": "uniform"}
    cells = {label: cell for label, [cell] in agents.benchmark(names, [steps.name]).cells.items()}
    assert cells["own option"].score < 0.1
    assert (cells["twice"].values >= cells["uniform"].values).all()


class Carries(agents.Agent):
    """Keeps what it has seen of the episodes of one task for another with the same arms."""

    name, solves = "carries", ("Threshold", "TopK")
    best: ClassVar[dict[int, Any]] = {}

    def choose(self, observation: Any, state: Any) -> Any:
        return observation["pulls"].argmin(axis=1)

    def recommend(self, observation: Any, state: Any = None, slots: Any = None) -> Any:
        answers = super().recommend(observation, state, slots)
        for seed, row in zip(
            observation["public_seed"][slice(None) if slots is None else slots, 0].tolist(), answers, strict=True
        ):
            if seed in self.best:
                row[:] = False  # a trace that a test can see
            self.best[seed] = row.copy()
        return answers


def test_no_process_knows_another_task(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [replace(task, episodes=40) for task in benchmark_tasks(["threshold-fresh-20"])]
    monkeypatch.setattr(run, "benchmark_tasks", lambda set: [few[0], replace(few[0], name="again")])
    first, again = agents.benchmark({"carries": Carries}, ["threshold-fresh-20"]).cells["carries"]
    assert first.value == again.value > 0.5


def test_the_label_of_the_baseline_is_its_own() -> None:
    with pytest.raises(ValueError, match="the label 'uniform' is that of the baseline, got it for 'bold'"):
        agents.benchmark({"uniform": Bold}, ["best-gap-delta"])


class Rules(agents.Algorithm):
    """Compiled rules alone: it stays, and has a note."""

    name, solves = "rules", ("BestArm",)

    def sample(ep, own):  # type: ignore[no-untyped-def]
        agents.pull(ep, ep.pulls.argmin())


class Answers(Rules):
    """A rule in Python beside them: it goes apart."""

    name = "answers"

    def _full(self, *given: Any) -> Any:
        return super()._full(*given)


def test_compiled_rules_of_others_have_a_note() -> None:
    [rules], [answers] = agents.benchmark({"rules": Rules, "answers": Answers}, ["best-small"]).cells.values()
    assert (rules.note, rules.oracle) == (run.INSIDE, True)
    assert (answers.note, answers.oracle) == ("", False)
    assert answers.values.mean() == rules.values.mean()
