"""`train`: from its arguments to a learned agent and its card.

1. `TrainingPlan` holds what the arguments decide: the environment, SB3's class with its hyperparameters, and root seeds
   for the episodes to learn on, to choose by and to judge by.
2. `HeldOut` lets the reference agents play the episodes on which checkpoints will be compared.
3. SB3's `learn` runs on a `NativeVecEnv`, with the callback `Checkpoints`.
4. The weights of the chosen checkpoint go into the model, and `report` compares it with its untrained start and the
   reference agents on fresh episodes.
5. `Trained.save` writes the model and its card.
"""

from __future__ import annotations

import copy
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.utils import FloatSchedule

from bandit_envs import FEATURES
from bandit_envs.instances import names_alone
from bandit_envs.kernels import flag, integer

from ..core.compile_time import CompileTime
from ..core.files import try_out
from ..core.forms import rules_of
from ..evaluation.environment import plain
from ..evaluation.identity import packages
from ..evaluation.plots import COLOURS, LINES, save
from ..evaluation.progress import compilation_noted, shown
from ..evolved.evolution import evolve_by
from ..models.cards import FORMAT
from .algorithms import PULLS_PER_ARM, TrainingEnvironment, TrainingPlan
from .checkpoints import Checkpoints, Clock
from .comparison import DRAWN, UNTRAINED, HeldOut, advice, report
from .model import Trained, load, one_thread, paths_of
from .plain import check_finite

GOES_ON = ("env_kwargs", "roots", "hyperparameters")  # entries of a card without which no training goes on


def train(
    algorithm: str = "ppo",
    env_id: str = "bandit_envs/Threshold-v0",
    *,
    steps: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    num_envs: int | None = None,
    env_kwargs: Mapping[str, object] | None = None,
    mix: Sequence[Mapping[str, Any]] | None = None,
    seeds: int = 1,
    out: str | Path | None = None,
    progress: bool | None = None,
    pulls_per_action: int = 1,
    checkpoints: int = 5,
    held_out: int = 2000,
    resume: str | Path | None = None,
    trust: bool = False,
    **hyperparameters: object,
) -> Any:
    """Train an agent, and return it with its card. Each episode has a fresh instance, unless `env_kwargs` fix one.

    Checkpoints are compared by their returns on the same `held_out` episodes of a second root seed. The latest that is
    at most one standard error (of the paired difference) worse than the best is kept, or the untrained start where that
    is better. It is compared with that start, and with `comparison.REFERENCE_AGENTS` that can play, on twice
    as many episodes of a third root. With `mix`, checkpoints are compared by their losses, 1 - return, as multiples of
    the last reference agent's, in the mean over the environments, and the card has a result for each. All are judged as
    `evaluate` plays them, pull by pull, by the most probable actions; what drawn actions reach is on the card.

    The same `seed` and `steps` give the same model (on one platform). With `seconds` the clock decides how far the run
    gets and how the learning rate falls: such a run cannot be repeated to the bit.

    Args:
        algorithm: "ppo", "a2c" or "maskable-ppo", with the equivariant policy; "dqn" and "recurrent-ppo", with SB3's
            own, for one K only. Those of sb3-contrib are "maskable-ppo" and "recurrent-ppo". "evolved" calls `evolve`,
            whose keywords it takes, with `steps` for generations, and returns what that returns.
        env_id: a registered environment of `bandit_envs`, or the name of its problem, any one.
        steps: actions in all episodes together, for each seed; None: 1,000,000, or what `seconds` allow.
        seconds: wall time for each seed, evaluations included, compiling not; kept roughly.
        seed: of the weights and of all episodes, an integer >= 0; the three roots that come from it are in the card.
        num_envs: episodes side by side; None: 128 (a2c: 64, dqn: 16, recurrent-ppo: 32), which a mix shares out.
        env_kwargs: keyword arguments of the environment, without `actions`. What they do not say of `observation`,
            `reward` and `stop` is chosen: relative beliefs, gains and no stop, where these are defined and to stop is
            pointless; dqn and recurrent-ppo see ranked arms. Where they name neither budget nor `max_pulls`, as with
            `delta`, episodes are cut after 100 pulls per arm.
        mix: several environments, for ppo, a2c and evolved: what each adds to `env_kwargs`, and of ppo and a2c its own
            `num_envs`, `held_out` and `pulls_per_action`. K, budget and parameters may differ; `observation`, `reward`
            and `stop` may not. A rollout has `n_steps` actions in each episode.
        seeds: keep the best of so many trainings, `seed` and on, on the same held-out episodes; the card lists them.
        out: write the model `<out>.safetensors`, its card `<out>.json`, and its learning curve `<out>.png`.
        progress: lines on standard error, ten seconds apart or more; None: if that is a terminal.
        pulls_per_action: how often each action is repeated while the agent learns.
        checkpoints: how many, in the later part of the run, >= 1.
        held_out: number of the episodes by which a checkpoint is chosen, >= 2.
        resume: go on from this saved model, of the same algorithm and problem, on fresh episodes. What `env_kwargs`,
            `mix` and `policy_kwargs` do not say is as on its card; the learning rate and dqn's exploration begin again.
        trust: go on from a file that names "module:name", or holds pickles, too: its maker may run any code.
        **hyperparameters: of SB3's class: `n_steps`, `gamma`, `ent_coef`, `policy_kwargs={"hidden": 64}`,
            `tensorboard_log="runs"`, ... A number as `learning_rate` falls linearly to 2 % of itself.

    Warns:
        UserWarning: if nothing was learned, or a reference agent, or drawing the actions, is significantly ahead.

    Raises:
        ValueError: naming the value and what is allowed.
        ImportError: for an algorithm of sb3-contrib where that is not installed.
        KeyboardInterrupt: after Ctrl-C. Where the learning had begun and there is `out`, the best checkpoint so far has
            been written, with its card; a second Ctrl-C leaves without. Of several `seeds`, the best that was ready.
    """
    call, began = dict(locals()), time.perf_counter()
    if algorithm == "evolved":
        changed = {name: call[name] for name, one in (train.__kwdefaults__ or {}).items() if call[name] != one}
        return evolve_by(env_id, **{**changed, **hyperparameters})
    former, before = None if resume is None else load(resume, trust=trust), 0
    if former is not None:
        found, asked = [former.card.get(name) for name in ("algorithm", "env_id")], [algorithm, plain(env_id, {})[0]]
        if found != asked:
            raise ValueError(f"{resume} is of {found[0]} on {found[1]}: it cannot go on by {asked[0]} on {asked[1]}")
        if lacking := [name for name in GOES_ON if not isinstance(former.card.get(name), dict)]:
            raise ValueError(f"{resume} cannot go on: the card beside it has no {lacking[0]}, an object")
        env_kwargs = {**former.card["env_kwargs"], **(env_kwargs or {})}
        mix = former.card.get("mix") if mix is None else mix
        hyperparameters = {"policy_kwargs": former.card["hyperparameters"].get("policy_kwargs"), **hyperparameters}
        before = integer(f"the root 'learning' on the card of {resume}", former.card["roots"].get("learning"), 0)
    own = {"num_envs": num_envs, "pulls_per_action": pulls_per_action, "checkpoints": checkpoints, "held_out": held_out}
    env_kwargs = {} if env_kwargs is None else env_kwargs
    named, trust = [call[name] for name in ("env_id", "env_kwargs", "mix")], flag("trust", trust)
    with names_alone(f"the card of {resume}", trust or former is None, named):
        plan = TrainingPlan(algorithm, env_id, env_kwargs, mix, hyperparameters, own, (steps, seconds), seed, before)
    for path in () if out is None else paths_of(out):
        try_out(path)
    if integer("seeds", seeds, 1, 1000) > 1:
        return _best_of(plan, seeds, call)
    show = shown(progress)
    if show and plan.environment.capped:
        most = f"{plan.environment.task.max_pulls:,} pulls, {PULLS_PER_ARM} per arm"
        text = f"each is cut after {most}; another max_pulls, or a budget, can be given"
        print(f"note: nothing but the agents themselves ends an episode: {text}", file=sys.stderr)
    with one_thread(), compilation_noted(show), CompileTime() as compiling:
        clock = Clock(plan.steps, plan.seconds, began, compiling)
        episodes = HeldOut(plan.environments, plan.roots["choosing"])
        callback = Checkpoints(episodes, clock, plan.own["checkpoints"], show)
        model = _new_model(plan, clock)
        if former is not None:
            try:
                model.set_parameters(former.model.get_parameters(), device="cpu")
            except Exception as error:  # of PyTorch
                text = f"{resume} has another network than policy_kwargs={plan.given['policy_kwargs']!r:.200} ask for"
                raise ValueError(f"{text}: {' '.join(str(error).split()):.300}") from error
        start = copy.copy(model)
        start.policy = copy.deepcopy(model.policy)
        interrupted: KeyboardInterrupt | None = None
        try:
            with mixed(model, plan):
                model.learn(sys.maxsize if plan.steps is None else plan.steps, callback=callback)
        except KeyboardInterrupt as error:
            if out is None or not callback.weights:
                raise
            interrupted = error
            print("interrupted: the best checkpoint so far is kept; Ctrl-C again leaves at once", file=sys.stderr)
        rate = plan.settings["learning_rate"]
        try:
            check_finite(model.policy.state_dict())
        except ValueError as error:
            text = f"the training has diverged, {error}: nothing is written; try a smaller learning_rate"
            raise ValueError(f"{text}, got {rate!r:.80}") from error
        chosen = callback.keep_best()
        results = [report(one, Trained(model), Trained(start), plan.roots["judging"]) for one in plan.environments]
    # The falling one would be pickled with its clock.
    model.learning_rate, model.lr_schedule = rate, FloatSchedule(rate)
    trained = Trained(model, _card(plan, chosen, results, callback.clock))
    if out is not None:
        path = trained.save(out)
        _draw_curve(trained.card, path.with_suffix(".png"))
        if interrupted is not None:
            raise KeyboardInterrupt(f"{path} holds the best checkpoint so far, resume={path} goes on") from interrupted
    said = [sentence for result in results for sentence in advice(algorithm, trained.card["kept"], result)]
    for sentence in dict.fromkeys(said):
        warnings.warn(sentence, UserWarning, stacklevel=2)
    return trained


def _best_of(plan: TrainingPlan, seeds: int, call: dict[str, Any]) -> Trained:
    """The best model of several seeds, on the same held-out episodes; it is written whenever one of them is ready."""
    held_out, hyperparameters = HeldOut(plan.environments, plan.roots["choosing"]), call.pop("hyperparameters")
    made: list[tuple[dict[str, float], Trained]] = []
    for seed in range(plan.seed, plan.seed + seeds):
        one = train(**{**call, "seed": seed, "seeds": 1, "out": None if made else call["out"]}, **hyperparameters)
        made.append(({"seed": seed, **held_out.row(held_out.returns(one))}, one))
        best = min(made, key=lambda pair: pair[0]["loss_over_reference"])[1]
        best.card["seeds"] = [row for row, _ in made]
        if call["out"] is not None:
            _draw_curve(best.card, best.save(call["out"]).with_suffix(".png"))
    return best


def _new_model(plan: TrainingPlan, clock: Clock) -> Any:
    """SB3's model with fresh weights, on its environment."""
    kind, policy = plan.row.classes()
    rate = plan.settings["learning_rate"]
    falling = rate if callable(rate) else clock.falling(float(rate))
    envs = plan.environment.vec_env()
    seed = plan.roots["learning"] % 2**32
    model = kind(policy, envs, seed=seed, device="cpu", **{**plan.settings, "learning_rate": falling})
    envs.seed(plan.roots["learning"])  # SB3 has given the environments its own seed, of 32 bits
    return model


def _card(plan: TrainingPlan, chosen: Mapping[str, object], results: list[Any], clock: Clock) -> dict[str, object]:
    """What the card says of a training; chosen: of its checkpoints. results: of the final comparisons."""
    settings = {name: getattr(value, "__name__", value) for name, value in plan.settings.items()}
    rules = [rules_of(one.task) for one in plan.environments]
    rows = [{"env_kwargs": one.kwargs, **result} for one, result in zip(plan.environments, results, strict=True)]
    return {
        "format": FORMAT,
        "call": plan.call,
        "algorithm": plan.algorithm,
        "env_id": plan.env_id,
        "env_kwargs": {**plan.env_kwargs, **plan.environment.forms},
        "task": {name: value for name, value in rules[0].items() if all(one.get(name) == value for one in rules)},
        "features": list(FEATURES),
        "seed": plan.seed,
        "roots": plan.roots,
        "hyperparameters": {**plan.own, **settings},
        "judged": {"deterministic": True, "pulls_per_action": 1},  # as `evaluate` plays it
        **chosen,
        **({"result": results[0]} if plan.mix is None else {"mix": plan.mix, "result": rows}),
        "versions": packages(torch, stable_baselines3),
        "seconds": round(clock.seconds(), 1),
        "cpu_seconds": round(time.process_time() - clock.processor_began, 1),
    }


def _draw_curve(card: Mapping[str, Any], path: Path) -> None:
    """Draw the mean return of each checkpoint on the held-out episodes, beside reference agents on other episodes."""
    from matplotlib.figure import Figure

    rows, results = card["checkpoints"], card["result"] if "mix" in card else [card["result"]]
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    steps = [row["steps"] for row in rows]
    axes.plot(steps, [row["return"] for row in rows], marker="o", color=COLOURS[0], label=card["algorithm"])
    (kept,) = {row["return"] for row in rows if row["steps"] == card["kept"]}
    axes.plot([card["kept"]], [kept], "o", markersize=11, fillstyle="none", color=COLOURS[0], label="kept")
    others = [name for name in results[0]["agents"] if name not in (card["algorithm"], UNTRAINED, DRAWN)]
    for i, name in enumerate(others, 1):
        level = float(np.mean([one["agents"][name]["return"] for one in results if name in one["agents"]]))
        axes.axhline(level, color=COLOURS[i], linestyle=LINES[i], label=name)
    axes.set(xlabel="pulls trained for", ylabel="mean return on held-out episodes")
    axes.legend()
    save(figure, path)


class Rollouts:
    """The rollouts of a model on several environments, with what SB3 asks of a rollout buffer when it learns."""

    def __init__(self, model: Any, environments: Sequence[TrainingEnvironment], root: int) -> None:
        self._model, self._random = model, np.random.default_rng(root)
        self._parts: list[Any] = []  # environments, buffers, and where a rollout goes on, as SB3 has it
        for i, envs in enumerate(one.vec_env() for one in environments):
            kind, forms = model.rollout_buffer_class, (envs.observation_space, envs.action_space)
            buffer = kind(model.n_steps, *forms, "cpu", model.gae_lambda, model.gamma, envs.num_envs)
            envs.seed(root + i)
            self._parts.append([envs, buffer, (envs.reset(), np.ones(envs.num_envs, np.bool_))])

    def collect(self, env: object, callback: Any, rollout_buffer: object, n_rollout_steps: int) -> bool:
        """Fill all rollouts, as SB3's `collect_rollouts`; returns whether the training goes on."""
        model = self._model
        for part in self._parts:
            envs, buffer, (model._last_obs, model._last_episode_starts) = part
            if not type(model).collect_rollouts(model, envs, callback, buffer, n_rollout_steps):
                return False
            part[2] = model._last_obs, model._last_episode_starts
        return True

    def get(self, batch_size: int | None = None) -> Iterator[Any]:
        """The minibatches of all rollouts; None: each rollout is one."""
        for name in ("values", "returns"):  # of which SB3 computes how much variance is explained
            setattr(self, name, np.concatenate([getattr(buffer, name).ravel() for _, buffer, _ in self._parts]))
        batches = [list(buffer.get(batch_size)) for _, buffer, _ in self._parts]
        for i in self._random.permutation(np.repeat(np.arange(len(batches)), list(map(len, batches)))):
            yield batches[i].pop(0)


@contextmanager
def mixed(model: Any, plan: TrainingPlan) -> Iterator[None]:
    """While this lasts, a model of PPO or A2C learns on the environments of the mix, if there is one."""
    if plan.mix is None:
        yield
        return
    buffer, model.rollout_buffer = model.rollout_buffer, Rollouts(model, plan.environments, plan.roots["learning"])
    model.collect_rollouts = model.rollout_buffer.collect
    try:
        yield
    finally:
        model.rollout_buffer = buffer
        del model.collect_rollouts
