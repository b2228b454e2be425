"""The words of earlier versions: calls, classes and files that have them are read, and mean what they meant."""

import json
import pickle
import re
import shutil
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import agents
import agents.core
import bandit_envs
from agents import cli
from agents.evaluation.identity import described
from agents.evolved.agent import Evolved
from agents.evolved.parameters import parameter_names
from bandit_envs import Arms, BestArm, Sampler, Tabulated, Task, Threshold, problems, stopping
from bandit_envs.instances.lookup import find
from bandit_envs.stopping import common

BOTH = ("law", "distribution")
TASK: dict[str, Any] = {"parameters": {}, "K": 3, "delta": 0.1, "support": None, "sigma": 1.0}
both = pytest.mark.parametrize("word", BOTH)
ROOT = Path(__file__).parents[2]
WORD = re.compile(r"(?i)(?<![a-z])laws?(?![a-z])(?! of (large numbers|the iterated logarithm))")
# Where the packages must name the old spelling.
KEPT = {
    "bandit_envs/__init__.py": ("register_law",),
    "bandit_envs/instances/__init__.py": ("register_law",),
    "bandit_envs/instances/arms.py": ("register_law", '"bandit_envs.laws"'),
    "bandit_envs/kernels/spellings.py": ("law",),
    "bandit_envs/moved.py": ('"evidence.laws"', '"LAWS"'),
    "agents/cli/list.py": ('"laws"',),
}
# Old names, and the same for the ordinary words.
ROOM = re.compile(r"(?i)(?<![a-z])rooms?(?![a-z])")
KEPT_ROOM = {
    "bandit_envs/stopping/__init__.py": ("LEVELS_ROOM",),
    "bandit_envs/stopping/certifier.py": ("room: int = 0", "`room`", "scratch + room", "def room(self)"),
}
WAY = re.compile(
    r"(?i)(?<![a-z])(?<!either )(?<!other )(?<!on the )(?<!along the )(?<!shortest )(?<!two )(?<!in a )ways?(?![a-z])"
)
KEPT_WAY = {
    "agents/testing.py": ("ways: str", "{ways}", "for way in"),
    "bandit_envs/moved.py": ('"evidence.game_ways"', '"nearest_way"'),
    "bandit_envs/stopping/__init__.py": ("nearest_way",),
    "bandit_envs/stopping/certifier.py": ("def ways(self",),
}
# Words of the package `agents` alone: the memory of an agent is its state, the genes of `evolved` are its parameters.
MEMORY, GENES = re.compile(r"(?i)memor|remember"), re.compile(r"(?i)(?<![a-z])(genes?|habits?)(?![a-z])")
MEMORY_KEPT = {  # the old spellings, and the memory of the machine
    "agents/core/__init__.py": ("`RoundMemory`", '"Memory"'),
    "agents/core/agent.py": ("remember = initial_state",),
    "agents/core/spellings.py": ("`remember`", '"remember"', "`RoundMemory`", '"Memory"'),
    "agents/benchmarking/run.py": ("in memory",),
    "agents/figures/store.py": ("in memory",),
    "agents/evaluation/execution.py": ("out of memory",),
    "agents/evaluation/lockstep.py": ("bounded memory",),
    "agents/evaluation/moments.py": ("little memory",),
    "agents/evaluation/plan.py": ("MEMORY",),
    "agents/evaluation/run.py": ("in memory", "as memory allows"),
    "agents/evaluation/statistics.py": ("the memory of a resampling", "Memory is that of"),
    "agents/evaluation/storage/__init__.py": ("in memory",),
    "agents/evaluation/storage/calls.py": ("in memory",),
    "agents/evaluation/storage/store.py": ("in memory", "None: memory"),
    "agents/evaluation/storage/places.py": ('"memory"',),
    "agents/session/log.py": ('":memory:"', '"sqlite:///:memory:"'),  # as SQLite calls it
    "agents/session/session.py": ('":memory:"',),
}
GENES_KEPT = {
    "agents/evolved/agent.py": ("genes: ", '"genes"', "def genes("),
    "agents/evolved/parameters.py": ("genes",),
    "agents/models/cards.py": ('"genes"',),
    "agents/models/formats.py": ('"genes"',),
}
PACKAGES = ("bandit_envs", "agents")
FOLDERS = Path(__file__).parents[1] / "evaluation" / "folders" / "47cb50b"


def task(**given: Any) -> Task:
    """A task with Gaussian arms."""
    return Task("BestArm", **TASK, **given)


@both
def test_instances_are_read_in_both_spellings(word: str, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("arm,value\na,0.5\na,0.25\nb,0\nb,1\n")
    for form in (
        {word: "gaussian", "mean": [0.0, 1.0], "sd": [1.0, 1.0]},
        {"sampler": {word: "gaussian"}},
        f"sampler({word}='gaussian')",
        f"polyhedra({word}='gaussian')",
        {"table": {"path": str(table), word: "gaussian"}},
        lambda: {word: "gaussian", "mean": [0.0, 1.0]},
    ):
        source: Any = find(form)
        assert source.arms.law == source.arms.distribution == "gaussian"
        assert '"distribution": "gaussian"' in json.dumps(source.to_dict())
    assert Sampler(**{word: "uniform"}).law == Sampler("uniform").distribution == "uniform"


@both
def test_a_task_takes_both_spellings(word: str) -> None:
    one = task(**{word: "gaussian"})
    assert one == task(distribution="gaussian")
    assert one.law == one.distribution == "gaussian"
    assert one.replace(**{word: "uniform"}).law == "uniform"
    assert json.loads(one.to_json())["distribution"] == "gaussian"
    assert Task.from_json(one.to_json().replace('"distribution"', f'"{word}"')) == one
    state = {word if name == "distribution" else name: value for name, value in vars(one).items()}
    again = Task.__new__(Task)
    again.__setstate__(state)
    assert again == one == pickle.loads(pickle.dumps(one))
    assert one.certifier(**{word: "student"}).numbers.tolist() == one.certifier(distribution="student").numbers.tolist()


@both
def test_problems_take_both_spellings(word: str) -> None:
    given: Any = {word: "bernoulli"}
    problem, pulls, mean = BestArm(), [9, 9, 9], [0.1, 0.5, 0.9]
    assert problem.evidence(pulls, mean, **given) == problem.evidence(pulls, mean, distribution="bernoulli")
    assert problem.certified_level(pulls, mean, **given) > 0.5
    assert problem.characteristic_time(mean, **given) < problem.characteristic_time(mean)
    assert problem.optimal_proportions(mean, **given).tolist() != problem.optimal_proportions(mean).tolist()
    assert problem.lower_bound(mean, 0.1, **given) < problem.lower_bound(mean, 0.1)
    assert problem.certifier(3, **given).numbers.tolist() != problem.certifier(3).numbers.tolist()
    assert common(**given)[0] == common(distribution="bernoulli")[0]


@both
def test_agents_take_both_spellings(word: str) -> None:
    one, chosen = task(distribution="gaussian"), {word: "student"}
    for name in ("top-two", "evidence", "track-and-stop", "lucb(stop='certificate')"):
        found: Any = [agents.make(name, one, **chosen)]
        if "(" not in name:
            found += [type(found[0])(one, **chosen), agents.make(f"{name}({word}='student')", one)]
            found.append(agents.make(name, one).for_task(one, **chosen))
        for agent in found:
            own = {name: value for name, value in agent.parameters.items() if name != "agent"}
            assert list(own.values()) == ["student"]
            assert agent.certifier.numbers[0] == common(distribution="student")[0]
    agent = agents.make(f"lucb(stop='certificate', {word}='student')", one)
    assert agent.certifier.numbers[0] == common(distribution="student")[0]
    assert agent.for_task(one, **{word: "gaussian"}).certifier.numbers[0] == common()[0]


def test_what_is_given_in_both_spellings_is_refused() -> None:
    two: Any = {"law": "gaussian", "distribution": "uniform"}
    for call in (
        lambda: task(**two),
        lambda: task(distribution="gaussian").replace(**two),
        lambda: task(distribution="gaussian").certifier(**two),
        lambda: Task.from_json(json.dumps({"problem": "BestArm", "parameters": {}, "K": 3, **two})),
        lambda: BestArm().evidence([1, 1], [0, 1], **two),
        lambda: BestArm().lower_bound([0, 1], 0.1, **two),
        lambda: agents.make("top-two", task(distribution="gaussian"), **two),
        lambda: agents.make("lucb(stop='certificate', law='student', distribution='student')", task()),
        lambda: find({**two, "mean": [0, 1]}),
        lambda: find({"sampler": two}),
        lambda: type("Own", (Arms,), two),
    ):
        with pytest.raises(ValueError, match=r"distribution=.*law="):
            call()


class Triangular(Arms):
    """Arms of one's own, as earlier versions had them."""

    law, code = "triangular", Tabulated.code

    def __init__(self, mode: list[float]) -> None:
        c, u = np.asarray(mode, float)[:, None], np.linspace(0, 1, 513)
        quantiles = np.where(u < c, np.sqrt(u * c), 1 - np.sqrt((1 - u) * (1 - c)))
        means, variances = (1 + c[:, 0]) / 3, (1 - c[:, 0] + c[:, 0] ** 2) / 18
        self.fill(means, variances, quantiles, support=(0.0, 1.0), sigma=0.5)


class Half(Triangular):
    """The same with a name of today."""

    distribution = "half"


class Old(Threshold):
    """A problem of one's own, whose methods have the old keyword."""

    name = "Old"

    def lower_bound(self, means: Any, delta: float, *, law: str | None = None, sigma: float | None = None) -> float:
        return 7.0 if law == "bernoulli" else 1.0

    def certifier(self, K: int, D: int = 1, *, law: str | None = None, **given: Any) -> Any:
        return super().certifier(K, D, law=law, **given)


@pytest.mark.parametrize("register", [bandit_envs.register_law, bandit_envs.register_distribution])
def test_classes_of_ones_own_have_either_spelling(register: Any) -> None:
    for kind, name in ((Triangular, "triangular"), (Half, "half")):
        assert register(kind) is kind
        assert (kind.law, kind.distribution) == (name, name)
        for word in BOTH:
            assert find({word: name, "mode": [0.1, 0.9]}).arms.law == name


def test_problems_of_ones_own_have_either_spelling() -> None:
    problem = Old(0.5)
    assert problem.lower_bound([0.1], 0.1, distribution="bernoulli") == 7.0
    bandit_envs.register_problem(Old)
    problem = Task("Old", {"threshold": 0.5}, K=3, delta=0.1).make_problem()
    assert problem.certifier(3, law="bernoulli").numbers[0] != problem.certifier(3, law="gaussian").numbers[0]


def test_entry_points_of_both_groups_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = tmp_path / "mine-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    rows = ["[bandit_envs.laws]", "old = test_words:Old", "[bandit_envs.distributions]", "new = test_words:New"]
    (about / "entry_points.txt").write_text("\n".join(rows))
    monkeypatch.syspath_prepend(str(tmp_path))
    registry: Any = bandit_envs.Registry("x", "bandit_envs.distributions", print, {}, before="bandit_envs.laws")
    assert registry.installed.items() >= {"old": "test_words:Old", "new": "test_words:New"}.items()


def test_both_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for word in ("laws", "distributions"):
        assert cli.main(["list", word]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert "tabulated" in shown[0]
    assert cli.main(["list"]) == 0
    assert capsys.readouterr().out.count("tabulated") == shown[0].count("tabulated")


@both
def test_folders_of_results_go_on_in_both_spellings(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of before, whose instance has a law, is complete; one with parameters is resumed."""
    monkeypatch.setattr("bandit_envs.__version__", "0.1.0")  # nothing is added to folders of other versions
    monkeypatch.setattr("agents.evaluation.identity.RESULTS", 1)
    out = tmp_path / "rows"
    shutil.copytree(FOLDERS / "rows", out)
    kwargs = {"instance": {word: "bernoulli", "mean": [0.2, 0.4, 0.6, 0.8]}, "threshold": 0.5, "budget": 2000}
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("*.parquet/*")}
    agents.evaluate(
        ["uniform", "lsa"], "bandit_envs/Threshold-v0", episodes=24, at=[500, 2000], env_kwargs=kwargs, out=out
    )
    assert {path.name: path.stat().st_mtime_ns for path in out.glob("*.parquet/*")} == before
    new = tmp_path / "new"
    for spelling in (word, *BOTH):
        agent = {"one": f"top-two({spelling}='bernoulli', rho=3.0)"}
        kwargs = {"instance": {spelling: "bernoulli", "mean": [0.2, 0.9]}, "delta": 0.3, "max_pulls": 50}
        agents.evaluate(agent, "bandit_envs/BestArm-v0", episodes=4, env_kwargs=kwargs, out=new)
        assert len(agents.results(new).episodes) == 4
    assert len(list(new.glob("*.parquet/*"))) == 1


@both
def test_sessions_go_on_in_both_spellings(word: str, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    for spelling in (word, *BOTH):
        agent = f"top-two({spelling}='student')"
        with agents.Session(agent, task(**{spelling: "gaussian"}), store=store, public_seed=1) as session:
            assert session.task.law == "gaussian"
            session.tell(0, len(session.history()) / 7)
    with agents.Session(store=store) as session:
        assert len(session.history()) == 3


@pytest.mark.parametrize(
    ("word", "kept", "tops"),
    [
        (WORD, KEPT, PACKAGES),
        (ROOM, KEPT_ROOM, PACKAGES),
        (WAY, KEPT_WAY, PACKAGES),
        (MEMORY, MEMORY_KEPT, PACKAGES[1:]),
        (GENES, GENES_KEPT, PACKAGES[1:]),
    ],
    ids=["law", "room", "way", "memory", "genes"],
)
def test_the_packages_have_the_words_of_today(word: Any, kept: dict[str, tuple[str, ...]], tops: Any) -> None:
    found: dict[str, list[str]] = {}
    for path in (path for top in tops for path in (ROOT / top).rglob("*.py")):
        if lines := [line for line in path.read_text().splitlines() if word.search(line)]:
            found[path.relative_to(ROOT).as_posix()] = lines
    assert found.keys() == kept.keys()
    for name, lines in found.items():
        assert [line for line in lines if not any(one in line for one in kept[name])] == []
        assert [one for one in kept[name] if not any(one in line for line in lines)] == []


def test_old_names_of_scratch_and_alternatives() -> None:
    assert stopping.nearest_way is stopping.nearest_alternative
    assert stopping.LEVELS_ROOM is stopping.LEVELS_SCRATCH
    assert problems.LookaheadRoom is problems.LookaheadScratch
    one = BestArm().certifier(3)
    assert one.room == one.scratch == 15
    seen = np.array([[3, 3, 3]]), np.array([[0.1, 0.5, 0.9]]), np.full((1, 3), 0.2)
    found = [how(*seen, np.full((1, 3), -1, np.int8)) for how in (one.ways, one.alternatives)]
    assert np.array_equal(*found, equal_nan=True)
    two, three = (stopping.Certifier.of("top-k", 3, common()[:], 1.0, 0.0, **{word: 7}) for word in ("room", "scratch"))
    assert two.scratch == three.scratch == 22
    for name in ("nearest_way", "LookaheadRoom"):
        with pytest.warns(DeprecationWarning, match=f"{name} is now"):
            getattr(bandit_envs, name)


def test_states_are_found_by_the_names_of_their_classes_before() -> None:
    """Pickles of earlier versions name the classes `...Memory`."""
    with pytest.warns(DeprecationWarning, match=r"agents\.core\.RoundState"):
        assert agents.core.RoundMemory is agents.core.RoundState
    with pytest.raises(AttributeError):
        agents.core.NoMemory  # noqa: B018
    limits = {"delta": 0.1, "max_pulls": 99}
    for name, problem, ends in (
        ("lucb", "TopK", limits),
        ("adapt", "TopK", limits),
        ("median-elimination", "BestArm", limits | {"epsilon": 0.1}),
        ("top-two", "BestArm", limits),
        ("lil-ucb", "BestArm", limits),
        ("sar", "Threshold", {"budget": 99}),
        ("uniform", "Threshold", {"budget": 99}),
    ):
        env = gym.make(f"bandit_envs/{problem}-v0", **ends)
        agent: Any = agents.make(name, env)
        observation, _ = env.reset(seed=3)
        action, state = agent.predict(observation)
        written = pickle.dumps((agent, state), 0)
        before = re.sub(rb"(?m)^([a-zA-Z]*)State$", rb"\1Memory", written)
        assert (before != written) == (name != "uniform")
        again, same = pickle.loads(before)
        observation, *_ = env.step(action)
        assert again.predict(observation, same)[0] == agent.predict(observation, state)[0]


def test_the_parameters_of_evolved_have_two_spellings() -> None:
    one, values = Task("Threshold", {"threshold": 0.5}, K=3, budget=50), [0.5] * 18
    new: Any = agents.make("evolved", one, parameters=values)
    for old in (
        agents.make("evolved", one, genes=values),
        agents.make(f"evolved(genes={values})", one),
        Evolved(one, genes=values),
    ):
        assert old.parameters == new.parameters == {"parameters": values}
        assert np.array_equal(old.genes, new.candidates)
        assert described(old) == described(new) == f"agents.evolved.agent:Evolved, genes={values}"
    start: Any = agents.make("evolved(parameters='start')", one)
    assert np.array_equal(new.for_task(one, genes="start").genes, start.candidates)
    for call in (
        lambda: agents.make("evolved", one, parameters=values, genes=values),
        lambda: Evolved(one, values, genes=values),
    ):
        with pytest.raises(ValueError, match="parameters and genes are two spellings"):
            call()
    again = Evolved.__new__(Evolved)
    state = vars(new) | {"genes": new.candidates, "_parameters": {"genes": values}}
    again.__setstate__({name: value for name, value in state.items() if name != "candidates"})
    for copy in (again, pickle.loads(pickle.dumps(new))):
        assert vars(copy).keys() == vars(new).keys()
        assert copy.parameters == new.parameters
        assert np.array_equal(copy.candidates, new.candidates)


@pytest.mark.parametrize("word", ["genes", "parameters"])
def test_cards_of_evolved_are_read_in_both_spellings(word: str, tmp_path: Path) -> None:
    one, path = Task("Threshold", {"threshold": 0.5}, K=3, budget=50), tmp_path / "mine.json"
    names = parameter_names(False)[:18]
    path.write_text(json.dumps({"algorithm": "evolved", "names": names, word: [0.5] * 18}))
    made: Any = agents.make(str(path), one)
    assert made.candidates[0, :18].tolist() == [0.5] * 18
    path.write_text(json.dumps({"algorithm": "evolved", "names": names, word: 3}))
    with pytest.raises(ValueError, match=f"its {word} must be a list"):
        agents.make(str(path), one)


def test_the_old_name_of_the_registry_is_found_and_warned_of() -> None:
    with pytest.warns(DeprecationWarning, match="LAWS is now"):
        assert bandit_envs.LAWS is bandit_envs.DISTRIBUTIONS
