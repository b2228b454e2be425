"""Training libraries run on the environments as they are. Where a library is not installed, its tests are skipped.

`tests/test_docs.py` runs the example of each; here, what the library sees is compared with what there is to see.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import sys
from contextlib import suppress
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import FilterObservation, RecordEpisodeStatistics
from pages import of_pages, programs
from rollouts import same

import agents
from bandit_envs import ENVIRONMENTS, PureExplorationEnv

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the libraries

ROOT = Path(__file__).parents[2]
THRESHOLD = "bandit_envs/Threshold-v0"
KWARGS: dict[str, Any] = {"budget": 20, "observation": "features", "instance": "sampler(arms=5)"}
SLOTS = 3


def native(mode: AutoresetMode | str, **kwargs: Any) -> Any:
    return gym.make_vec(THRESHOLD, SLOTS, autoreset_mode=mode, **KWARGS | kwargs)


def sync(mode: AutoresetMode | str, **kwargs: Any) -> SyncVectorEnv:
    one = functools.partial(PureExplorationEnv, "Threshold", **KWARGS | kwargs)
    return SyncVectorEnv([one] * SLOTS, autoreset_mode=AutoresetMode(mode))


# --- TorchRL ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("observation", ["features", "statistics"])
@pytest.mark.parametrize("how", ["id", "id and frame_skip", "single", "Disabled", "SameStep"])
def test_torchrl(how: str, observation: str) -> None:
    library = pytest.importorskip("torchrl.envs")
    settings = KWARGS | {"observation": observation}
    if how.startswith("id"):
        env = library.GymEnv(f"bandit_envs:{THRESHOLD}", frame_skip=2 if "skip" in how else 1, **settings)
    elif how == "single":
        env = library.GymWrapper(gym.make(THRESHOLD, **settings))
    else:
        env = library.GymWrapper(native(how, **settings))
    library.check_env_specs(env)
    played = env.rollout(60, break_when_any_done=False)
    assert played.batch_size == ((60,) if how in ("id", "id and frame_skip", "single") else (SLOTS, 60))
    assert played["next", "done"].sum() >= 2


@pytest.mark.parametrize("mode", ["Disabled", "SameStep"])
def test_torchrl_sees_the_same_of_the_native_vector_environment(mode: str) -> None:
    library, torch = pytest.importorskip("torchrl.envs"), pytest.importorskip("torch")

    def act(seen: Any) -> Any:
        """Actions that depend on the observation alone, now and then the stop action."""
        found = (seen.double().sum(-1) * 997).long().remainder(60)
        return torch.where(found < 2, 5, found.remainder(5))

    policy = pytest.importorskip("tensordict.nn").TensorDictModule(act, in_keys=["observation"], out_keys=["action"])
    played = []
    for made in (native, sync):
        env = library.GymWrapper(made(mode), categorical_action_encoding=True)
        env.set_seed(3)
        played.append(env.rollout(60, policy, break_when_any_done=False))
    one, other = played
    assert one["next", "done"].sum() >= 2 * SLOTS
    for name in ("observation", "action", ("next", "observation"), ("next", "reward"), ("next", "done")):
        assert torch.equal(one[name], other[name]), name


# --- skrl -------------------------------------------------------------------------------------------------------------


def test_skrl() -> None:
    wrappers, torch = pytest.importorskip("skrl.envs.wrappers.torch"), pytest.importorskip("torch")
    seen = []
    for made in (native, sync):
        env = wrappers.wrap_env(made("SameStep"), verbose=False)
        env._seed = 3
        assert env.num_envs == SLOTS
        outputs, generator = [env.reset()[0]], torch.Generator().manual_seed(0)
        for _ in range(60):
            action = torch.randint(0, 5, (SLOTS, 1), generator=generator)
            outputs.append(env.step(action)[:4])
        assert sum(int(one[2].sum()) for one in outputs[1:]) == 3 * SLOTS
        seen.append([tuple(x.cpu().numpy() for x in one) for one in outputs[1:]])
    assert same(*seen)


# --- Tianshou ---------------------------------------------------------------------------------------------------------


def test_tianshou() -> None:
    data, envs = pytest.importorskip("tianshou.data"), pytest.importorskip("tianshou.env")
    made = envs.DummyVectorEnv([lambda: gym.make(THRESHOLD, **KWARGS)] * SLOTS)
    policy = pytest.importorskip("tianshou.algorithm.algorithm_base").RandomActionPolicy(made.action_space[0])
    collector = data.Collector(policy, made, data.VectorReplayBuffer(1000, SLOTS))
    collector.reset()
    found = collector.collect(n_episode=9, random=True)  # samples of the action space
    assert found.n_collected_episodes == 9
    assert 1 <= found.lens.min() <= found.lens.max() <= 20
    assert 0 <= found.returns.min() < found.returns.max() <= 1


# --- RLlib ------------------------------------------------------------------------------------------------------------


def test_rllib() -> None:
    """RLlib's own runner of environments, without the processes of Ray."""
    ppo = pytest.importorskip("ray.rllib.algorithms.ppo")
    runner = pytest.importorskip("ray.rllib.env.single_agent_env_runner")
    lengths = []
    for how in ("sync", "vector_entry_point"):
        config = ppo.PPOConfig().environment(f"bandit_envs:{THRESHOLD}", env_config=KWARGS)
        config.env_runners(num_envs_per_env_runner=SLOTS, gym_env_vectorize_mode=how)
        played = runner.SingleAgentEnvRunner(config=config).sample(num_episodes=9, random_actions=True)
        lengths.append([len(one) for one in played if one.is_done])
        assert all(one.is_terminated and 0 <= one.get_return() <= 1 for one in played if one.is_done)
    for found in lengths:
        assert len(found) >= 9
        assert 1 <= min(found) <= max(found) <= 20


# --- Programs that take an id only ------------------------------------------------------------------------------------


def test_an_id_of_ones_own_serves_programs_that_take_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """What CleanRL's PPO does with `--env-id`: a box and a number of actions, in Gymnasium's own vector environment."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    envs = SyncVectorEnv([lambda: RecordEpisodeStatistics(gym.make("own_ids:own/Threshold-learn-v0"))] * SLOTS)
    del sys.modules["own_ids"]
    assert isinstance(envs.single_observation_space, gym.spaces.Box)
    assert isinstance(envs.single_action_space, gym.spaces.Discrete)
    envs.reset(seed=0)
    for _ in range(50):
        *_, info = envs.step(np.zeros(SLOTS, np.int64))
    assert info["episode"]["l"].tolist() == [50] * SLOTS


def test_the_module_in_an_id_is_imported() -> None:
    assert gym.make(f"bandit_envs:{THRESHOLD}").unwrapped.task.K == 10
    assert gym.make_vec(f"bandit_envs:{THRESHOLD}", 2).num_envs == 2


@pytest.mark.parametrize("kwargs", [{"budget": 5}, {"delta": 0.1}])
def test_samples_of_the_space_lie_in_it(kwargs: dict[str, Any]) -> None:
    space = gym.make(THRESHOLD, **kwargs).observation_space
    assert space.sample() in space


# --- Stable-Baselines3 on statistics ----------------------------------------------------------------------------------


def test_statistics_without_the_word_for_randomness_suit_a_network() -> None:
    """The wrapper that docs/environments.md recommends: without it a feature is as large as 2^63."""
    sb3 = pytest.importorskip("stable_baselines3")
    largest = []
    for wrap in (lambda env: env, lambda env: FilterObservation(env, ["pulls", "mean", "variance", "remaining"])):
        env = wrap(gym.make(THRESHOLD, budget=20))
        model = sb3.PPO("MultiInputPolicy", env, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu")
        seen, _ = env.reset(seed=0)
        tensors, _ = model.policy.obs_to_tensor(seen)
        largest.append(float(model.policy.extract_features(tensors).abs().max()))
        if "public_seed" not in seen:
            model.learn(64)
    assert largest[0] > 1e15
    assert largest[1] <= 20


def unresolved(code: str) -> list[str]:
    """What a program imports from installed packages, and what is not there."""
    lost = []
    for one in ast.walk(ast.parse(code)):
        try:
            if isinstance(one, ast.Import | ast.ImportFrom):
                exec(ast.unparse(one), {"__name__": "tried"})
        except ImportError as error:
            spec = find_spec(str(error.name).partition(".")[0])
            if spec and spec.origin:  # of other packages, and of folders of examples, nothing can be said here
                lost.append(str(error))
    return lost


def test_what_examples_and_pages_import_is_there() -> None:
    assert [lost for code in [*programs("examples"), *of_pages()] for lost in unresolved(code)] == []
    assert unresolved("from gymnasium.states import Box") == ["No module named 'gymnasium.states'"]
    assert len(unresolved("from gymnasium.spaces import Boxes")) == 1


# --- the table in the docs --------------------------------------------------------------------------------------------


STACKS = (
    "cleanrl_ppo",
    "rllib_ppo",
    "sb3_dqn",
    "sb3_ppo",
    "sb3_recurrent_ppo",
    "skrl_ppo",
    "tianshou_ppo",
    "torchrl_ppo",
)
CALLS = ("gym.make", "gym.make_vec", "make_vec_env", "agents.evaluate")


def constants(tree: ast.Module) -> dict[str, Any]:
    """What a program assigns to names at its top, as far as it is written out."""
    found = {}
    for one in (one for one in tree.body if isinstance(one, ast.Assign)):
        target, value = one.targets[0], one.value
        several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
        for name, part in zip(target.elts, value.elts, strict=True) if several else [(target, value)]:  # type: ignore[attr-defined]
            with suppress(ValueError):
                found[ast.unparse(name)] = ast.literal_eval(part)
    return found


def made_by(code: str) -> list[str]:
    """Make every environment that a program makes, and its evaluation with `uniform` alone; the names of the calls."""
    tree, made = ast.parse(code), []
    names = {"gym": gym, "agents": agents, "make_vec_env": pytest.importorskip("agents.learned").make_vec_env}
    names |= constants(tree)
    for call in (one for one in ast.walk(tree) if isinstance(one, ast.Call) and ast.unparse(one.func) in CALLS):
        made.append(ast.unparse(call.func))
        if made[-1] == "agents.evaluate":
            call.args[0] = ast.Constant("uniform")
            next(one for one in call.keywords if one.arg == "episodes").value = ast.Constant(2)
        eval(compile(ast.fix_missing_locations(ast.Expression(call)), "example", "eval"), dict(names))
    return made


@pytest.mark.parametrize("name", STACKS)
def test_examples_use_ids_and_keywords_that_exist(name: str) -> None:
    """Also where the library is not installed: their environments are made, and their evaluation."""
    code = (ROOT / "examples" / f"{name}.py").read_text()
    assert set(re.findall(r"bandit_envs/[\w-]+-v0", code)) <= {row.learn_id for row in ENVIRONMENTS.values()}
    found = made_by(code)
    assert "agents.evaluate" in found
    assert len(found) >= 2 or name == "rllib_ppo"  # it makes its environments itself, by the same names
    with pytest.raises(TypeError, match="unexpected keyword argument 'obs'"):
        made_by(code.replace("env_kwargs=", "env_kwargs={'obs': 1} | "))


def test_the_hyperparameters_for_rl_zoo_are_of_an_environment_that_is_there() -> None:
    text = files("agents").joinpath("models", "rl_zoo.yml").read_text()
    ((name, given),) = re.findall(r"^(bandit_envs/\S+):\n(?:  .*\n)*?  env_kwargs: \{(.*)\}", text, re.MULTILINE)
    assert f'"{name}"' in (ROOT / "examples" / "rl_zoo.py").read_text()
    kwargs = {word: literal for word, literal in re.findall(r"(\w+): (\w+)", given)}
    env: Any = gym.make(name, **{word: json.loads(literal) for word, literal in kwargs.items()})
    assert (env.unwrapped.task.budget, env.unwrapped.setting.ranked) == (50, False)


def test_the_table_of_stacks_names_examples_that_are_there() -> None:
    table = (ROOT / "docs" / "environments.md").read_text().partition("## Other libraries")[2]
    named = set(re.findall(r"`examples/(\w+)\.py", table))
    assert {"torchrl_ppo", "skrl_ppo", "tianshou_ppo", "rllib_ppo", "rl_zoo", "own_ids"} <= named
    assert named <= {path.stem for path in (ROOT / "examples").glob("*.py")}
