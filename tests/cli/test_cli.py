"""The command `bandit-envs`: what it runs, prints, writes and refuses."""

from __future__ import annotations

import inspect
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import pytest
from processes import with_path

import agents
import bandit_envs
from agents.cli import COMMANDS, main, parse
from agents.cli.environment import OF_DATA, EnvironmentCommand, EnvironmentOptions, problem_options
from agents.evaluation.progress import COMPILING
from agents.evaluation.result import Evaluation
from agents.registry import AGENTS, LEARNED, recipe_of
from bandit_envs import DISTRIBUTIONS, Threshold
from bandit_envs.envs import setting
from bandit_envs.envs.catalogue import ENVIRONMENTS
from bandit_envs.instances.lookup import INSTANCES
from bandit_envs.problems import PROBLEMS

Output = pytest.CaptureFixture[str]


def run(capsys: Output, line: str | Sequence[str], code: int = 0) -> tuple[str, str]:
    """Standard output and error of a command line that ends with this code."""
    assert main(shlex.split(line) if isinstance(line, str) else line) == code
    out, err = capsys.readouterr()
    return out, told(err)


def told(err: str) -> str:
    """Standard error without what is told while kernels are compiled, which depends on what has run before."""
    return re.sub(rf"{re.escape(COMPILING)}\n|compiling kernel \d+, .* \(.* so far\)\n", "", err)


def agents_in(text: str) -> list[str]:
    """The agents of the rows of a summary."""
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("──")) + 1
    end = lines.index("", start) if "" in lines[start:] else len(lines)
    return [line.split()[0] for line in lines[start:end]]


# evaluate -------------------------------------------------------------------------------------------------------------


def test_evaluate_real_ratings(capsys: Output, data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BANDIT_ENVS_DATA", str(data_folder))
    line = """evaluate bandit_envs/Threshold-v0 --instance captions-651 --threshold 1.5
              --agents "apt(tolerance=0.05)" uniform --budget 9300 --episodes 2"""
    out, err = run(capsys, line)
    assert agents_in(out) == ["apt(tolerance=0.05)", "uniform"]
    assert "Threshold(threshold=1.5, tolerance=0.0) · 9,250 arms of captions-651 · budget 9,300 · 2 episodes" in out
    assert err == ""


def test_agents_that_need_another_distribution_or_no_arm_on_the_boundary_are_left_out(capsys: Output) -> None:
    instance = {"distribution": "categorical", "values": [1, 2, 3], "probabilities": [[1, 1, 1], [0, 1, 2], [5, 0, 1]]}
    line = f"evaluate Threshold --instance '{json.dumps(instance)}' --threshold 2 --budget 30 --episodes 1"
    out, err = run(capsys, line)
    able = "uniform random lsa apt sar evolved evidence hdoc top-two track-and-stop look-ahead jamieson-jain"
    assert set(agents_in(out)) == set(able.split())
    assert "note: left out: ucbe needs a finite H, got inf" in err
    assert "note: left out: opt-kg needs Bernoulli arms, got categorical" in err
    _, err = run(capsys, f"{line} --agents ucbe", 2)
    assert err.startswith("bandit-envs: ucbe needs a finite H, got inf: some arms lie exactly on the boundary")


def test_evaluate_prints_what_the_function_returns(capsys: Output) -> None:
    line = "evaluate Threshold --instance tao2019-1 --agents lsa uniform --at 20 60 --episodes 40 --seed 7"
    out, err = run(capsys, line)
    how: dict[str, Any] = {"episodes": 40, "seed": 7, "at": [20, 60], "env_kwargs": {"instance": "tao2019-1"}}
    result = agents.evaluate(["lsa", "uniform"], "Threshold", **how)
    assert agents_in(out) == ["lsa", "lsa", "uniform", "uniform"]
    for _, row in result.summary().iterrows():
        assert f"{row['score']:.4f} [{row['score_low']:.4f}, {row['score_high']:.4f}]" in out
        assert f" {row['misclassified']:.4g} " in out
    assert "error rate" not in out  # nothing promises that all arms are right
    d = result.compare("uniform", "lsa")
    assert f"{d.difference:+.4g}" in out
    assert err == ""


@pytest.mark.parametrize("problem", ENVIRONMENTS)
def test_evaluate_takes_all_agents_that_can_run_where_none_is_named(problem: str, capsys: Output) -> None:
    out, err = run(capsys, f"evaluate {ENVIRONMENTS[problem].id} --budget 30 --episodes 2")
    noted = {line.split()[3] for line in err.splitlines() if line.startswith("note: left out: ")}
    untrained = {"evolved"} - set(agents.names(problem))  # it solves all, and no model is stored for some
    assert (set(agents_in(out)) | noted) - OF_TABLES - untrained == set(agents.names(problem))
    assert not set(agents_in(out)) & OF_TABLES


def test_evaluate_takes_all_agents_that_can_run_with_these_budgets(capsys: Output) -> None:
    out, err = run(capsys, "evaluate Threshold --budgets 12 30 --instance tao2019-1 --episodes 2")
    assert set(agents_in(out)) == set(agents.names("Threshold")) - {"ppo"}
    assert "left out: ppo is a network" in err
    out, err = run(capsys, "evaluate Threshold --budgets 5 30 --instance tao2019-1 --episodes 2")
    assert "left out: ucbe needs a budget > K = 10, got 5" in err


def test_evaluate_writes_results_that_plot_reads(capsys: Output, tmp_path: Path) -> None:
    out, figure = tmp_path / "new" / "out", tmp_path / "a.png"
    line = f"evaluate Threshold --instance tao2019-1 --agents lsa uniform --at 20 60 --episodes 9 --out {out}"
    text, _ = run(capsys, f"{line} --figure {figure} --metric misclassified")
    assert text.endswith(f"wrote {out} and {figure}\n")
    kept = {"episodes.parquet", "pulls.parquet", "summary.csv", "settings.json", "calls"}
    assert {path.name for path in out.iterdir()} == kept
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert Evaluation.load(out).summary()["at"].tolist() == [20, 60, 20, 60]
    again, _ = run(capsys, f"{line} --metric misclassified")  # all blocks are there
    assert again == text.replace(f" and {figure}", "")
    _, err = run(capsys, f"{line} --seed 1", 2)
    assert err == f"bandit-envs: {out} holds another evaluation: seed is 0 there, 1 asked for; give another out\n"
    run(capsys, f"{line} --force --seed 1")
    assert json.loads((out / "settings.json").read_text())["seed"] == 1
    drawn = tmp_path / "again.svg"
    text, _ = run(capsys, f"plot {out} --metric misclassified --figure {drawn} --log --title mine --level 0.9")
    assert text == f"wrote {drawn}\n"
    assert drawn.read_text().startswith("<?xml")
    text, _ = run(capsys, f"plot {out}")
    assert text == f"wrote {out / 'score.png'}\n"
    (tmp_path / "empty").mkdir()
    run(capsys, f"evaluate Threshold --agents lsa --episodes 2 --out {tmp_path / 'empty'}")
    (taken := tmp_path / "taken").mkdir()
    (taken / "thesis").touch()
    _, err = run(capsys, f"evaluate Threshold --agents lsa --episodes 2 --out {taken}", 2)
    assert str(taken) in err
    assert "--force" in err
    assert [path.name for path in taken.iterdir()] == ["thesis"]


@pytest.mark.parametrize(
    ("options", "kwargs"),
    [
        ("Threshold --threshold 0.3 --tolerance 0.1", {"threshold": 0.3, "tolerance": 0.1}),
        (
            'Threshold --threshold -0.5 --instance \'{"distribution": "gaussian", "mean": [-1, 1]}\'',
            {"threshold": -0.5, "instance": {"distribution": "gaussian", "mean": [-1, 1]}},
        ),
        ("AllGood --epsilon 0.2 --multiplicative --slack 0.1", {"epsilon": 0.2, "multiplicative": True, "slack": 0.1}),
        (
            "AllGood --no-multiplicative --instance 'sampler(arms=4)'",
            {"multiplicative": False, "instance": "sampler(arms=4)"},
        ),
        ("TopK --k 4 --criterion each --epsilon 0.05", {"k": 4, "criterion": "each", "epsilon": 0.05}),
        ("BestArm --criterion exact --shuffle-arms", {"criterion": "exact", "shuffle_arms": True}),
        (
            "Feasible --A '[[1, 0], [0, -1]]' --b '[0.5, -0.2]' --no-normalise --instance 'polyhedra(dimensions=2)'",
            {"A": [[1, 0], [0, -1]], "b": [0.5, -0.2], "normalise": False, "instance": "polyhedra(dimensions=2)"},
        ),
        (
            "Threshold --delta 0.1 --max-pulls 25 --pull-cost 0.01 --reward correct",
            {"delta": 0.1, "max_pulls": 25, "pull_cost": 0.01, "reward": "correct", "budget": 30},
        ),
    ],
)
def test_evaluate_hands_options_to_the_environment(capsys: Output, options: str, kwargs: dict[str, Any]) -> None:
    line = shlex.split(f"evaluate {options} --budget 30 --agents uniform --episodes 3")
    command = parse(line)
    assert isinstance(command, EnvironmentCommand)
    assert command.env_kwargs() == {"budget": 30} | kwargs
    run(capsys, line)


def test_every_keyword_of_every_environment_is_an_option() -> None:
    common = set(inspect.signature(setting.resolve).parameters) - {"problem", "parameters", "actions", "observation"}
    problems = {name for kind in PROBLEMS.values() for name in kind.parameters}
    assert set(EnvironmentOptions.__dataclass_fields__) == {*common, "data", *OF_DATA}  # a table for an instance
    assert set(problem_options()) == problems


def test_options_of_problems_are_made_from_their_parameters(capsys: Output) -> None:
    options = problem_options()
    kinds = {name: option.kind for name, option in options.items()}
    assert {"threshold": float, "k": int, "criterion": str, "multiplicative": bool, "A": None}.items() <= kinds.items()
    for kind in PROBLEMS.values():
        for name, sentence in kind.parameters.items():
            before, found, _ = options[name].text.partition(f": {sentence}")
            assert found
            assert kind.name in before
    out, _ = run(capsys, "train --help")
    assert "--k N" in out
    assert "--multiplicative, --no-multiplicative" in out
    assert "--A JSON" in out
    assert "AllGood: Arms at most this much worse than the best one" in out


def test_problems_may_differ_over_a_parameter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one takes a word and another a number, the option is JSON; a name that is taken gets a prefix."""

    class Words(Threshold):
        parameters = {"threshold": "A word.", "seed": "A seed."}

        def __init__(self, threshold: str, seed: int) -> None: ...

    monkeypatch.setattr("agents.cli.environment.PROBLEMS", {"Threshold": Threshold, "Words": Words})
    option = problem_options()["threshold"]
    assert option.kind is None
    assert option.text == f"Threshold: {Threshold.parameters['threshold']} Words: A word."
    given = {"threshold": '"high"', "problem-seed": "3"}
    line = ["evaluate", "Threshold", *(word for name, value in given.items() for word in (f"--{name}", value))]
    command = parse(line)
    assert isinstance(command, EnvironmentCommand)
    assert command.env_kwargs() == {"threshold": "high", "seed": 3}
    assert getattr(command, "seed") == 0  # noqa: B009


OWN = """
import numpy as np
import agents
from bandit_envs import Bernoulli, SetProblem

class Far(SetProblem):
    name, asks, local = "Far", "all arms far from one half", True
    parameters = {"distance": "Arms at least this far from one half.", "centres": "Of the arms.", "metric": "A word."}

    def __init__(self, distance: float = 0.1, centres: list[float] = [0.5], metric: str = "") -> None:
        self.distance, self.centres, self.metric = distance, centres, metric

    def margin(self, means):
        return np.abs(np.asarray(means) - self.centres[0]) - self.distance

class Mine(agents.IndexPolicy):
    name, source, solves = "mine", "here", ("Threshold", "Far")

    def __init__(self, task, alpha: float = 1.0):
        super().__init__(task)
        self.alpha = alpha

    def index(self, T, D):
        return T ** self.alpha

def two(low: float = 0.1):
    return Bernoulli([low, 0.8])
"""


# Each line in turn, by an interpreter that begins as the installed script does, without "." in its path.
SCRIPT = """
import contextlib, io, json, shlex, sys
from agents.cli import main
for line in sys.argv[1:]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(shlex.split(line))
    print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


def test_modules_of_the_current_folder_can_be_named(tmp_path: Path) -> None:
    """A problem with options of its own, an agent, and an instance."""
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "registered.py").write_text("import bandit_envs, mine\nbandit_envs.register_problem(mine.Far)")
    lines = [
        """evaluate mine:Far --distance 0.25 --centres "[0.4]" --problem-metric loud --metric f1 --budget 30
        --episodes 3 --instance "mine:two(low=0.3)" --agents "mine:Mine(alpha=2)" uniform""",
        "evaluate registered:bandit_envs/Far-v0 --distance 0.2 --agents mine:Mine --budget 30 --episodes 3",
        "evaluate mine:Far --help",
        "evaluate mine:Near --episodes 3",
        "evaluate mine:Mine --episodes 3",
        "evaluate Threshold --agents mine:two --episodes 3",
    ]
    words = [sys.executable, "-P", "-c", SCRIPT, *lines]
    known = with_path(Path(agents.__file__).parents[1])
    ended = subprocess.run(words, cwd=tmp_path, env=known, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    played, registered, shown, unknown, agent, instance = [json.loads(line) for line in ended.stdout.splitlines()]
    assert (played[0], told(played[2])) == (0, "")
    assert played[1].startswith("Far(distance=0.25, centres=[0.4], metric='loud') · 2 arms of mine:two(low=0.3)")
    assert agents_in(played[1]) == ["mine:Mine(alpha=2)", "uniform"]
    assert (registered[0], told(registered[2])) == (0, "")
    assert "--distance X" in shown[1]
    assert "Far: Arms at least this far from one half." in " ".join(shown[1].replace("│", " ").split())
    assert unknown[0] == 2
    assert unknown[2].startswith("bandit-envs: 'mine:Near' cannot be imported")
    assert "must be a subclass of bandit_envs.Problem" in agent[2]
    assert instance[0] == 2
    assert len(told(instance[2]).splitlines()) == 1


# list, train ----------------------------------------------------------------------------------------------------------


def test_list_shows_the_catalogues(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    shown = {name: run(capsys, f"list {name}")[0] for name in ("environments", "instances", "distributions", "agents")}
    assert run(capsys, "list")[0] == "\n".join(shown.values())
    for row in ENVIRONMENTS.values():
        (line,) = [line for line in shown["environments"].splitlines() if line.startswith(f"{row.id} ")]
        assert row.asks in line
        assert row.source in line
    for name, one in INSTANCES.items():
        (line,) = [line for line in shown["instances"].splitlines() if line.startswith(f"{name} ")]
        assert one.source in line
    assert "sampler" in shown["instances"]
    for name in DISTRIBUTIONS:
        assert re.search(f"^{name} ", shown["distributions"], re.MULTILINE)
    for name, kind in AGENTS.items():
        (line,) = [line for line in shown["agents"].splitlines() if line.split()[0].rstrip(",") == name]
        assert kind.source in line
    assert re.search("^ppo +all ", shown["agents"], re.MULTILINE)
    assert "the budget, the true H" in shown["agents"]
    monkeypatch.setenv("COLUMNS", "120")
    assert max(map(len, run(capsys, "list agents")[0].splitlines())) <= 120


OF_TABLES = {name for name in AGENTS if "table" in " ".join(recipe_of(name).needs)}


def _made_with(name: str, problem: str, rule: dict[str, Any]) -> bool:
    """Whether the agent is made under this rule; False where it says that it needs delta, or something else instead."""
    arms: dict[str, Any] = {"distribution": "bernoulli", "mean": [0.2, 0.7, 0.5]}
    arms = {"distribution": "shared", "scores": [[0.2, 0.7, 0.5], [0.0, 1.0, 0.5]]} if name in OF_TABLES else arms
    given: dict[str, Any] = {"instance": arms, **rule}
    given |= {"k": 1} if problem == "TopK" else {}
    given |= {"epsilon": 0.1} if problem in ("TopK", "BestArm", "AllGood") else {}
    given |= {"threshold": 0.4} if problem == "Threshold" else {}
    try:
        agents.make(name, gym.make(f"bandit_envs/{problem}-v0", **given))
    except ValueError as error:
        if not re.search("needs (delta|a budget|an environment with a budget)|has no stored model", str(error)):
            raise
        return False
    return True


@pytest.mark.parametrize("name", [name for name in AGENTS if name not in LEARNED])
def test_list_tells_which_agents_need_delta(name: str) -> None:
    """What the table says is what making the agent asks for: without delta, and without budget or delta."""
    recipe = recipe_of(name)
    call = "dp-index(horizon=20)" if name == "dp-index" else name  # the table of the longest horizon takes seconds
    problem = next(
        one for one in ("TopK", "BestArm", "AllGood", "Threshold", "BetterThanControl") if one in recipe.solves
    )
    with_budget, with_neither = (_made_with(call, problem, rule) for rule in ({"budget": 12}, {"max_pulls": 12}))
    assert _made_with(call, problem, {"budget": 12, "delta": 0.1})
    needs = [one.removeprefix("a table, ") for one in recipe.needs]
    assert ("delta" in needs) == (not with_budget)
    assert ("delta or budget" in needs) == (with_budget and not with_neither and recipe.target.stops)


def test_list_shows_what_packages_bring_and_tells_what_cannot_be_imported(
    capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    for registry, one in ((PROBLEMS, "Broken"), (INSTANCES, "broken"), (DISTRIBUTIONS, "broken"), (AGENTS, "broken")):
        monkeypatch.setitem(vars(registry), "installed", {one: "nowhere:Nothing"})
    monkeypatch.setitem(
        vars(AGENTS), "installed", {"brought": "agents.thresholding.lsa:LSA", "broken": "nowhere:Nothing"}
    )
    out, err = run(capsys, "list")
    assert re.search("^brought +Threshold, Feasible, BetterThanControl +- +Tao", out, re.MULTILINE)
    assert "roken" not in out
    told = r"roken: the entry point '[Bb]roken' in bandit_envs\.\w+: 'nowhere:Nothing' cannot be imported"
    assert len(re.findall(told, err)) == len(err.splitlines()) == 4
    out, err = run(capsys, "evaluate Threshold --budget 30 --episodes 2 --agents brought")
    assert (agents_in(out), err) == (["brought"], "")
    out, err = run(capsys, "evaluate Threshold --budget 30 --episodes 2")
    assert "brought" in agents_in(out)
    assert "nowhere" in err


def _measured(score: float, wrong: float) -> dict[str, Any]:
    """A row of the result of a training."""
    return {
        "return": score,
        "total_pulls": 50.0,
        "error_rate": 0.25,
        "score": {"mean": score, "low": score - 0.01, "high": score + 0.01},
        "misclassified": {"mean": wrong, "low": wrong - 0.1, "high": wrong + 0.1},
    }


RESULT = {
    "episodes": 4000,
    "root": 7,
    "agents": {"ppo": _measured(0.95, 0.5), "lsa": _measured(0.94, 0.6)},
    "differences": {
        "lsa": {
            "score": {"difference": 0.01, "low": 0.005, "high": 0.015, "p": 1e-5},
            "misclassified": {"difference": -0.1, "low": -0.2, "high": 0.01, "p": 0.0612},
        }
    },
}
COMPARED = """\
ppo on 4,000 episodes of seed 7, which it has not seen:

agent  pulls  error rate             score [95 %]     misclassified [95 %]
─────  ─────  ──────────  ───────────────────────  ───────────────────────
ppo     50.0      0.2500  0.9500 [0.9400, 0.9600]  0.5000 [0.4000, 0.6000]
lsa     50.0      0.2500  0.9400 [0.9300, 0.9500]  0.6000 [0.5000, 0.7000]

Paired differences on these episodes:

agents                                  score [95 %]                  misclassified [95 %]
────────────  ──────────────────────────────────────  ────────────────────────────────────
ppo less lsa  +0.0100 [+0.0050, +0.0150] (p < 0.001)  -0.1000 [-0.2000, +0.0100] (p 0.061)
"""


def test_train_calls_the_function(capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def train(algorithm: str, env_id: str, **arguments: Any) -> Any:
        calls.append((algorithm, env_id, arguments))
        for suffix in (".safetensors", ".json"):
            Path(f"{arguments['out']}{suffix}").touch()
        return SimpleNamespace(card={"result": RESULT, "kept": 9})

    monkeypatch.setattr(agents, "train", train, raising=False)
    out = tmp_path / "ppo"
    text, _ = run(capsys, f"train bandit_envs/Threshold-v0 --algorithm ppo --seconds 60 --seed 3 --out {out}")
    assert text == f"{COMPARED}\nwrote {out}.safetensors, {out}.json and {out}.png\n"
    _, err = run(capsys, f"train --seconds 60 --out {out}.zip", 2)
    assert err == f"bandit-envs: {out}.safetensors is there already: give another --out, or --force to overwrite it\n"
    run(
        capsys,
        f"train Threshold --budget 50 --instance 'sampler(arms=3)' --steps 9 --num-envs 4 --out {out}.zip"
        " --force --no-progress --hyperparameters learning_rate=1e-3 policy=big",
    )
    usual = {"steps": None, "seconds": 60.0, "seed": 3, "env_kwargs": {}, "out": out, "progress": True}
    special = {"steps": 9, "seconds": None, "seed": 0, "env_kwargs": {"budget": 50, "instance": "sampler(arms=3)"}}
    special |= {"out": out, "progress": False, "num_envs": 4, "learning_rate": 1e-3, "policy": "big"}
    assert calls == [("ppo", "bandit_envs/Threshold-v0", usual), ("ppo", "bandit_envs/Threshold-v0", special)]
    _, err = run(capsys, f"train --out {tmp_path / 'new'} --hyperparameters big", 2)
    assert err == "bandit-envs: --hyperparameters takes name=value, got 'big'\n"


@pytest.mark.parametrize("algorithm", ["ppo", "evolved"])
def test_train_ends_with_a_comparison_and_tells_lines_on_the_way(
    capsys: Output, algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defect: it ended with the names of files, and told nothing where standard error was no terminal."""
    pytest.importorskip("cmaes" if algorithm == "evolved" else "stable_baselines3")
    monkeypatch.setattr("agents.learned.training.advice", lambda *_: ["train longer"])
    out, held = (
        tmp_path / "made",
        "held_out=40 checkpoints=1" if algorithm == "ppo" else "population=4 episodes=30",
    )
    mix = json.dumps([{"budget": 12}, {"budget": 24}])
    where = "--budget 12 --num-envs 16 --steps 1024" if algorithm == "ppo" else f"--mix '{mix}' --steps 5"
    line = f"train threshold --algorithm {algorithm} --instance 'sampler(arms=4)' {where} --out {out}"
    printed, err = run(capsys, f"{line} --hyperparameters {held}")
    notes = [one for one in err.splitlines() if one.startswith("note: ")]
    assert len(err.splitlines()) - len(notes) >= 2
    assert all(re.match(r" *\d+ s  ", one) for one in err.splitlines() if one not in notes)
    assert notes == ["note: train longer"] * (algorithm == "ppo")
    assert "\r" not in err
    result = json.loads(out.with_suffix(".json").read_text())["result"]
    if algorithm == "evolved":
        for one, budget in zip(result, (12, 24), strict=True):
            assert f"budget={budget}" in printed
            assert f"{one['ratio']:.4f} [{one['low']:.4f}, {one['high']:.4f}]" in printed
    else:
        for agent, row in result["agents"].items():
            assert f"{agent} " in printed
            assert f"{row['score']['mean']:.4f} [" in printed
        assert f"{result['differences']['lsa']['score']['difference']:+.4f} [" in printed
    assert printed.splitlines()[-1].startswith("wrote ")


# Errors and help ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("evaluate Nothing", "unknown environment 'Nothing'"),
        ("evaluate Threshold --instance tao2019-9", "unknown instance 'tao2019-9'; did you mean 'tao2019-"),
        ("evaluate Threshold --instance '{\"distribution\"'", "--instance must be JSON, got '{\"distribution\"'"),
        ("evaluate Feasible --A 1,2", "--A must be JSON, got '1,2'"),
        ("evaluate Feasible --A -.5", "-0.5"),
        ("evaluate Feasible --A .", "--A must be JSON, got '.'"),
        (
            "evaluate Threshold --k 3",
            "Threshold got an unexpected keyword argument 'k'; it takes threshold, tolerance,",
        ),
        ("evaluate TopK --k 10", "k must be an integer in [1, 9], got 10"),
        ("evaluate Threshold --threshold 2", "threshold must lie in the support [0.0, 1.0] of the arms, got 2.0"),
        ("evaluate Threshold --agents lsaa", "unknown agent 'lsaa'; did you mean 'lsa' or 'sar'?"),
        ("evaluate Threshold --agents lsa ucbe", "ucbe is an oracle: it needs H="),
        ("evaluate Threshold --agents 'apt(tolerance=-1)'", "tolerance must be a number in [0, inf), got -1"),
        ("evaluate Threshold --agents ghost.zip", "there is no saved model ghost.zip"),
        ("evaluate Threshold --agents", "evaluate needs at least one agent"),
        ("evaluate Threshold --agents lsa --reference apt", "--reference must be one of the agents lsa, got 'apt'"),
        ("evaluate Threshold --metric f3", "metric must be one of error_rate, score, misclassified"),
        ("evaluate Threshold --figure a.gif", "the suffix of a figure must be .png, .svg, .pdf, got 'a.gif'"),
        ("evaluate Threshold --episodes 0", "episodes must be an integer in [1"),
        ("evaluate Threshold --delta 0.1 --agents uniform", "uniform may never stop by itself"),
        ("evaluate CartPole-v1", "CartPole-v1"),
        ("evaluate Threshold --at 150 500 --budget 200", "up to the budget of 200, got 500"),
        (
            "evaluate Threshold --at 201 --agents lsa",
            "--at must name numbers of pulls up to the budget of 200, got 201",
        ),
        ("reproduce tao2019-figure-1 --episodes -5", "episodes must be an integer in [1"),
        ("plot nowhere", "nowhere holds no evaluation: episodes.parquet and pulls.parquet and settings.json missing"),
    ],
)
def test_errors_are_one_line(
    capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    out, err = run(capsys, line, 2)
    (told,) = [one for one in err.splitlines() if not one.startswith("note: ")]
    assert told.startswith("bandit-envs: ")
    assert message in told
    assert out == ""
    assert list(tmp_path.iterdir()) == []


def test_debug_shows_where_an_error_comes_from() -> None:
    with pytest.raises(ValueError, match="unknown environment"):
        main(["evaluate", "Nothing", "--debug"])


@pytest.mark.parametrize(
    "line",
    ["", "evaluate", "evaluate Threshold --episodes many", "evaluate Threshold --boost 3", "list things", "plot", "x"],
)
def test_command_lines_that_cannot_be_read(capsys: Output, line: str) -> None:
    out, err = run(capsys, line, 2)
    assert out == ""
    assert "Traceback" not in err
    assert err


def test_version(capsys: Output) -> None:
    assert run(capsys, "--version") == (f"bandit-envs {bandit_envs.__version__}\n", "")


def test_interruption(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(agents, "evaluate", stop)
    _, err = run(capsys, "evaluate Threshold --agents lsa", 130)
    assert err == "bandit-envs: interrupted\n"


def test_help_has_examples_that_can_be_read(capsys: Output) -> None:
    for name, kind in COMMANDS.items():
        out, _ = run(capsys, f"{name} --help")
        text = (inspect.getdoc(kind) or "").partition("Examples:\n")[2].replace("\\\n", " ")
        examples = [shlex.split(line) for line in text.splitlines()]
        assert examples
        assert "Examples:" in out
        for words in examples:
            assert words[:2] == ["bandit-envs", name]
            assert type(parse(words[1:])) is kind
    out, _ = run(capsys, "--help")
    for line in out.partition("Examples:\n")[2].partition("\n\n")[0].splitlines():
        words = shlex.split(line)
        assert words[0] == "bandit-envs"
        if words[-1] not in ("--help", "--version"):
            parse(words[1:])
    for name, kind in COMMANDS.items():
        assert f"• {name} " in out
        assert " ".join((inspect.getdoc(kind) or "").split()[:4]) in out


def test_help_is_quick_and_an_interpreter_says_what_is_missing_or_wrong() -> None:
    heavy = ("torch", "stable_baselines3", "pandas", "pyarrow", "matplotlib", "scipy.stats", "scipy.special", "tqdm")
    code = f"""
import os, runpy, sys
from agents.cli import main
assert main(["--help"]) == main(["list"]) == 0
found = [name for name in {heavy} if name in sys.modules]
assert not found, found
sys.argv = ["bandit-envs", "evaluate", "nothing"]
try:
    runpy.run_module("agents", run_name="__main__")
except SystemExit as end:
    assert end.code == 2
reading, writing = os.pipe()
os.close(reading)
os.dup2(writing, 1)  # nobody reads the output
sys.argv = ["bandit-envs", "list"]
try:
    runpy.run_module("agents", run_name="__main__")
except SystemExit as end:
    assert not end.code
for name in [name for name in sys.modules if name.startswith(("agents.cli", "tyro"))]:
    del sys.modules[name]
sys.modules["tyro"] = None
import agents.cli
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    wrong, missing = told(done.stderr).splitlines()
    assert done.returncode == 2
    assert wrong.startswith("bandit-envs: unknown environment 'nothing'")
    assert 'pip install ".[evaluation]"' in missing


@pytest.mark.parametrize("words", ["list", "evaluate --help"])
def test_who_reads_the_output_may_stop_reading(words):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "agents", *words.split()]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


# files and names that a user gives ------------------------------------------------------------------------------------


FILES = (
    "evaluate Threshold --budget 20 --episodes 2 --agents uniform --figure none/x.png",
    "plot done --figure none/x.png",
    "report done --out none/x.html",
    "race Threshold --budget 20 --agents uniform --out none/x.html",
    "watch Threshold uniform --budget 20 --gif none/x.gif",
    "train Threshold --algorithm evolved --budget 20 --steps 1 --out none/x",
    "train Threshold --budget 20 --steps 100 --out none/x",
    "session export a.db none/x.csv",
)


def test_the_folder_of_a_file_is_never_made(capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Defect: missing folders were made in silence."""
    monkeypatch.chdir(tmp_path)
    for name in ("sqlalchemy", "stable_baselines3"):
        pytest.importorskip(name)
    run(capsys, "evaluate Threshold --budget 20 --episodes 2 --agents uniform --out done")
    run(capsys, "session new a.db --problem BestArm --arms a b --binary --budget 4")
    for line in FILES:
        assert "there is no folder none" in run(capsys, line, 2)[1], line
    assert not Path("none").exists()


def test_an_unknown_algorithm_is_told_all_that_there_are(capsys: Output) -> None:
    """Defect: evolved was not among them."""
    pytest.importorskip("stable_baselines3")
    assert "evolved" in run(capsys, "train Threshold --algorithm nope", 2)[1]


def test_columns_of_a_table_of_evaluate(capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Defect: the error named options that the command does not have."""
    monkeypatch.chdir(tmp_path)
    Path("long.csv").write_text("drink,result\na,0\nb,1\n")
    err = run(capsys, "evaluate BestArm --data long.csv --budget 9 --agents uniform", 2)[1]
    assert "table(path='FILE', arm='COLUMN', value='COLUMN')" in err
    assert not re.search("--(arm|value|index)", err)
    Path("half.csv").write_text("dose,value\n1,0\n2,1\n")
    err = run(capsys, "evaluate BestArm --data half.csv --budget 9 --agents uniform", 2)[1]
    assert "half.csv may be long or wide" in err
    assert "table(path='FILE', wide=True)" in err


def test_a_wide_table_of_evaluate(capsys: Output, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The help says by which rule it is known; unequal numbers of measurements leave gaps."""
    monkeypatch.chdir(tmp_path)
    Path("wide.csv").write_text("tea,coffee,milk\n1,5,2\n3,5,\n,5,\n")
    run(capsys, "evaluate BestArm --data wide.csv --budget 30 --agents uniform --episodes 5 --out wide")
    found = agents.results("wide").settings["env_kwargs"]
    assert found["instance"] == {"table": {"path": "wide.csv"}}
    env: Any = gym.make("bandit_envs/BestArm-v0", **found)
    assert env.unwrapped.instance.arm_names == ("tea", "coffee", "milk")
    assert env.unwrapped.instance.arms.means.tolist() == [2.0, 5.0, 2.0]
    told = " ".join(run(capsys, "evaluate --help")[0].replace("│", " ").split())
    assert "it is long: a measurement in each row. With neither it is wide: a column for each arm" in told


def test_the_level_is_that_of_the_agents_own_certifier(tmp_path: Path) -> None:
    """Defect: an agent with a sigma of its own was judged by another certifier, and stopped "uncertified"."""
    rows = ["name,value"] + [f"{name},{mean + 8 * z}" for name, mean in (("a", 50), ("b", 30)) for z in (-1, 0, 1)]
    (tmp_path / "own.csv").write_text("\n".join(rows))
    told: Any = {"instance": {"table": {"path": str(tmp_path / "own.csv")}}, "delta": 0.1, "max_pulls": 5000}
    found = agents.evaluate(["evidence(sigma=6)"], "BestArm", episodes=20, env_kwargs=told, progress=False)
    assert found.episodes["certified"].all()
    assert not found.episodes["truncated"].any()


def test_columns_of_a_long_table_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "long.csv").write_text("method,score,fold\nsvm,.8,1\nsvm,.7,2\nforest,.9,1\nforest,.85,2\n")
    words = ["evaluate", "BestArm", "--agents", "uniform", "--data", str(tmp_path / "long.csv"), "--arm", "method"]
    assert main([*words, "--value", "score", "--budget", "20", "--episodes", "4"]) == 0
    out, err = capsys.readouterr()
    assert "2 arms · budget 20" in out
    assert "names in 'method', values in 'score'" in err


@pytest.mark.parametrize("suffix", [".zip", ".safetensors", ".json"])
def test_a_training_overwrites_no_model_of_its_name(suffix: str, tmp_path: Path, capsys: Any) -> None:
    """A zip, too, which would go."""
    (there := tmp_path / f"ppo{suffix}").write_text("a model")
    assert main(["train", "Threshold", "--out", str(tmp_path / "ppo"), "--steps", "100"]) == 2
    assert f"{there} is there already" in capsys.readouterr().err
    assert there.read_text() == "a model"
