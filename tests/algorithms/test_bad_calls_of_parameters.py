"""Bad parameters, tasks and observations of the agents: what each refusal must name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
from refusals import table

import agents
from bandit_envs import Task, TopK

EXACT = {"epsilon": 0.0, "criterion": "exact"}
TASKS: dict[str, Task] = {
    "TopK": Task("TopK", {"k": 2, "epsilon": 0.1, "criterion": "each"}, K=4, delta=0.1),
    "BestArm": Task("BestArm", EXACT, K=4, budget=100),
    "AllGood": Task("AllGood", {"epsilon": 0.5, "multiplicative": False, "slack": 0.0}, K=3, delta=0.1),
    "Threshold": Task("Threshold", {"threshold": 0.5, "tolerance": 0.0}, K=3, budget=10, delta=0.1),
}
THREE_ARMS = {"instance": {"law": "bernoulli", "mean": [0.9, 0.2, 0.6]}, "budget": 30}


def env(problem: str, **rules: Any) -> Any:
    return gym.make(f"bandit_envs/{problem}-v0", **rules)


def seen(E: int = 1, K: int = 3) -> dict[str, Any]:
    """Statistics of a batch of episodes."""
    ones = np.ones((E, K))
    rest = {"remaining": np.full((E, 1), 7), "public_seed": np.ones((E, 1), np.int64)}
    return {"pulls": ones.astype(np.int64), "total": ones / 2, "mean": ones / 2, "variance": 0 * ones, **rest}


def made(name: Any, problem: str, *words: Any, **changes: Any) -> tuple[Any, ...]:
    """A row: an agent for a task, with changes of the task, epsilon among them."""
    given = TASKS[problem]
    if "epsilon" in changes:
        given = given.replace(parameters=given.parameters | {"epsilon": changes.pop("epsilon")})
    return (lambda: agents.make(name, given.replace(**changes)), *words)


def told(name: str, problem: str, words: tuple[Any, ...], **parameters: Any) -> tuple[Any, ...]:
    """A row: parameters that are no text."""
    return (lambda: agents.make(name, TASKS[problem], **parameters), *words)


def remembered(name: str, problem: str, change: Callable[[dict[str, Any]], Any], *words: Any) -> tuple[Any, ...]:
    """A row: observations that do not fit the agent's memory of one episode."""

    def call() -> None:
        agent = agents.make(name, TASKS[problem].replace(K=3))
        state = agent.begin_anew(seen()) if name in IN_ROUNDS else agent.predict(seen())[1]
        agent.predict(change(seen()), state)

    return call, *words


def certified(*words: Any, k: int = 1, **how: Any) -> tuple[Any, ...]:
    return (lambda: TopK(k=k).certificate([1, 1], [0.0, 1.0], [0.0, 0.0], **how), *words)


def with_mean(shape: tuple[int, ...]) -> Callable[[dict[str, Any]], Any]:
    return lambda observation: observation | {"mean": np.zeros(shape)}


test_certificates = table(
    {
        "two arms, k = 2": certified("K > 2", "(2,)", k=2),
        "no width": certified("width", 0, width=0),
        "a range below 0": certified("bernstein_range", -1, bernstein_range=-1),
        "other bounds": certified("bounds", "tightest", "hoeffding", "bernstein", bounds="bernstein"),
        "another cutoff": certified("cutoff", "standard-error", "best", "middle", cutoff="middle"),
    }
)

test_adaptive_top_k = table(
    {
        "range 0": made("adapt(bernstein_range=0)", "TopK", "bernstein_range", "1e-100", 0),
        "another cutoff": made("pi3(cutoff='middle')", "TopK", "cutoff", "standard-error", "best", "middle"),
        "a range without Bernstein": made("pi3(bernstein_range=1)", "TopK", "pi3", "bernstein_range"),
        "delta 0": made("pi1(delta=0)", "TopK", "delta", "(0, 1)", 0),
        "a cap of pi1": made("pi1(cap=True)", "TopK", "pi1", "cap", "delta", "width", "seed"),
        "width 0": made("pi2(width=0)", "TopK", "width", 0),
        "a number for a cap": made("pi2(cap=3)", "TopK", "cap", True, False, 3),
        "a cap without a tolerance": made("adapt(cap=True)", "TopK", "cap=True", "epsilon > 0", epsilon=0.0),
        "seed below 0": made("adapt(seed=-1)", "TopK", "seed", 4294967295, -1),
        "n0 1": made("ocba-m(n0=1)", "TopK", "n0", 2, 1),
        "Delta 0": made("ocba-m(Delta=0)", "TopK", "Delta", 1, 0),
        "sigma below 0": made("clucb(sigma=-1)", "TopK", "sigma", -1),
        "another threshold": made("kl-lucb(threshold='2017')", "TopK", "threshold", 2013, "lil", 2017),
        "other constants": made("lil-ucb(constants='best')", "BestArm", "constants", "theory", "heuristic", "best"),
        "k arms for lil-ucb": made("lil-ucb", "TopK", "lil-ucb", "BestArm", "TopK"),
        "a threshold for adapt": made("adapt", "Threshold", "adapt", "TopK", "BestArm", "Threshold"),
    }
)

test_top_k_in_rounds = table(
    {
        **{f"no delta, {name}": made(name, "TopK", name, "delta", delta=None) for name in ("direct", "halving")},
        "no delta, adaptive-top-k": made("adaptive-top-k", "TopK", "adaptive-top-k", "delta", delta=None),
        "delta 1": made("incremental(delta=1)", "TopK", "delta", "(0, 1)", 1),
        "other constants": made("adaptive-top-k(constants='best')", "TopK", "constants", "theory", "practical", "best"),
        "a delta unused": made("adaptive-top-k(constants='practical', delta=.1)", "TopK", "practical", "delta", 0.1),
        "sigma 0": made("adaptive-top-k(sigma=0)", "TopK", "sigma", 0),
        **{
            f"{title}, {name}": made(name, "TopK", name, *words, epsilon=epsilon)
            for name in ("direct", "incremental", "halving", "improved-top-k")
            for title, epsilon, words in (
                ("epsilon 0", 0.0, ("epsilon > 0", "TopK")),
                ("too many pulls", 1e-9, ("5e-10" if name == "improved-top-k" else "1e-09", "pulls")),
            )
        },
        "reuse 1": made("improved-top-k(reuse=1)", "TopK", "reuse", True, False, 1),
        "no budget": made("opt-mai", "TopK", "opt-mai", "budget"),
        "reuse 'yes'": made("opt-mai(reuse='yes')", "TopK", "reuse", "yes", budget=100),
        "no rounds": made("racing(rounds=0)", "TopK", "rounds", 1, 0),
        "other widths": made("racing(widths='lil')", "TopK", "widths", "hoeffding", "lil"),
        "width below 0": made("racing(width=-1)", "TopK", "width", -1),
        "beyond None": made("racing(beyond=None)", "TopK", "beyond", True, False, None),
        "a threshold": made("direct", "Threshold", "direct", "TopK", "BestArm", "Threshold"),
    }
)

test_classics = table(
    {
        "no budget": made("successive-rejects", "BestArm", "budget > K = 4", None, budget=None, delta=0.1),
        "a budget of K": made("successive-rejects", "BestArm", "budget > K = 4", 4, budget=4),
        "too short a budget": made("sequential-halving", "BestArm", "budget", "K ceil(log2 K)", 8, 7, budget=7),
        "reuse 1": made("sequential-halving(reuse=1)", "BestArm", "reuse", True, False, 1),
        "no truth": made("ugape", "BestArm", "ugape", "budget", "H="),
        "a budget of K for ugape": made("ugape(H=5)", "BestArm", "ugape", "budget > K = 4", 4, budget=4),
        "a 0": made("ugape(a=0)", "BestArm", "a", 0),
        "scale below 0": made("ugape(scale=-1, H=3)", "BestArm", "scale", -1),
        "neither delta nor a budget": made("ugape", "BestArm", "ugape", "delta", budget=None),
        "equal arms": (
            lambda: agents.make("ugape", env("BestArm", instance={"law": "bernoulli", "mean": [0.5, 0.5]}, budget=50)),
            *("ugape", "H", "inf"),
        ),
        "k arms for halving": made("sequential-halving", "TopK", "sequential-halving", "BestArm", "TopK"),
        "other sampling": made("hdoc(sampling='apt')", "Threshold", "sampling", "hdoc", "lucb-g", "apt-g", "apt"),
        "hdoc without delta": made("hdoc", "Threshold", "hdoc", "delta", delta=None, budget=None, max_pulls=99),
    }
)

test_all_good = table(
    {
        "delta 0": made("st2(delta=0)", "AllGood", "delta", "(0, 1)", 0),
        "delta 1": made("st2(delta=1.0)", "AllGood", "delta", "(0, 1)", 1.0),
        **{f"c, {name}": made(f"{name}(c=0)", "AllGood", "c", 0) for name in ("st2", "two-step", "east", "fareast")},
        "c nan": told("ucb", "AllGood", ("c", "nan"), c=math.nan),
        **{
            f"sigma, {name}": made(f"{name}(sigma=-1)", "AllGood", "sigma", -1)
            for name in ("st2", "east", "uniform-elimination")
        },
        **{
            f"other bounds, {name}": made(f"{name}(bounds='best')", "AllGood", "bounds", "current", "running", "best")
            for name in ("st2", "two-step", "ucb")
        },
        "k of ucb": made("ucb(k=1)", "AllGood", "ucb", "k", "delta", "bounds", "sigma"),
        "threshold inf": told("apt-oracle", "AllGood", ("threshold", "inf"), threshold=math.inf),
        "no k": made("lucb", "AllGood", "lucb", "AllGood", "k="),
        "k 0": made("lucb(k=0)", "AllGood", "k", "[1, 2]", 0),
        "k = K": made("lucb(k=3)", "AllGood", "k", "[1, 2]", 3),
        "other widths": made("lucb(k=1, widths='wide')", "AllGood", "widths", "hoeffding", "lil", "wide"),
        "epsilon below 0": made("lucb(k=1, epsilon=-1)", "AllGood", "epsilon", -1),
        **{
            f"no delta, {name}": made(name, "AllGood", "delta", delta=None)
            for name in ("east", "uniform-elimination", "fareast")
        },
        "finder": made("fareast(finder='lucb1')", "AllGood", "finder", "lucb1"),
        "kappa": made("fareast(kappa=1)", "AllGood", "kappa", 1),
        "tau": made("fareast(tau=0)", "AllGood", "tau", 0),
        "delta of fareast": made("fareast(delta=0)", "AllGood", "delta", 0),
        "no epsilon": made("median-elimination", "BestArm", "epsilon > 0", budget=None, delta=0.1),
        **{
            f"a threshold, {name}": made(name, "Threshold", name, *solved, "Threshold")
            for name, solved in {"st2": ["AllGood"], "ucb": ["AllGood", "BestArm"], "lucb": ["TopK", "AllGood"]}.items()
        },
    }
)

test_thresholding = table(
    {
        "almost a name": made("apl", "Threshold", "apl", "apt"),
        "_ for -": made("opt_kg", "Threshold", "opt_kg", "opt-kg"),
        "no name": made("", "Threshold", "unknown agent"),
        **{
            f"{text} is no call": made(text, "Threshold", text)
            for text in ("apt(0.05)", "apt(tolerance=", "apt(tolerance=x)")
        },
        **{f"{name!r} is no text": made(name, "Threshold", "name", "text") for name in (3, None)},
        "uniform takes none": made("uniform(seed=1)", "Threshold", "uniform", "seed", "none"),
        "not lsa's": made("lsa(tolerance=.1)", "Threshold", "lsa", "tolerance", "alpha"),
        "not ucbe's": made("ucbe(c=1)", "Threshold", "ucbe", "c", "b", "scale", "H", "a"),
        **{
            f"tolerance {value}": told("apt", "Threshold", ("tolerance", value), tolerance=value)
            for value in (-0.1, math.nan, "much")
        },
        "alpha 0": made("lsa(alpha=0)", "Threshold", "alpha", 0),
        "alpha inf": told("lsa", "Threshold", ("alpha", "inf"), alpha=math.inf),
        "seed below 0": made("random(seed=-1)", "Threshold", "seed", 4294967295, -1),
        "seed 1/2": made("random(seed=.5)", "Threshold", "seed", 0.5),
        "H 0": made("ucbe(H=0)", "Threshold", "H", 0),
        "H nan": told("ucbe", "Threshold", ("H", "nan"), H=math.nan),
        "a below 0": made("ucbe(a=-1)", "Threshold", "a", -1),
        "scale 0": made("ucbe(H=1, scale=0)", "Threshold", "scale", 0),
        "b inf": told("ucbe", "Threshold", ("b", "inf"), H=1, b=math.inf),
        **{f"prior {x}": made(f"opt-kg(prior={x})", "Threshold", "prior") for x in ("1", "(1, 2, 3)", "(0, 1)")},
        "k arms for lsa": (lambda: agents.make("lsa", env("TopK")), "lsa", "Threshold", "Feasible", "TopK"),
        "opt-kg for polyhedra": (lambda: agents.make("opt-kg", env("Feasible")), "opt-kg", "Threshold", "Feasible"),
        "opt-kg for Gaussian arms": made("opt-kg", "Threshold", "opt-kg", "gaussian", law="gaussian"),
        **{
            f"opt-kg, threshold {x}": (
                lambda x=x: agents.make("opt-kg", env("Threshold", threshold=x)),
                *("threshold", "(0, 1)", x),
            )
            for x in (0, 1)
        },
        "another observation": (
            lambda: agents.make("lsa", env("Threshold", observation="features", **THREE_ARMS)),
            *("lsa", "statistics", "features"),
        ),
        **{
            f"no environment: {source!r:.20}": (lambda source=source: agents.make("lsa", source), "bandit_envs")
            for source in (None, "tao2019-1", gym.make("CartPole-v1"))
        },
        "ucbe's budget": (
            lambda: agents.make("ucbe", env("Threshold", **THREE_ARMS | {"budget": 3})),
            *("ucbe", "budget > K = 3", 3),
        ),
        "ucbe without a budget": made("ucbe(H=1)", "Threshold", "budget > K = 3", None, budget=None, max_pulls=9),
        **{
            f"an arm on the boundary, {name}": (
                lambda name=name: agents.make(name, env("Threshold", threshold=0.6, **THREE_ARMS)),
                *(name, "boundary"),
            )
            for name in ("ucbe", "static", "offline")
        },
        **{
            f"two margins, {name}": made(f"{name}(margins=[1, 2])", "Threshold", "margins", 3)
            for name in ("static", "offline")
        },
        "a margin below 0": made("static(margins=[1, 2, -1])", "Threshold", "margins", -1),
        "another order": (
            lambda: agents.evaluate(
                agents.make("static", env("Threshold", **THREE_ARMS)),
                "bandit_envs/Threshold-v0",
                episodes=2,
                env_kwargs=THREE_ARMS | {"shuffle_arms": True},
            ),
            *("static", "same order"),
        ),
        **{f"sar, budget {T}": made("sar", "Threshold", "sar", "budget > K = 3", T, budget=T) for T in (None, 1, 3)},
        "sar takes none": made("sar(tolerance=1)", "Threshold", "sar", "tolerance", "none"),
        "sar for good arms": made("md-sar", "AllGood", "sar", "Threshold", "Feasible", "AllGood"),
        "look-ahead needs an end": made("look-ahead", "Threshold", "look-ahead", "budget", "max_pulls", budget=None),
        "look-ahead, coordinates": (
            lambda: agents.make(
                "look-ahead", Task("Feasible", {"A": [[1, 1]], "b": [1]}, K=3, D=2, budget=9, pull="coordinate")
            ),
            "coordinates",
        ),
        "an unknown problem": (lambda: agents.names("Treshold"), "Treshold", "Threshold"),
    }
)

SINGLE = {"lsa": "Threshold", "opt-kg": "Threshold"}
KEPT = SINGLE | {"adapt": "TopK", "clucb": "TopK", "st2": "AllGood", "ucb": "AllGood"}
IN_ROUNDS = {"direct": "TopK", "racing": "TopK", "east": "AllGood", "fareast": "AllGood"}

test_observations = table(
    {
        **{
            f"no statistics, {name}: {bad!r:.20}": (
                lambda name=name, bad=bad: agents.make(name, TASKS["Threshold"]).predict(bad),
                "statistics",
            )
            for name in SINGLE
            for bad in (np.zeros(24, np.float32), {}, {"pulls": [0, 0, 0]}, None)
        },
        "two arms": (lambda: agents.make("lsa", TASKS["Threshold"]).predict(seen(K=2)), 3, "arms"),
        **{
            f"{key} is missing": (
                lambda key=key: agents.make("lsa", TASKS["Threshold"]).predict(
                    {other: value for other, value in seen().items() if other != key}
                ),
                *("statistics", "dict" if key == "pulls" else key),
            )
            for key in seen()
        },
        **{
            f"another batch, {name}": remembered(name, problem, lambda _: seen(2), "memory", 1)
            for name, problem in (KEPT | IN_ROUNDS).items()
            if name != "opt-kg"
        },
        **{
            f"a mean of two dimensions, {name}": remembered(
                name, problem, with_mean((1, 3, 2)), "mean", "(1, 3)", "(1, 3, 2)"
            )
            for name, problem in KEPT.items()
            if name != "opt-kg"
        },
        "a total of two arms": remembered(
            "east", "AllGood", lambda now: now | {"total": np.zeros((1, 2))}, "total", "(1, 3)", "(1, 2)"
        ),
        **{
            f"{key} of other episodes": remembered(
                "adapt", "TopK", lambda now, key=key: now | {key: np.zeros((2, now[key].shape[1]))}, key
            )
            for key in ("variance", "public_seed")
        },
        "the memory of other arms": (
            lambda: agents.make("adapt", TASKS["TopK"].replace(K=3)).predict(
                seen(), agents.make("adapt", TASKS["TopK"]).predict(seen(K=4))[1]
            ),
            *("K=3", "K=4"),
        ),
    }
)
