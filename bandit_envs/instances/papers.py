"""The instances of the papers, and an example, by name. Each brings its source's values as defaults of the problem."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..kernels import rng
from ..kernels.checks import Floats, choice, flag, integer, number
from . import datasets, polyhedra
from .arms import Arms, Bernoulli, Categorical, FlowLine, Form, Gaussian, Resampled, Shared, Uniform, from_dict
from .instance import OF_TABLES, Instance, NamedInstance, Sampler
from .tables import measurements, rows_of


def _instance(arms: Arms, name: str, defaults: dict[str, dict[str, Any]]) -> Instance:
    """An instance whose arms keep their order, on all problems of which its defaults do not say otherwise."""
    return Instance(arms, name, {"": {"shuffle_arms": False}} | defaults)


def _captions(contest: int, /, folder: str | None = None, every: int = 1) -> Instance:
    """The captions of a contest, or each `every`-th; Mason et al. 2020 look for those nearly as good as the best."""
    defaults = {"AllGood": {"epsilon": 0.1, "multiplicative": True, "delta": 0.1}}
    counts = datasets.captions(contest, folder).counts[:: integer("every", every, 1)]
    name = f"captions-{contest}" + (f"(every={every})" if every > 1 else "")
    return _instance(Categorical([1, 2, 3], counts), name, defaults)


def _mason_3a(n: int = 25) -> Instance:
    """Figure 3, left: means 2.4, 2.3, ..., 0 in turn; epsilon .75 makes alpha = beta = .05."""
    means = 2.4 - 0.1 * (np.arange(integer("n", n, 2, rng.ARMS_LIMIT)) % 25)
    return _instance(Gaussian(means), f"mason2020-3a(n={n})", {"AllGood": {"epsilon": 0.75, "delta": 0.1}})


def _mason_3b(n: int = 20) -> Instance:
    """Figure 3, right: n - 1 arms at 1 and one at 0; epsilon .99 makes alpha = .99, beta = .01."""
    means = np.append(np.ones(integer("n", n, 2, rng.ARMS_LIMIT) - 1), 0.0)
    return _instance(Gaussian(means), f"mason2020-3b(n={n})", {"AllGood": {"epsilon": 0.99, "delta": 0.01}})


def _kinase(folder: str | None = None) -> Instance:
    """The inhibitors of ACVRL1, of which Mason et al. 2020 look for those nearly as active as the most active one."""
    defaults = {"AllGood": {"epsilon": 0.8, "multiplicative": True, "delta": 0.001}}
    return _instance(Gaussian(datasets.inhibitors("ACVRL1", folder)), "kinase-acvrl1", defaults)


def _feasible(arms: Arms, name: str, rows: polyhedra.Rows, budget: int, **more: Any) -> Instance:
    """Arms, and the polyhedron that they are judged by."""
    return _instance(arms, name, {"Feasible": {"A": rows[0], "b": rows[1], "budget": budget, **more}})


def _groups(*groups: tuple[int, ArrayLike]) -> Gaussian:
    """20 arms with variance 1/4 in 5 dimensions: pairs of a number of arms and their mean, or each coordinate of it."""
    return Gaussian(np.concatenate([np.tile(np.broadcast_to(mean, 5), (n, 1)) for n, mean in groups]), 0.5)


def _katz_cube(experiment: int, /, tolerance: float | None = None) -> Instance:
    """Experiments 1 to 3, on the cube [0, 1]^5. The tolerance is .075, in experiment 2 it is 0."""
    steps = [0.05 * i for i in range(4)]
    arms = {
        1: _groups((2, 0.8), (2, 0.9), (2, 1.1), (2, 1.2), (1, 0.975), (1, 1.025), (10, 0.3)),
        2: _groups((2, 0.8), (2, 0.9), (2, 1.1), (2, 1.2), (1, 0.95), (1, 1.05), (10, 0.3)),
        3: _groups(
            *((1, 0.75 + s) for s in steps), (1, 0.975), (1, 1.025), *((1, 1.25 - s) for s in steps), (10, 1.15)
        ),
    }[experiment]
    tolerance = (0.0 if experiment == 2 else 0.075) if tolerance is None else tolerance
    return _feasible(arms, f"katz-samuels2018-{experiment}", polyhedra.cube(5), 2000, tolerance=tolerance)


def _katz_simplex(normalise: bool = False) -> Instance:
    """Experiment 4, on {x >= 0, sum x <= 2}, as written; `normalise=True`: rows of norm 1, tolerance .1 / sqrt(5).

    With rows of norm 1 and the tolerance .1 its good arms would be irrelevant.
    """
    normalise = flag("normalise", normalise)
    arms = _groups((5, 0.2), (5, 1.85 * 0.2), (5, 2.25 * 0.2), (5, 1.95 * 0.2))
    tolerance = 0.1 / math.sqrt(5) if normalise else 0.1
    rows = polyhedra.simplex(5, 2.0)
    return _feasible(arms, "katz-samuels2018-4", rows, 2000, tolerance=tolerance, normalise=normalise)


def _katz_ordered(normalise: bool = True) -> Instance:
    """Experiment 5, on {x_1 <= .. <= x_5}, with rows of norm 1; `normalise=False`: as written, x_i - x_{i+1} <= 0.

    As written, the distances of arms within the polyhedron are sqrt(2) times as large; the tolerance .1 stays.
    """
    means = (
        [0, 0.2, 0.4, 0.6, 0.8],
        [0, 0.15, 0.3, 0.45, 0.6],
        [0, 0.2, 0.15, 0.6, 0.8],
        [0, 0.2, 0.05, 0.6, 0.8],
        [0, 0.2, 0.4, 0.2, 0],
    )
    arms = _groups(*((4, mean) for mean in means))
    rows, normalise = polyhedra.ordered(5), flag("normalise", normalise)
    return _feasible(arms, "katz-samuels2018-5", rows, 2000, tolerance=0.1, normalise=normalise)


def _crowdsourcing(gaussian: bool | float | str = False, folder: str | None = None) -> Instance:
    """Section 7.3: workers at most as far from the experts as the average worker, on each of 7 scales.

    `gaussian=True`: the simulation of section J, independent normal coordinates with each worker's means and standard
    deviations; a number: with this standard deviation for all; "pooled": with one for each scale, that of all workers'
    deviations from their own means. The paper does not say which.
    """
    data = Resampled(datasets.emotions(folder))
    arms: Arms = data
    if gaussian == "pooled":
        arms = Gaussian(data.means, np.broadcast_to(np.sqrt(data.variances.mean(axis=0)), data.means.shape))
    elif isinstance(gaussian, float):
        arms = Gaussian(data.means, number("gaussian", gaussian, 0, above=True))
    elif flag("gaussian", gaussian):
        arms = Gaussian(data.means, np.sqrt(data.variances))
    return _feasible(arms, "crowdsourcing", polyhedra.at_most(data.means.mean(axis=0)), 4000, tolerance=0.02)


def _synthetic(p: float) -> Callable[[int, int], Floats]:
    """Means that crowd at the boundary 1 - K/n for p > 1, and keep away from it for p < 1; p = 1 gives 1 - i/n."""

    def profile(n: int, K: int) -> Floats:
        best, rest = np.arange(1, K + 1), np.arange(1, n - K + 1)
        boundary = (n - K) / n
        above = boundary + K / n * (1 - best / K) ** p
        below = boundary * (1 - (rest / (n - K)) ** p)
        return np.concatenate([above, below])

    return profile


PROFILES: dict[str, Callable[[int, int], Floats]] = {
    "two-group": lambda n, K: np.where(np.arange(n) < K, 0.7, 0.3),
    "uniform": lambda n, K: np.arange(n - 1, -1, -1) / n,  # 1 - i/n, i = 1 .. n
    "synthetic-0.5": _synthetic(0.5),
    "synthetic-6": _synthetic(6),
}


def _chen(profile: str, /, n: int = 1000, K: int = 100) -> Instance:
    """An instance of Chen et al. 2017: n Bernoulli arms, the best first, of which K are wanted.

    Ties go to the lowest arm, and so, in this order, to the better one: the arms are shuffled.
    """
    n = integer("n", n, 2, rng.ARMS_LIMIT)
    K = integer("K", K, 1, n - 1)
    shuffled: dict[str, Any] = {"shuffle_arms": True}
    wanted = {"k": K, "epsilon": 0.01, "criterion": "aggregate", "delta": 0.01}
    defaults = {"TopK": wanted | shuffled, "BestArm": shuffled}
    return _instance(Bernoulli(PROFILES[profile](n, K)), f"chen2017-{profile}(n={n}, K={K})", defaults)


def _stone(
    name: str, printed: int, k: int, epsilon: float, /, seed: int = 0, n: int | None = None, sd: float = 1.0
) -> Instance:
    """n arms with means drawn once from U[0, 1] and deviation `sd`; of `printed`, the paper's number, k are wanted."""
    n = printed if n is None else integer("n", n, 4, rng.ARMS_LIMIT)
    sd, word = number("sd", sd, 0, above=True), np.zeros(1, np.uint64)
    u = rng.uniforms(rng.root_key(rng.root_number(seed))[:, None], word, n, stream=rng.INSTANCE)
    arms = Gaussian(u[0, :, 0], sd) if name == "-gaussian" else Uniform(u[0, :, 0], sd * np.sqrt(12.0))
    defaults = {"TopK": {"k": n * k // printed, "epsilon": epsilon, "criterion": "each", "delta": 0.15}}
    others = f", n={n}" * (n != printed) + f", sd={sd:g}" * (sd != 1)
    return _instance(arms, f"kalyanakrishnan2010{name}(seed={seed}{others})", defaults)


def _flow_lines(name: str, file: str, warm_up: int, /, folder: str | None = None) -> Instance:
    """All lines whose rates have one sum, and whose places do; the file has their throughput by the Markov chain."""
    table = np.loadtxt(datasets.fetched(file, folder), delimiter=",", skiprows=1)
    return _instance(FlowLine(table, warm_up), name, {})


def _selection(
    name: str, /, K: int = 100, difference: float = 0.5, sd: float = 1.0, last_sd: float | None = None
) -> Instance:
    """Gaussian arms, the best first: the others `difference` below it, or each below the one before.

    Standard deviations go from `sd` of the best arm to `last_sd` (None: the same) of the last one in equal steps.
    """
    K, difference = integer("K", K, 2, rng.ARMS_LIMIT), number("difference", difference, 0, above=True)
    sd = number("sd", sd, 0, above=True)
    last = sd if last_sd is None else number("last_sd", last_sd, 0, above=True)
    steps, varied = np.arange(K), "" if last_sd is None else f", last_sd={last:g}"
    means = 0.0 - difference * (np.minimum(steps, 1) if name == "slippage" else steps)
    defaults: dict[str, dict[str, Any]] = {"BestArm": {"shuffle_arms": True}, "TopK": {"shuffle_arms": True}}
    arms = Gaussian(means, np.linspace(sd, last, K))
    return _instance(arms, f"{name}(K={K}, difference={difference:g}, sd={sd:g}{varied})", defaults)


def _ladder(K: int = 10, alpha: float = 0.3, sd: float = 0.5) -> Instance:
    """Gaussian arms with means 1 - (i / (K - 1))^alpha, i = 0 .. K - 1, the best first."""
    K = integer("K", K, 2, rng.ARMS_LIMIT)
    alpha, sd = number("alpha", alpha, 0, above=True), number("sd", sd, 0, above=True)
    means = 1.0 - (np.arange(K) / (K - 1)) ** alpha
    defaults: dict[str, dict[str, Any]] = {"BestArm": {"shuffle_arms": True}, "TopK": {"shuffle_arms": True}}
    return _instance(Gaussian(means, sd), f"jamieson2014-ladder(K={K}, alpha={alpha:g}, sd={sd:g})", defaults)


def _banners(arms: int = 20) -> Sampler:
    """Banners with click rates uniform on [0, .1], drawn afresh in each episode: which have 5 %, from 50 views each?"""
    made = Sampler(arms=arms, mean={"uniform": [0.0, 0.1]})
    made.defaults = {"Threshold": {"threshold": 0.05, "budget": 50 * made.K}}
    return made


def _real_prompts(arms: int = 10, split: str = "train", folder: str | None = None) -> Form:
    """Paraphrases of an instruction, others in each episode; each model has a pool for each task of the split."""
    choice("split", split, ("train", "test"))
    paths = [datasets.fetched(name, folder) for name, file in datasets.FILES.items() if file.split == split]
    pools = [pool for path in paths for pool in rows_of(measurements(path, index=0))]
    return {"pools": {"pools": pools, "arms": arms}}


def _scores(name: str, support: Any, columns: dict[str, Any], unit: float, /, folder: str | None = None) -> Instance:
    """The arms of a public table of scores, in units of `unit`: one score a cell, in rows that all arms share."""
    files = next(rows[name]["files"] for rows in _TABLE.values() if name in rows)
    scores, names = datasets.score_table(files[0], folder, **columns)
    return Instance(Shared(scores / unit, support), name, OF_TABLES, names)


def _soybean(folder: str | None = None) -> Instance:
    """Varieties of soybean: a pull is one of 8 environments. Which keep the limits (lowest, highest) of their traits?

    Traits are less their means, in units of their standard deviations, over all 464 rows; limits are in the file's.
    """
    limits, path = _TABLE["Feasible"]["soybean"]["limits"], datasets.fetched("agridat/australia.soybean.csv", folder)
    table = measurements(path, arm="gen", value=list(limits), item="env")
    rows = np.array(rows_of(table))
    centre, unit = rows.mean(axis=(0, 1)), rows.std(axis=(0, 1))
    ends = (np.array(list(limits.values())).T - centre) / unit
    A, b = np.concatenate([-np.eye(6), np.eye(6)]) + 0.0, np.concatenate([-ends[0], ends[1]])
    question = {"A": A[np.isfinite(b)].tolist(), "b": b[np.isfinite(b)].tolist(), "tolerance": 0.05, "budget": 2000}
    arms, defaults = Resampled(list((rows - centre) / unit)), OF_TABLES | {"Feasible": question}
    return Instance(arms, "soybean", defaults, tuple(table.arms))


def _named(name: str, problem: str, row: dict[str, Any]) -> NamedInstance:
    """What a row of `papers.toml` stands for."""

    def fixed() -> Instance:
        return _instance(from_dict(row["arms"]), name, row["defaults"])

    table = ["scores", name, [0.0, 1.0], {}, 1.0] if name.startswith("models-") else [name.replace("-", "_")]
    make, *given = row.get("make", table)
    build = fixed if "arms" in row else partial(globals()[f"_{make}"], *given)
    wanted = tuple(row.get("files", ()))
    files = [file for file in datasets.FILES if file.startswith(wanted)] or wanted
    ships = all((datasets.SHIPPED / file).is_file() for file in files)
    return NamedInstance(build, problem, row["source"], bool(files), ships)


_TABLE = tomllib.loads(Path(__file__).with_name("papers.toml").read_text(encoding="utf-8"))
PAPERS = {name: _named(name, problem, row) for problem, rows in _TABLE.items() for name, row in rows.items()}
