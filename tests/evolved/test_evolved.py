"""The evolved index: the formula by hand, all arms at once, stopping, the evolution itself, stored parameters."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from refusals import refused

import agents
from agents.evaluation.expected_loss import wrong
from agents.evolved.agent import Evolved
from agents.evolved.evolution import CommonEpisodes, Evolution, evolve
from agents.evolved.formula import LSA, PARAMETERS, START
from agents.evolved.network import HIDDEN, LAYERS, OWN, SHARED, WEIGHTS
from agents.evolved.parameters import parameter_names
from agents.evolved.search import MirroredSearch
from agents.evolved.space import search_space, starting_point
from agents.models.cards import FOLDER, card_path
from bandit_envs import PROBLEMS, SetProblem, register_problem
from bandit_envs.instances.instance import Sampler
from bandit_envs.kernels import rng

THRESHOLD = "bandit_envs/Threshold-v0"
VALUES = (0.6, 0.5, 0.5, 5.0, 0.3, 0.2, 0.1, 0.5, 0.4, 1.0, -1.0, 0.5, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0)


def test_the_index_by_hand() -> None:
    env = gym.make(THRESHOLD, budget=40, instance={"distribution": "bernoulli", "mean": [0.4] * 10}, actions="full")
    agent = agents.make("evolved", env, parameters=VALUES)
    # T / K = 4 pulls per arm, a twenty-fifth of a hundred, so that nu = 5 / sqrt(25) = 1.
    # n = 3, mean 1: d = 1/2 * 3/4 = 3/8, m = 7/8. 3 d^2 / (2 / 4) = 27/32; 3 kl(7/8, 1/2) = 3 (7/8 ln 7 - 2 ln 2), as
    # ln(7/4) = ln 7 - 2 ln 2 and ln(1/4) = -2 ln 2; w is half of each. In f: ln(1 + w) - ln 3 + ln(3 / 4) / 2 + 1/5.
    w = 27 / 64 + 1.5 * (0.875 * math.log(7) - 2 * math.log(2))
    x = math.log(1 + w) - math.log(3) + math.log(0.75) / 2 + 0.2
    index = 0.6 * w + (0.5 - 0.1 * math.log(25)) * math.log(3) + 0.3 * math.log(w + 0.201 / 3) + 0.4 * x / (1 + abs(x))
    assert agent.value(np.array([3.0]), np.array([1.0])) == pytest.approx([index], rel=1e-14)
    assert len(PARAMETERS) == len(VALUES) == len(LSA) == 18


def test_the_starting_point_is_lsa() -> None:
    parameters, start, scales = starting_point(False)
    kwargs = {"instance": "tao2019-1", "budget": 200, "threshold": 0.4321}  # no ties, which rounding would break
    env = gym.make(THRESHOLD, actions="full", **kwargs)
    result = agents.evaluate(
        {"evolved": Evolved(env, parameters), "lsa": "lsa"}, THRESHOLD, episodes=100, env_kwargs=kwargs
    )
    one, other = (run.pulls for run in result.runs)
    assert np.array_equal(one, other)
    assert len(parameters) == len(start) == len(scales)
    assert [len(part) for part in starting_point(True)] == [20, 20, 20]


# --- the network ------------------------------------------------------------------------------------------------------

GENERATOR = np.random.default_rng(3)
NET = GENERATOR.standard_normal((LAYERS, HIDDEN)) * 0.7
NET_VALUES = [*VALUES, *NET.ravel().tolist()]


def test_a_network_with_nothing_to_add_is_the_index() -> None:
    """Decision for decision, in problems with and without a single arm's margin."""
    nothing = [*VALUES, *NET[:-1].ravel().tolist(), *[0.0] * HIDDEN]
    assert len(nothing) == 18 + len(WEIGHTS)
    for env_id in (THRESHOLD, "bandit_envs/TopK-v0", "bandit_envs/AllGood-v0"):
        kwargs = {"instance": "sampler(arms=6)", "budget": 120}
        env = gym.make(env_id, actions="full", **kwargs)
        both = {"index": Evolved(env, VALUES), "network": Evolved(env, nothing), "bent": Evolved(env, NET_VALUES)}
        index, network, bent = (
            run.pulls for run in agents.evaluate(both, env_id, episodes=50, env_kwargs=kwargs, progress=False).runs
        )
        assert np.array_equal(index, network)
        assert not np.array_equal(index, bent)


def test_the_correction_by_hand() -> None:
    """One bend that sees the share of an arm and its side: n = 3 of 4 pulls per arm, on side 1."""
    net = np.zeros((LAYERS, HIDDEN))
    net[OWN.index("share"), 2], net[len(OWN) + SHARED.index("side"), 2], net[-1, 2] = 3.0, 0.5, 0.25
    env = gym.make(THRESHOLD, budget=40, instance={"distribution": "bernoulli", "mean": [0.4] * 10}, actions="full")
    x = 1.5 * math.log(0.75) + 0.5
    plain, bent = Evolved(env, VALUES), Evolved(env, [*VALUES, *net.ravel().tolist()])
    more = bent.value(np.array([3.0]), np.array([1.0])) - plain.value(np.array([3.0]), np.array([1.0]))
    assert more == pytest.approx([0.25 * x / (1 + abs(x))], rel=1e-12)


def network_twin(
    pulls: np.ndarray, mean: np.ndarray, distances: np.ndarray, T: int, local: bool, parameters: Any = VALUES
) -> int:
    """The arm with the least corrected index, Bernoulli arms, as the heads of `formula` and `network` tell it."""
    K, fair = len(pulls), math.log(T / len(pulls))
    alpha, beta, rho, kappa, gamma, delta, eta, mu, c, p, q, r, s = parameters[:13]
    nu = kappa * math.exp(mu * (fair - math.log(100)))
    w, index = [], []
    for n, m, distance in zip(pulls.tolist(), mean.tolist(), distances.tolist(), strict=True):
        d, side = abs(distance) * n / (n + nu), 1 if distance >= 0 else -1
        near, shrunk = min(max(m - distance, 0.001), 0.999), min(max(m - distance + side * d, 0), 1)
        kl = sum(a * math.log(a / b) for a, b in ((shrunk, near), (1 - shrunk, 1 - near)) if a > 0)
        w.append(2 * n * d * d + rho * (n * max(kl, 0) - 2 * n * d * d))
        x = p * math.log(1 + w[-1]) + q * math.log(n) + r * (math.log(n) - fair) + s
        index.append(
            alpha * w[-1]
            + (beta + eta * (fair - math.log(100))) * math.log(n)
            + gamma * (math.log(n * w[-1] + delta + 0.001) - math.log(n))
            + c * x / (1 + abs(x))
        )
    share = [(math.log(n) - fair) / 2 for n in pulls]
    sides = {s: [k for k in range(K) if (distances[k] >= 0) == (s == 1)] for s in (1, -1)}
    border = {s: min(arms, key=lambda k: abs(distances[k]), default=None) for s, arms in sides.items()}
    leader = int(np.argmax(mean))
    for k in range(K):
        n, m, side = pulls[k], (pulls[k] * mean[k] + 0.5) / (pulls[k] + 1), 1 if distances[k] >= 0 else -1
        inputs = [math.log(1 + w[k]) / 3, w[k] / (1 + w[k]), share[k], math.log(4 * m * (1 - m)) / 2]
        inputs += [0.0 if local else float(k == leader), 1.0, side, (fair - math.log(100)) / 2]
        if not local:
            inputs += [0.5 - pulls.sum() / T, sum(1 / (1 + v) for v in w) / K]
            inputs += [0.0 if one is None else share[one] for one in (border[-side], border[side], leader)]
        x = np.array(inputs) @ NET[: len(inputs)]
        index[k] += float((NET[-1] * x / (1 + abs(x))).sum())
    return int(np.argmin(index))


@pytest.mark.parametrize("env_id", [THRESHOLD, "bandit_envs/TopK-v0", "bandit_envs/AllGood-v0"])
def test_the_network_is_its_twin(env_id: str) -> None:
    """The same arms on 8 random instances; mirror images, between which rounding decides, are not asked for."""
    for episode in range(8):
        K = 4 + episode % 5
        env = gym.make(env_id, actions="full", instance=f"sampler(arms={K})", budget=15 * K)
        agent, problem = Evolved(env, NET_VALUES), env.unwrapped.problem  # type: ignore[attr-defined]
        observation, _ = env.reset(seed=4, options={"episode": episode})
        state, over = None, False
        while not over:
            action, state = agent.predict(observation, state)
            pulls, mean = observation["pulls"], observation["mean"]
            if observation["remaining"][0] > 0 and (pulls == 0).any():
                assert action["arm"] == (pulls == 0).argmax()
            elif observation["remaining"][0] > 0:
                distances = problem.distances(pulls[None], mean[None])[0]
                wanted = network_twin(pulls, mean, distances, 15 * K, problem.local)
                alike = (pulls[wanted] == pulls[action["arm"]]) and abs(distances[wanted]) == pytest.approx(
                    abs(distances[action["arm"]])
                )
                assert action["arm"] == wanted or alike
            observation, _, over, _, _ = env.step(action)


def test_one_seed_one_network(tmp_path: Any) -> None:
    """The search repeats bit for bit, its card holds the network, and the agent of the card plays as it does."""
    how = TINY | {"network": True, "generations": 3, "every": 1, "episodes": 60}
    kwargs = {"instance": "sampler(arms=4)", "budget": 60, "k": 2}
    how |= {"env_id": "TopK", "env_kwargs": kwargs}
    parameters, card = evolve(**how, out=tmp_path / "net")
    assert evolve(**how)[0] == parameters == eval(card["call"])[0]
    assert card["generations"] == 3
    assert card["names"] == list(parameter_names(False))[: len(parameters)]
    wide = search_space(gym.make(THRESHOLD, budget=9).unwrapped.task, True, None).with_network(list(START), 5)  # type: ignore[attr-defined]
    dead = {name.rpartition("_")[0] for i, name in enumerate(wide.names) if i >= 18 and i not in wide.searched}
    assert dead == {"lead", "left", "open", "rival", "border", "top"}
    env = gym.make("bandit_envs/TopK-v0", actions="full", **kwargs)
    both = {"card": agents.make(str(tmp_path / "net.json"), env), "parameters": Evolved(env, parameters)}
    one, other = agents.evaluate(both, "TopK", episodes=20, env_kwargs=kwargs, progress=False).runs
    assert np.array_equal(one.pulls, other.pulls)


def test_mirrored_search_finds_the_least() -> None:
    """A bowl with noise that pairs share: from a distance of 2 to less than a quarter of it."""
    search, noise = MirroredSearch(10, 0.3, 0.1, 12, 0), np.random.default_rng(0)
    least = np.full(10, 2 / math.sqrt(10))
    for _ in range(200):
        points = [search.ask() for _ in range(search.population_size)]
        luck = noise.standard_normal()
        search.tell([(x, luck + float(((x - least) ** 2).sum())) for x in points])
    assert np.linalg.norm(search.mean - least) < 0.5


CORNER = {"A": [[-1.0, 0.0], [0.0, 1.0]], "b": [-0.5, 0.5]}


@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        ("TopK", {"instance": "sampler(arms=6)", "k": 2, "budget": 60}),
        (
            "Feasible",
            {"instance": {"sampler": {"distribution": "gaussian", "arms": 4, "dimensions": 2}}, "budget": 40} | CORNER,
        ),
        (
            "AllGood",
            {"instance": {"sampler": {"distribution": "gaussian", "arms": 5}}, "pull_cost": 0.01, "max_pulls": 9000},
        ),
    ],
)
def test_drawn_losses_are_those_that_happen(env_id: str, kwargs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 episodes; |z| > 5 happens by chance with probability 6e-7."""
    parameters = [*LSA, *((0.0, 0.5) if env_id == "AllGood" else ())]
    drawn = CommonEpisodes(f"bandit_envs/{env_id}-v0", kwargs, 2000).losses([parameters], 3, 0)[0]
    monkeypatch.setattr("agents.evaluation.expected_loss.drawable", lambda _: False)
    happened = CommonEpisodes(f"bandit_envs/{env_id}-v0", kwargs, 2000).losses([parameters], 3, 0)[0]
    difference = drawn - happened
    assert abs(difference.mean()) < 5 * difference.std() / math.sqrt(len(difference))
    assert drawn.std() < happened.std()


# --- stopping, and the evolution --------------------------------------------------------------------------------------


def test_it_stops_where_a_pull_costs_more_than_it_brings() -> None:
    parameters = starting_point(True)[0]
    pulls = {}
    for cost in (0.01, 0.001):
        kwargs = {
            "instance": {"sampler": {"distribution": "gaussian", "arms": 5}},
            "epsilon": 0.3,
            "pull_cost": cost,
            "max_pulls": 5000,
        }
        env = gym.make("bandit_envs/AllGood-v0", actions="full", **kwargs)
        result = agents.evaluate(
            {"evolved": Evolved(env, parameters)}, "bandit_envs/AllGood-v0", episodes=50, env_kwargs=kwargs
        )
        pulls[cost] = result.episodes["total_pulls"].mean()
        assert not result.episodes["truncated"].any()
    assert 5 <= pulls[0.01] < pulls[0.001]


@pytest.mark.parametrize("env_id", ["bandit_envs/Threshold-v0", "bandit_envs/AllGood-v0"])
def test_candidates_side_by_side_play_as_each_alone(env_id: str) -> None:
    common = CommonEpisodes(env_id, {"instance": "sampler(arms=4)", "budget": 40}, 30)
    both = common.losses([LSA, START], 5, 7)
    assert both.shape == (2, 30)
    assert np.array_equal(both[0], common.losses([LSA], 5, 7)[0])
    assert np.array_equal(both[1], common.losses([START], 5, 7)[0])
    assert not np.array_equal(both[0], both[1])


TINY: dict[str, Any] = {
    "generations": 4,
    "population": 6,
    "every": 2,
    "episodes": 60,
    "progress": False,
    "network": False,
    "env_kwargs": {"instance": "sampler(arms=4)", "budget": 30},
}


def test_one_seed_one_index(tmp_path: Any) -> None:
    parameters, card = evolve(**TINY, out=tmp_path / "index")
    again, _ = evolve(**TINY)
    other, _ = evolve(**TINY, seed=1)
    assert parameters == again != other
    assert (parameters[0], parameters[13:]) == (1.0, [0.0] * 5)  # not searched
    stored = json.loads((tmp_path / "index.json").read_text())
    assert stored["parameters"] == parameters
    assert stored["names"] == list(PARAMETERS)
    assert [one["generation"] for one in card["checkpoints"]] == [0, 2, 4]
    assert card["kept"] in (0, 2, 4)
    [told] = card["result"]
    assert told["low"] <= told["ratio"] <= told["high"]
    common = CommonEpisodes("bandit_envs/Threshold-v0", TINY["env_kwargs"], told["episodes"])
    space = search_space(common.task, common.local, None)
    means = common.losses([space.reference, space.start.tolist(), parameters], told["root"], 0).mean(1)
    assert [told["start"], told["untrained"]] == pytest.approx(means[:2].tolist())
    assert told["loss"] == pytest.approx(means[2], rel=0.01)  # the parameters of the card are rounded
    assert eval(card["call"])[0] == parameters


def test_what_is_not_searched_stays() -> None:
    parameters, card = evolve(**TINY, searched=["eta", "beta"])
    moved = [name for name, parameter, start in zip(PARAMETERS, parameters, START, strict=True) if parameter != start]
    assert moved == ["beta", "eta"]
    assert eval(card["call"])[0] == parameters
    allowed = "beta, rho, kappa, gamma, delta, eta, mu, c1"
    for wrong_names in (["beta"], ["beta", "alpha"], ["beta", "tau0"]):
        with refused("searched", *allowed.split(", ")):
            evolve(**TINY, searched=wrong_names)


def test_evolution_finds_what_is_better() -> None:
    """Means far away or near: from an index that neglects all but the pulls, CMA-ES comes to use the margin."""
    kwargs = {"instance": {"sampler": {"arms": 6, "mean": {"choice": [0.05, 0.95, 0.4, 0.6]}}}, "budget": 90}
    parameters, _ = evolve(**TINY | {"generations": 12, "population": 8, "episodes": 300, "env_kwargs": kwargs})
    common = CommonEpisodes(THRESHOLD, kwargs, 3000)
    pulls_only = (0.0, 1.0, *[0.0] * 16)
    mine, plain, lsa = common.losses([parameters, pulls_only, LSA], 99, 0).mean(1)
    assert mine < 0.8 * plain
    assert mine < 1.02 * lsa


def test_expected_losses_are_those_that_happen(monkeypatch: pytest.MonkeyPatch) -> None:
    """4,000 episodes; |z| > 5 happens by chance with probability 6e-7."""
    for mean in ({"uniform": [0.3, 0.6]}, {"around": [0.5, 0.05, 0.2]}, {"choice": [0.3, 0.55]}):
        kwargs = {"instance": {"sampler": {"arms": 4, "mean": mean}}, "budget": 40}
        expected = CommonEpisodes(THRESHOLD, kwargs, 4000).losses([LSA], 3, 0)[0]
        with monkeypatch.context() as patch:
            for name in ("expectable", "drawable"):
                patch.setattr(f"agents.evaluation.expected_loss.{name}", lambda _: False)
            happened = CommonEpisodes(THRESHOLD, kwargs, 4000).losses([LSA], 3, 0)[0]
        difference = expected - happened
        assert abs(difference.mean()) < 5 * difference.std() / math.sqrt(len(difference)), mean
        assert expected.std() < 0.85 * happened.std()


def test_the_chance_of_an_error_by_hand() -> None:
    """Two means: after two ones in three samples the odds of .3 to .6 are .3^2 .7 to .6^2 .4; none leaves even odds."""
    two = Sampler(arms=2, mean={"choice": [0.3, 0.6]})
    pulls, mean = np.array([[3, 0], [3, 3]]), np.array([[2 / 3, 0.0], [1 / 3, 2 / 3]])
    one, other = 0.063 / (0.063 + 0.144), 0.6 * 0.16 / (0.6 * 0.16 + 0.3 * 0.49)
    assert wrong(two, 0.5, pulls, mean) == pytest.approx(np.array([[one, 0.5], [other, one]]), rel=1e-12)


def test_means_around_a_centre() -> None:
    sampler = Sampler(arms=8, mean={"around": [0.5, 0.1, 0.3]})
    means, _ = sampler.draw(np.repeat(rng.root_key(0)[:, None], 4000, 1), np.arange(4000, dtype=np.uint64))
    far = np.abs(means - 0.5)
    assert 0.1 <= far.min() < 0.1001
    assert 0.2999 < far.max() <= 0.3
    assert abs((means > 0.5).mean() - 0.5) < 5 * 0.5 / math.sqrt(means.size)
    assert abs(far.mean() - 0.2) < 5 * 0.2 / math.sqrt(12 * means.size)


@pytest.mark.parametrize("kwargs", [{"budget": 50}, {"budget": None, "pull_cost": 1e-3}])
def test_the_start_of_a_search_has_a_name(kwargs: dict[str, Any]) -> None:
    env = gym.make(THRESHOLD, actions="full", **kwargs)
    named: Any = agents.make("evolved(parameters='start')", env)
    start = starting_point(named.stops)[1]
    assert np.array_equal(named.candidates, Evolved(env, start).candidates)


class Apart(SetProblem):
    """A local problem: arms at a distance from one half."""

    name, local = "Apart", True

    def margin(self, means: Any) -> Any:
        return np.abs(np.asarray(means) - 0.5) - 0.25


class AboveAverage(SetProblem):
    """A problem in which every arm moves the boundary; also for arms of two dimensions, by their first coordinate."""

    name = "AboveAverage"

    def check(self, task: Any, source: Any = None) -> None:
        pass

    def margin(self, means: Any) -> Any:
        x = (
            np.asarray(means, float).reshape(*np.shape(means)[:2], -1)[..., 0]
            if np.ndim(means) > 2
            else np.array(means)
        )
        return x - np.nanmean(x, axis=-1, keepdims=True)


@pytest.mark.parametrize(
    "instance", ["sampler(arms=5)", {"sampler": {"distribution": "gaussian", "arms": 5, "dimensions": 2}}]
)
@pytest.mark.parametrize("kind", [Apart, AboveAverage])
@pytest.mark.filterwarnings("ignore:Mean of empty slice")
def test_it_plays_problems_of_ones_own(kind: Any, instance: Any) -> None:
    """The arms are those of the formula, from the problem's own margins."""
    if kind is Apart and instance != "sampler(arms=5)":
        instance = {"sampler": {"distribution": "gaussian", "arms": 5}}
    register_problem(kind)
    env = gym.make(f"bandit_envs/{kind.name}-v0", budget=60, instance=instance, actions="full")
    agent, problem = agents.make("evolved", env, parameters=LSA), env.unwrapped.problem
    for episode in range(5):
        observation, _ = env.reset(seed=6, options={"episode": episode})
        state, over = None, False
        while not over:
            action, state = agent.predict(observation, state)
            n, m = observation["pulls"], observation["mean"]
            if observation["remaining"][0] > 0:
                wanted = int((n == 0).argmax())
                if n.all():
                    w = n * problem.margin(m[None])[0] ** 2 / (2 * env.unwrapped.task.sigma**2)
                    wanted = int((0.675 * w + 0.5 * np.log(n)).argmin())
                assert action["arm"] == wanted
            observation, _, over, _, _ = env.step(action)
    with refused("evolved", kind.name, "budget"):
        agents.make("evolved", env)


def test_a_problem_may_use_the_models_of_another() -> None:
    class Higher(PROBLEMS["Threshold"]):  # type: ignore[misc]
        name, family = "Higher", "Threshold"

    register_problem(Higher)
    env = gym.make("bandit_envs/Higher-v0", budget=200)
    like = gym.make(THRESHOLD, budget=200)
    assert (agents.make("evolved", env).candidates == agents.make("evolved", like).candidates).all()


# --- what comes with the package -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(FOLDER.glob("evolved-*.json")), ids=lambda path: path.stem)
def test_stored_parameters_run(path: Any) -> None:
    card = json.loads(path.read_text())
    assert card["call"].startswith("agents.evolve(")
    assert card["cpu_seconds"] <= 600
    assert all(part["low"] < 1.0 for part in card["result"])  # nowhere significantly worse than the start
    kwargs = {**card["env_kwargs"], **(card["mix"] or [{}])[0]}
    kwargs.pop("episodes", None)
    env = gym.make(card["env_id"], actions="full", **kwargs)
    agent = agents.make("evolved", env)
    assert path == card_path("evolved", agent.task)
    names = parameter_names(agent.task.budget is None)
    given = dict(zip(card["names"], card["genes"], strict=True))
    assert set(given) <= set(names)
    assert agent.candidates.tolist() == [[given.get(name, 0.0) for name in names]]
    assert len(agents.evaluate("evolved", card["env_id"], episodes=3, env_kwargs=kwargs).episodes) == 3


def test_what_was_evolved_before_an_interrupt_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitness, how = Evolution.fitness, {"generations": 9, "population": 4, "episodes": 4, "held_out": 1, "every": 1}

    def interrupted(self: Any, points: Any, generation: int) -> Any:
        if generation == 2:
            raise KeyboardInterrupt
        return fitness(self, points, generation)

    monkeypatch.setattr(Evolution, "fitness", interrupted)
    task: dict[str, Any] = {"env_kwargs": {"instance": "sampler(arms=4)", "budget": 12}, "progress": False}
    with pytest.raises(KeyboardInterrupt, match="holds the best checkpoint so far"):
        agents.evolve("Threshold", out=tmp_path / "mine", **how, **task)
    assert json.loads((tmp_path / "mine.json").read_text())["generations"] == 2
    assert len(agents.evaluate(str(tmp_path / "mine.json"), "Threshold", episodes=2, **task).episodes) == 2
    with pytest.raises(KeyboardInterrupt, match="^$"):  # there is no file for it
        agents.evolve("Threshold", **how, **task)


def test_the_path_of_a_card_is_an_agent(tmp_path):
    """Defect: parameters that were evolved on a problem of one's own could be used in Python only."""
    parameters, _ = pair = agents.evolve(
        "Threshold",
        generations=1,
        population=4,
        episodes=20,
        env_kwargs={"instance": "sampler(arms=4)", "budget": 12},
        progress=False,
        out=tmp_path / "mine",
    )
    path = str(tmp_path / "mine.json")
    result = agents.evaluate(
        {"path": path, "pair": pair, "parameters": lambda task: agents.make("evolved", task, parameters=parameters)},
        "Threshold",
        episodes=20,
        env_kwargs={"instance": "sampler(arms=4)", "budget": 12},
        progress=False,
    )
    for one in ("path", "pair"):
        assert result.column(one, "score").tolist() == result.column("parameters", "score").tolist()
    assert agents.evaluate(pair, "Threshold", episodes=2, env_kwargs={"budget": 12}).agents == ["evolved"]
    with refused("parameters", "budget"):
        agents.make(path, gym.make("bandit_envs/Threshold-v0", instance="sampler(arms=4)", pull_cost=0.001))
    with refused("parameters", "nowhere.json", error=FileNotFoundError):
        agents.make("nowhere.json", gym.make("bandit_envs/Threshold-v0"))
    for text in ("", "[]", "{}", '{"algorithm": "ppo", "parameters": [1], "names": ["a"]}', '{"algorithm": "evolved"}'):
        (tmp_path / "mine.json").write_text(text)
        with refused("mine.json", "parameters"):
            agents.make(path, gym.make("bandit_envs/Threshold-v0"))
