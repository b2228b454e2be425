"""Checks of a problem and of a distribution of arms, for your own tests. All of this package pass them.

`check_problem("stranger.problems:FarGood")` and `check_distribution({"distribution": "triangular", "mode": [0.1,
0.9]})` raise an AssertionError that says what is wrong.
"""

from __future__ import annotations

import copy
import json
import math
import pickle
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from .envs.env import PureExplorationEnv
from .envs.vector import PureExplorationVectorEnv
from .instances.instance import Instance
from .instances.lookup import find
from .kernels.checks import Floats
from .problems import own

ROWS = 40  # instances on which a problem is asked
SAMPLES, SIGMAS = 20_000, 6.0  # of an arm; a mean is farther off than so many standard errors with probability 2e-9
BULK_PULLS, BULK = 4000, 50  # bulk pulls of an arm, and the samples of each
SPREAD = 0.15  # relative error of a standard deviation, at most


class Asked(NamedTuple):
    """A problem with an environment, and true means of instances of its arms."""

    env: PureExplorationEnv  # a single one
    problem: Any  # that asks
    kwargs: dict[str, Any]  # of the environment
    means: Floats  # (ROWS, K) or (ROWS, K, D)

    def fails(self, text: str) -> AssertionError:
        """The error that names the problem."""
        return AssertionError(f"the problem {self.problem.name!r} with {self.kwargs}: {text}")


def _close(one: Any, other: Any) -> bool:
    return bool(np.allclose(one, other, rtol=1e-6, atol=1e-9, equal_nan=True))


# --- problems ---------------------------------------------------------------------------------------------------------


def check_methods(asked: Asked) -> None:
    """Each method returns arrays of the right shape and type; routines return what the methods return."""
    try:
        n = ROWS - (asked.means.shape[1] == ROWS)  # not K, so that no shape fits by chance
        own.try_out(asked.problem, asked.means[:n], asked.env.task.D)
    except ValueError as error:
        raise asked.fails(str(error)) from error


def check_right_answer(asked: Asked) -> None:
    """The right answer is correct, and no answer has a higher score."""
    truth = asked.problem.truth(asked.means)
    right = np.asarray(asked.problem.right_answer(asked.means))
    found = asked.problem.verdict(right, truth)
    if not np.all(found["correct"]):
        i = int(np.argmin(found["correct"]))
        raise asked.fails(f"right_answer {right[i].astype(int)} is not correct for the means {asked.means[i]}")
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = rng.permuted(right, axis=1)
        score = np.asarray(asked.problem.verdict(other, truth)["score"])
        if (score > np.asarray(found["score"]) + 1e-9).any():
            i = int(np.argmax(score - found["score"]))
            raise asked.fails(
                f"the answer {other[i].astype(int)} has the score {score[i]}, and right_answer {right[i].astype(int)} "
                f"{found['score'][i]}, for the means {asked.means[i]}"
            )


def check_single_is_batch(asked: Asked) -> None:
    """Results for several instances at once equal those for each alone."""
    p, means = asked.problem, asked.means
    together = {name: np.asarray(getattr(p, name)(means)) for name in ("margin", "truth", "plug_in")}
    truth, answer = together["truth"], together["plug_in"]
    verdict = p.verdict(answer, truth)
    for i in range(len(means)):
        for name, found in together.items():
            alone = getattr(p, name)(means[i])
            if not _close(alone, found[i]):
                raise asked.fails(f"{name} of the means {means[i]} is {alone} alone, {found[i]} among others")
        single = p.verdict(answer[i : i + 1], truth[i : i + 1])
        for name, values in verdict.items():
            if not _close(single[name][0], values[i]):
                raise asked.fails(f"{name!r} in the verdict of episode {i} is {single[name][0]} alone, {values[i]}")


def check_relabelled_arms(asked: Asked) -> None:
    """Margins, answers and verdicts go along with the arms when these change their places, where they may."""
    if not asked.problem.any_order:
        return
    p, means, order = asked.problem, asked.means, np.random.default_rng(1).permutation(asked.means.shape[1])
    moved = means[:, order]
    for name in ("margin", "truth", "plug_in"):
        here, there = np.asarray(getattr(p, name)(means))[:, order], np.asarray(getattr(p, name)(moved))
        if not _close(here, there):
            i = int(np.argmax((~np.isclose(here, there, equal_nan=True)).any(axis=1)))
            raise asked.fails(f"{name} of the means {moved[i]} is {there[i]}, and in another order {here[i]}")
    answer = np.random.default_rng(2).permuted(np.asarray(p.plug_in(means)), axis=1)
    here, there = p.verdict(answer, p.truth(means)), p.verdict(answer[:, order], p.truth(moved))
    for name in here:
        if not _close(here[name], there[name]):
            raise asked.fails(f"{name!r} in the verdict depends on the order of the arms")


def check_ties(asked: Asked) -> None:
    """Arms that are all alike, and arms never pulled, have an answer of the right size."""
    p, alike = asked.problem, np.repeat(asked.means[:, :1], asked.means.shape[1], axis=1)
    unseen = np.full_like(alike, np.nan)
    for name, means in (("equal means", alike), ("arms never pulled", unseen)):
        answer = np.asarray(p.plug_in(means))
        if p.answer_size is not None and (answer.sum(axis=1) != p.answer_size).any():
            raise asked.fails(f"of {name} plug_in answers {answer.sum(axis=1)[0]} arms, and must {p.answer_size}")
        if p.answer_size is None and name == "arms never pulled" and answer.any():
            raise asked.fails("arms never pulled, whose means are NaN, must not be in the answer of plug_in")


def check_two_arms(asked: Asked) -> None:
    """Two arms."""
    if asked.env.task.D > 1:
        return
    kwargs = asked.kwargs | {"instance": {"sampler": {"arms": 2}}}
    try:
        env = PureExplorationEnv(**kwargs)
    except ValueError:
        return  # the problem refuses two arms
    env.reset(seed=0)
    while not any(env.step(env.action_space.sample())[2:4]):
        pass


def check_pickles(asked: Asked) -> None:
    """Copies and pickles of the problem are equal to it."""
    copies = {"a pickle": pickle.loads(pickle.dumps(asked.problem)), "a deep copy": copy.deepcopy(asked.problem)}
    for kind, other in copies.items():
        if other != asked.problem or not _close(other.margin(asked.means), asked.problem.margin(asked.means)):
            raise asked.fails(f"{kind} of it is another problem: {other!r}")


def check_environment(asked: Asked) -> None:
    """The environment passes Gymnasium's own checks; statistics are those of the samples that were shown."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(asked.env, skip_render_check=True)
    env, (observation, _) = asked.env, asked.env.reset(seed=3)
    K, shown = env.task.K, [list[Any]() for _ in range(env.task.K)]
    plain = PureExplorationEnv(**(asked.kwargs | {"batch": 1, "delay": 0}))  # gives the samples that come later
    plain.reset(seed=3)
    for t in range(3 * K):
        observation, _, terminated, truncated, info = env.step(t % K)
        shown[t % K].append((plain.step(t % K)[-1] if env.task.waits else info)["sample"])
        if terminated or truncated:
            break
    for k, asked_for in enumerate(shown):
        pending = observation["pending"][k] if env.task.waits else 0
        samples = asked_for[: len(asked_for) - pending]
        if samples and not (
            observation["pulls"][k] == len(samples)
            and _close(observation["mean"][k], np.mean(samples, axis=0))
            and np.allclose(observation["variance"][k], np.var(samples, axis=0), atol=1e-9)
        ):
            raise asked.fails(f"the statistics of arm {k} are not those of the samples {samples}")


PROBLEM_CHECKS: tuple[Callable[[Asked], None], ...] = (
    *(check_methods, check_right_answer, check_single_is_batch, check_relabelled_arms),
    *(check_ties, check_two_arms, check_pickles, check_environment),
)


def check_problem(problem: Any, **kwargs: Any) -> None:
    """Make all checks of a problem.

    Args:
        problem: its name, "module:Class", or the class.
        **kwargs: of the environment, the problem's parameters among them; without `budget`, it is 60.

    Raises:
        AssertionError: naming the first check that fails, the problem and what is wrong.
    """
    kwargs = {"budget": 60} | kwargs
    if isinstance(problem, type):
        problem = f"{problem.__module__}:{problem.__qualname__}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            env = PureExplorationEnv(problem, actions="arm", observation="statistics", **kwargs)
            many = PureExplorationVectorEnv(ROWS, problem=problem, observation="statistics", **kwargs)
            many.reset(seed=0)
    except (ValueError, TypeError) as error:
        raise AssertionError(f"no environment can be made of the problem {problem!r} with {kwargs}: {error}") from error
    asked = Asked(env, env.problem, kwargs | {"problem": problem}, np.array(many.true_means()))
    _make_all(PROBLEM_CHECKS, asked, f"the problem {env.problem.name!r}")


def _make_all(checks: Any, subject: object, named: str) -> None:
    """Make checks; each failure names its check."""
    for check in checks:
        try:
            check(subject)
        except AssertionError as error:
            raise AssertionError(f"{check.__name__}: {error}") from error
        except Exception as error:
            raise AssertionError(f"{check.__name__}: {named}: {type(error).__name__}: {error}") from error


# --- distributions ----------------------------------------------------------------------------------------------------


def _samples(instance: object, n: int, root: int = 0, times: int = 1, slots: int = 100) -> Floats:
    """Samples of each arm, (K, n) or (K, n, D): one by one, or the averages of bulk pulls."""
    arms = find(instance).arms
    kwargs: dict[str, Any] = {"problem": "BestArm", "max_pulls": 2**39, "actions": "full", "shuffle_arms": False}
    if arms.means.ndim > 1:
        kwargs |= {"problem": "Feasible", "A": [[1.0] * arms.means.shape[1]], "b": [0.0]}
    env = PureExplorationVectorEnv(slots, instance=arms, autoreset_mode=AutoresetMode.DISABLED, **kwargs)
    env.reset(seed=root)
    made = []
    for arm in range(env.task.K):
        answer = np.zeros((slots, env.task.K), np.int8)
        action = {"arm": np.full(slots, arm), "times": np.full(slots, times), "answer": answer}
        made.append(np.concatenate([np.array(env.step(action)[4]["sample"]) for _ in range(n // slots)]))
    return np.array(made)


def _compare(arms: Any, x: Floats, n: int) -> None:
    """Compare averages of n samples each, (K, count) or (K, count, D), with the means and variances of the arms."""
    for k in range(len(x)):
        sd, found = np.sqrt(arms.variances[k] / n), (x[k].mean(axis=0), x[k].std(axis=0))
        drawn = f"{x.shape[1]} averages of {n} samples each" if n > 1 else f"{x.shape[1]} samples"
        if (np.abs(found[0] - arms.means[k]) > SIGMAS * sd / math.sqrt(x.shape[1]) + 1e-9).any():
            raise AssertionError(f"arm {k} has the mean {arms.means[k]}, and {drawn} have {found[0]}")
        if (np.abs(found[1] - sd) > SPREAD * sd + 1e-9).any():
            raise AssertionError(f"{drawn} of arm {k} must have the standard deviation {sd}, and have {found[1]}")


def check_moments(instance: object) -> None:
    """Samples have the means and the standard deviations that the distribution declares."""
    _compare(find(instance).arms, _samples(instance, SAMPLES), 1)


def check_support(instance: object) -> None:
    """Samples lie in the support, and sigma is a sub-Gaussian scale, as far as samples show it."""
    arms, x = find(instance).arms, _samples(instance, SAMPLES, root=1)
    if arms.support is not None and (x.min() < arms.support[0] - 1e-9 or x.max() > arms.support[1] + 1e-9):
        raise AssertionError(f"the support is {arms.support}, and samples lie from {x.min()} to {x.max()}")
    if not arms.sigma * (1.0 + 1e-9) >= math.sqrt(arms.variances.max()):
        sd = arms.variances.max() ** 0.5
        raise AssertionError(f"sigma = {arms.sigma} is below the largest standard deviation {sd}")


def check_bulk_pulls(instance: object) -> None:
    """The average of a bulk pull of n samples has the mean of the arm, and 1 / n of its variance."""
    _compare(find(instance).arms, _samples(instance, BULK_PULLS, root=2, times=BULK), BULK)


def check_independence(instance: object) -> None:
    """Samples that follow each other, and those of two arms and of two episodes, do not depend on each other."""
    x = _samples(instance, SAMPLES, root=3)
    x = x.reshape(len(x), SAMPLES, -1)[..., 0]
    limit = SIGMAS / math.sqrt(SAMPLES / 2)
    pairs = {"two arms": (x[0], x[1]), "episodes": (x[0][:-1], x[0][1:]), "one episode": (x[0][:-100], x[0][100:])}
    for name, (one, other) in pairs.items():
        if one.std() > 0 and other.std() > 0 and abs(np.corrcoef(one, other)[0, 1]) > limit:
            raise AssertionError(f"samples of {name} are correlated: {np.corrcoef(one, other)[0, 1]:.3f}")


def check_json(instance: object) -> None:
    """`to_dict` is JSON, and means the same arms."""
    arms = find(instance).arms
    again = find(json.loads(json.dumps(arms.to_dict()))).arms
    if not (_close(again.means, arms.means) and _close(again.variances, arms.variances)):
        raise AssertionError(f"the form {arms.to_dict()!r:.200} means other arms: {again.means}, and not {arms.means}")


DISTRIBUTION_CHECKS = check_moments, check_support, check_bulk_pulls, check_independence, check_json


def check_distribution(instance: object) -> None:
    """Make all checks of the distributions of some arms.

    Args:
        instance: two arms or more, in any form that the keyword `instance` takes, but not a sampler.

    Raises:
        AssertionError: naming the first check that fails, and what is wrong.
    """
    try:
        source: object = find(instance)
    except (ValueError, TypeError) as error:
        raise AssertionError(f"no arms can be made of {instance!r:.200}: {error}") from error
    if not isinstance(source, Instance):
        raise AssertionError(f"check_distribution needs arms with true means, and not a sampler, got {instance!r:.200}")
    _make_all(DISTRIBUTION_CHECKS, instance, f"the arms {instance!r:.200}")
