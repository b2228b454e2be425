"""`Algorithm`: fields, plans, states and the code that is made of a class; each refusal says what is wrong."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest

import agents
from agents import Algorithm, per_arm, per_episode, pull, setting
from agents.core import arm_at, count_pulls, parts_of, planned, scratch
from agents.core.plans import errors_of_rules
from bandit_envs.kernels import part

BEST = "bandit_envs/BestArm-v0"


@part
def share(own, i):
    """What arm i has been counted for, of all that has been."""
    whole = 0.0
    for j in range(len(own.counted)):
        whole += own.counted[j]
    return own.counted[i] / max(whole, 1.0)


class Records(Algorithm):
    """Pull two arms in turn, and record in every kind of field what has been seen."""

    name, solves, passes = "records", ("BestArm",), 1
    first, weights, steps = setting(int, 1), setting(np.ndarray), setting(float, 0.5)
    rounds, begun, least = per_episode(int), per_episode(bool), per_episode(float)
    counted, marked = per_arm(float), per_arm(bool)
    work = scratch(float, rows=2)

    def __init__(self, task: Any, first: int = 1, steps: float = 0.5) -> None:
        super().__init__(task)
        self.first, self.steps, self.weights = first, steps, np.arange(self.task.K)

    def begin(ep, own):
        ep.now.begun = True

    def observe(ep, own):
        ep.now.least = np.inf
        for j in range(ep.now.size):
            own.counted[arm_at(ep, j)] += own.steps
        for i in planned(ep):
            own.marked[i] = True
        for i in range(len(ep.pulls)):
            own.work[0, i] = ep.total[i] / ep.pulls[i]
            ep.now.least = min(ep.now.least, own.work[0, i])

    def sample(ep, own):
        ep.now.rounds += 1
        pull(ep, own.first, 2)
        pull(ep, (own.first + own.weights[1] + int(share(own, 0))) % len(ep.pulls))


THREE = {"instance": {"distribution": "bernoulli", "mean": [0.2, 0.5, 0.8]}, "budget": 40}


def environment(K: int = 3, N: int = 1, **told: Any) -> Any:
    instance = {"distribution": "bernoulli", "mean": np.linspace(0.2, 0.8, K).tolist()}
    return gym.make_vec(BEST, N, instance=instance, actions="full", budget=40, **told)


def played(agent: Any, envs: Any, steps: int, state: Any = None, observation: Any = None) -> Any:
    """The arms of so many steps, the state, and the observation after them."""
    observation = envs.reset(seed=3)[0] if observation is None else observation
    arms = []
    for _ in range(steps):
        action, state = agent.predict(observation, state)
        arms.append(action["arm"].copy())
        observation, *_ = envs.step(action)
    return np.array(arms), state, observation


def test_fields_hold_what_the_functions_put_there() -> None:
    envs = environment()
    agent = agents.make(Records, envs)
    arms, state, _ = played(agent, envs, 10)
    # the first pass, then 1 1 2 by plan: the third plan has begun
    assert arms[:, 0].tolist() == [0, 1, 2, 1, 1, 2, 1, 1, 2, 1]
    assert state.now["rounds"].tolist() == [3]
    assert state.now["begun"].tolist() == [True]
    assert state.counted.tolist() == [[0.0, 1.0, 1.0]]
    assert state.marked.tolist() == [[False, True, True]]
    assert state.now["least"][0] == state.own["work"][0].min()


def test_fields_are_0_where_an_episode_begins() -> None:
    """A slot that restarts while the other goes on: its numbers and rows begin again, those of the other stay."""
    envs = environment(N=2, autoreset_mode=gym.vector.AutoresetMode.DISABLED)
    agent = agents.make(Records, envs)
    _, state, _ = played(agent, envs, 12)
    observation, _ = envs.reset(options={"reset_mask": np.array([True, False])})
    _, state, _ = played(agent, envs, 4, state, observation)
    assert state.now["rounds"].tolist() == [1, 5]
    assert state.counted.tolist() == [[0.0, 0.0, 0.0], [0.0, 2.0, 2.0]]


@pytest.mark.parametrize("kept", [copy.deepcopy, lambda state: pickle.loads(pickle.dumps(state))])
def test_states_are_copied_and_pickled_in_the_middle(kept: Callable[[Any], Any]) -> None:
    envs, others = environment(), environment()
    agent = agents.make(Records, envs)
    _, state, observation = played(agent, envs, 8)
    arms, *_ = played(agent, others, 16)
    again, *_ = played(agent, envs, 8, kept(state), observation)
    assert (again == arms[8:]).all()


def test_settings_may_be_changed() -> None:
    """An attribute that is a setting counts from the next plan on."""
    envs = environment()
    agent: Any = agents.make(Records, envs)
    _, state, observation = played(agent, envs, 6)
    agent.first = 0
    assert played(agent, envs, 3, state, observation)[0][:, 0].tolist() == [0, 0, 1]


def test_one_compilation_is_for_any_number_of_arms() -> None:
    """K = 3, 5 and 7: a type that holds K would be compiled for each."""
    for K in (3, 5, 7):
        envs = environment(K)
        played(agents.make(Records, envs), envs, 12)
    assert len(Records.form._routines) == 1


def test_a_subclass_that_declares_nothing_shares_the_code() -> None:
    class Later(Records):
        name = "later"

    class Passes(Records):
        name, passes = "passes", 2

    assert Later.form is Records.form
    assert Passes.form is not Records.form
    envs = environment()
    assert played(agents.make(Passes, envs), envs, 7)[0][:, 0].tolist() == [0, 1, 2, 0, 1, 2, 1]


def test_parameters_are_settings_with_defaults() -> None:
    class Simple(Algorithm):
        name, solves = "simple", ("BestArm",)
        lead, k, loud = setting(float, 0.5), setting(int, 2), setting(bool, False)

        def sample(ep, own):
            pull(ep, own.k if own.loud else int(own.lead))

    envs = environment()
    agent = agents.make(Simple, envs, k=1, loud=True)
    assert agent.parameters == {"k": 1, "loud": True}
    assert played(agent, envs, 5)[0][3:, 0].tolist() == [1, 1]
    for wrong in ({"lead": "much"}, {"k": 1.5}, {"loud": 1}):
        with pytest.raises(ValueError, match=rf"{next(iter(wrong))} must be"):
            agents.make(Simple, envs, **wrong)
    with pytest.raises(ValueError, match="unexpected keyword argument 'size'|no parameter"):
        agents.make(Simple, envs, size=3)


def algorithm(sample: Callable[..., None], **space: Any) -> Any:
    """The class of a sampling rule."""
    return type(Algorithm)("Odd", (Algorithm,), {"name": "odd", "solves": ("BestArm",), "sample": sample, **space})


BEYOND, BELOW, NEVER, MANY = range(4)


def wrong(ep, own):
    if own.how == BEYOND:
        pull(ep, count_pulls(ep))
    elif own.how == BELOW:
        pull(ep, -1)
    elif own.how == NEVER:
        pull(ep, 0, 0)
    else:
        for _ in range(4):
            pull(ep, 0)


Wrong = algorithm(wrong, how=setting(int, 0))


def fraction(ep, own):
    pull(ep, 0.5)


def makes_arrays(ep, own):
    pull(ep, np.argmax(np.zeros(3)))


def counts(ep, own):
    ep.now.pulled += 1


def in_vain(ep, own):
    if count_pulls(ep) == 5:
        raise ValueError("the sixth arm")
    pull(ep, 0)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (algorithm(in_vain), "the sixth arm"),
        (algorithm(counts), r"Odd has no number ep\.now\.pulled: declare it by per_episode"),
        (Wrong, r"planned 1 pulls of arm 3: arms are 0 \.\. 2"),
        (type(Algorithm)("Below", (Wrong,), {"how": BELOW}), r"planned 1 pulls of arm -1: arms are 0 \.\. 2"),
        (type(Algorithm)("Never", (Wrong,), {"how": NEVER}), r"planned 0 pulls of arm 0: .* once or more often"),
        (type(Algorithm)("Many", (Wrong,), {"how": MANY}), "a plan of odd has more arms than there are, 3 at most"),
        (algorithm(fraction), "Numba cannot compile fraction .*an arm, or how often it is pulled, is a float"),
        (algorithm(makes_arrays), "a function of one episode makes no arrays"),
    ],
)
def test_plans_that_cannot_be_followed_are_refused(kind: Any, said: str) -> None:
    envs = environment()
    with pytest.raises(ValueError, match=said):
        played(agents.make(kind, envs), envs, 6)
    with pytest.raises(ValueError, match=said):
        agents.evaluate(kind, "BestArm", episodes=2, env_kwargs=THREE, progress=False)


def test_what_a_class_declares_is_looked_at() -> None:
    with pytest.raises(TypeError, match=r"sample of Odd must be a function of \(ep, own\)"):
        algorithm(lambda self, ep, own: None)
    for name in ("size", "batch", "task", "now", "form", "stops"):
        with pytest.raises(TypeError, match=f"Odd declares {name}, which has a meaning"):
            algorithm(wrong, **{name: per_episode(int)})
    with pytest.raises(TypeError, match="Odd declares first, which a class has that it derives from"):
        type(Records)("Odd", (Records,), {"first": setting(int)})
    with pytest.raises(TypeError, match="sample of Records is to be defined in the class"):
        Records.sample = wrong
    envs = environment()
    with pytest.raises((TypeError, ValueError), match=r"Odd needs a sampling rule, sample\(ep, own\)"):
        agents.make(type(Algorithm)("Odd", (Algorithm,), {"name": "odd", "solves": ("BestArm",)}), envs)
    with pytest.raises((TypeError, ValueError), match="Odd must set the attribute 'k', which it declares"):
        played(agents.make(algorithm(wrong, k=setting(int)), envs), envs, 1)


def test_without_a_plan_the_episode_stops() -> None:
    def nothing(ep, own):
        pass

    envs = environment()
    action, _ = agents.make(algorithm(nothing), envs).predict(played(agents.make("uniform", envs), envs, 3)[2])
    assert action["arm"].tolist() == [3]
    assert action["answer"].sum() == 1


def test_rules_and_defaults_of_mixins_and_subclasses_count() -> None:
    """A plain mixin, a second base, a static method, and a value in place of a setting."""

    class Ends:
        def stops(ep, own):
            return ep.pulls[2] > 2

    class Two(Algorithm):
        name, solves = "two", ("BestArm",)
        which = setting(int, 2)

        @staticmethod
        def sample(ep, own):
            pull(ep, own.which)

    class Mixed(Ends, Two):
        name = "mixed"

    class One(Two):
        name, which = "one", 1

    envs = environment()
    assert played(agents.make(Mixed, envs), envs, 6)[0][:, 0].tolist() == [0, 1, 2, 2, 2, 3]
    assert played(agents.make(One, envs), envs, 5)[0][:, 0].tolist() == [0, 1, 2, 1, 1]
    assert Mixed.form is not Two.form
    assert One.form is Two.form


def test_a_plan_is_over_once_all_its_pulls_are_chosen() -> None:
    """Which pulls are the last of a plan: of the first pass, and of each plan of 1 1 2."""
    envs = environment()
    agent: Any = agents.make(Records, envs)
    observation, state, over = envs.reset(seed=3)[0], None, []
    for _ in range(9):
        action, state = agent.predict(observation, state)
        observation, *_ = envs.step(action)
        assert agent.plan_over(state).tolist() == agent.plan_over(state, observation["pulls"]).tolist()
        over += agent.plan_over(state).tolist()
    assert over == [False, False, True] * 3


@pytest.mark.parametrize(("agent", "phases"), [("successive-rejects", 4), ("sequential-halving", 3)])
@pytest.mark.parametrize("actions", ["arm", "full"])
def test_a_phase_is_one_plan(agent: str, phases: int, actions: str) -> None:
    """Five arms: n - 1 phases, ceil(log2 n) rounds. A runner that waits where a plan is over waits once for each."""
    instance = {"distribution": "bernoulli", "mean": [0.1, 0.3, 0.5, 0.7, 0.9]}
    env = gym.make(BEST, instance=instance, budget=200, actions=actions)
    player: Any = agents.make(agent, env)
    observation, state, over, plans = env.reset(seed=0)[0], None, False, 0
    while not over:
        action, state = player.predict(observation, state)
        observation, _, over, _, _ = env.step(action)
        plans += bool(player.plan_over(state)[0] and not state.now["stopped"][0])
    assert plans == phases


def test_arms_that_had_their_pulls_are_left_out_of_the_first_pass() -> None:
    """Arm 2 was pulled before: arm 1 is the last of the pass, which only the pulls tell."""
    envs = environment()
    agent: Any = agents.make(Records, envs)
    observation = envs.reset(seed=3)[0]
    for arm in (2, 0):
        observation, *_ = envs.step(
            {"arm": np.array([arm]), "times": np.array([1]), "answer": np.zeros((1, 3), np.int8)}
        )
    action, state = agent.predict(observation)
    assert action["arm"].tolist() == [1]
    observation, *_ = envs.step(action)
    assert agent.plan_over(state).tolist() == [False]
    assert agent.plan_over(state, observation["pulls"]).tolist() == [True]


def test_arrays_that_are_put_into_an_open_state_are_read_or_kept_but_never_freed() -> None:
    """Compiled code goes by addresses: what was there when they were taken stays as long as they are used."""
    envs = environment()
    agent = agents.make(Records, envs)
    _, state, observation = played(agent, envs, 8)
    before = state.own["counted"]
    state.own["counted"] = before.copy()
    assert any(one is before for one in state.bound[2][-1].values())
    arms, *_ = played(agent, envs, 8, state, observation)
    assert (before > 0).any() and len(arms) == 8  # noqa: PT018


def test_errors_of_others_go_where_they_went(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hook is that of before in the end, and other errors that Python cannot raise are not those of a rule."""
    said = list[Any]()
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    before = sys.unraisablehook
    with errors_of_rules() as found, errors_of_rules():
        sys.unraisablehook(SimpleNamespace(object="__del__ of somebody", exc_value=ValueError()))  # type: ignore[arg-type]
    assert len(said) == 1
    assert found == []
    assert sys.unraisablehook is before


def test_settings_that_no_record_holds_are_named() -> None:
    envs = environment()
    agent = agents.make(Wrong, envs)
    agent.how = 2**63
    with pytest.raises((OverflowError, ValueError), match="how must be an integer of 64 bits, got 9223372036854775808"):
        played(agent, envs, 1)
    with pytest.raises(TypeError, match="reads of Odd must be of pulls, .*, got hats"):
        algorithm(fraction, reads=("hats",))
    with pytest.raises(TypeError, match=r"grows along its first axis with the episodes, or not at all, got \(3, 1\)"):
        played(agents.make(algorithm(fair, w=parts_of(lambda E, K: np.zeros((K, E)))), envs), envs, 1)


class Table(NamedTuple):
    row: Any


def test_arrays_in_a_struct_are_the_agents_own() -> None:
    """In any order, and whatever may be written to."""
    row = np.broadcast_to(np.arange(6.0)[::2], (3,))
    kind = algorithm(by_table, table=setting(Table, Table(row)))
    assert played(agents.make(kind, environment()), environment(), 4)[0][-1] == [2]


def fair(ep, own):
    pull(ep, 0)


def by_table(ep, own):
    pull(ep, np.int64(own.table.row[1]))
