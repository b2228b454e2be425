"""`evaluate`: from its arguments to an evaluation.

1. All arguments are checked, and each agent with its environment; each becomes a `Plan`, one for each budget or delta.
2. The episodes of the plans are cut into blocks of consecutive episodes.
3. The blocks are run, here or wherever joblib runs them, and each is kept as soon as it is made, in memory or in a
   folder. With `precision` this may end early.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from bandit_envs.kernels import EPISODES_LIMIT, choice, flag, integer, root_number

from ..core.forms import warn_of_stops
from ..registry import recipes_of
from . import storage
from .blocks import Block, grouped, part_of, spans
from .environment import environment_id, plain
from .execution import Call, Watch, WorkerDiedError, cores, jobs_number, outcomes
from .identity import identity_of, packages
from .lockstep import Played, play
from .plan import Plan, error_probabilities, keywords, plans_of, pull_numbers
from .precision import Ending, precision_of
from .progress import Progress, compilation_noted, reported_in_lines, shown
from .result import Evaluation
from .storage import Store, WriteError


def evaluate(
    agents: object,
    env_id: str,
    *,
    episodes: int,
    seed: int = 0,
    at: Sequence[int] | None = None,
    budgets: Sequence[int] | None = None,
    deltas: Sequence[float] | None = None,
    env_kwargs: Mapping[str, object] | None = None,
    batch: int | None = None,
    jobs: int = 1,
    out: str | Path | None = None,
    shard: str | tuple[int, int] | None = None,
    rows: str = "all",
    precision: object = None,
    deterministic: bool = True,
    progress: bool | None = None,
    trust: bool = False,
) -> Evaluation:
    """Run agents on the same episodes of an environment and score their answers.

    Args:
        agents: names ("lsa", "apt(tolerance=0.05)", "module:Class(alpha=2)") and paths of models ("m.safetensors"),
            one or a list; or a class of agents, a function that makes an agent from a task, an `Agent`, an SB3 model,
            or a dict {label: one of these}. Of an `Agent` each environment gets one of its own, with its parameters.
        env_id: a registered environment, e.g. "bandit_envs/Threshold-v0"; the name of its problem, "Threshold"; or a
            problem of one's own, "module:Class".
        episodes: how many, from episode 0 of root `seed` on. seed: the same one gives the same numbers.
        at: numbers of pulls. Each episode has a row for each of them: its answer at the last decision with at most so
            many pulls, or its final answer if it ended before. None: one row per episode, at its end.
        budgets: one run per budget, in place of `at`. An agent that does not use the budget and pulls one arm at a time
            makes a single run at the largest budget, scored at each: the rows are the same.
        deltas: one run per delta, in place of `at`, `budgets` and the `delta` of `env_kwargs`, for agents that stop by
            themselves. The rows are those of separate calls, with a column `delta`, the smallest last.
        env_kwargs: keyword arguments of the environment, also those that a learner was trained with. `observation`,
            `stop` and `ranked` are read only for a model without its own environment and without a card, the JSON file
            beside a saved model. `reward="gain"` changes nothing: final answers are scored. Ignored are `actions`,
            `render_mode`, `reward_scale` and keywords of a vector environment.
        batch: episodes side by side; by default as many as memory allows, at most 4096. Results do not depend on it.
        jobs: how many blocks of episodes run at the same time, -1 for as many as there are cores: in threads for agents
            that play whole episodes in compiled code, else in processes. Inside `joblib.parallel_config(backend=...)`
            that backend runs them, "dask" or "ray". Results do not depend on it.
        out: a folder, or an address such as "s3://bucket/folder". Blocks of episodes are written to it during the run,
            at least every 30 million pulls or so. Another call with the same `out` makes only the missing blocks;
            `agents.results` opens the folder. None: all rows are kept in memory.
        shard: "2/8", or (2, 8), makes only the second of eight parts of the blocks, and needs `out`; "slurm" takes both
            numbers from a job array of SLURM. The evaluation that is returned can be read once all parts are done.
        rows: "none" keeps only counts, sums and histograms of the episodes, in memory that does not grow with their
            number. `summary`, `compare`, `plot` and `pulls` still work; see `agents.evaluation.moments`.
        precision: end before `episodes`, once every agent is known as exactly as this says: half the width of the 95 %
            interval of the error rate; {metric: half a width}; or "verdict", until each has a verdict on delta.
            Intervals then allow for repeated looks. Only blocks in their order count, so `jobs` changes nothing.
        deterministic: SB3 models take their most probable action. False: they sample from their distribution of
            actions, by numbers that depend only on `seed`, the episode and the number of the decision. It changes
            nothing for the other agents.
        progress: report the progress of long runs, and compilation, on standard error: by a bar on a terminal, else by
            a line each half minute. None: only if it is a terminal.
        trust: also load saved models that this package has not written. Their files can run any code.

    Warns:
        UserWarning: if a model plays another task than it learned, unless `env_kwargs` say so; if it stops too early.
        RuntimeWarning: if the precision is not reached in all episodes; the message says what is lacking.

    Raises:
        ValueError: naming the value and what is allowed. All agents are checked before the first one runs.
        FileNotFoundError: for a saved model that does not exist.
        gymnasium.error.Error: for an id with a namespace that is not registered.
    """
    episodes, seed = integer("episodes", episodes, 1, EPISODES_LIMIT), root_number(seed)
    jobs = jobs_number(jobs)
    if out is not None and (not isinstance(out, (str, Path)) or not str(out)):
        raise ValueError(f"out must be a folder, an address, or None, got {out!r:.200}")
    rows, part = choice("rows", rows, ("all", "none")), part_of(shard)
    if part is not None and out is None:
        raise ValueError(f"shard needs out, the folder that all parts are written to, got shard={shard!r} alone")
    progress, deterministic, trust = shown(progress), flag("deterministic", deterministic), flag("trust", trust)
    kwargs = keywords(env_kwargs)
    given_id, env_id = env_id, environment_id(env_id)
    checks, horizons = pull_numbers("at", at), pull_numbers("budgets", budgets)
    allowed = error_probabilities(deltas)
    sweeps = {"at": checks, "budgets": horizons, "deltas": allowed}
    if len(given := [f"{name}={value!s:.80}" for name, value in sweeps.items() if value is not None]) > 1:
        raise ValueError(f"give one of at=, budgets= and deltas=, got {' and '.join(given)}")
    if allowed is not None and kwargs.get("delta") is not None:
        raise ValueError(f"give delta={kwargs['delta']!r} in env_kwargs or deltas={allowed}, not both")
    with compilation_noted(progress), reported_in_lines(progress):
        recipes = recipes_of(agents, trust)
        plans = plans_of(recipes, *plain(env_id, kwargs), episodes, deterministic, checks, horizons, allowed, batch)
        settings = {
            "env_id": given_id if ":" in given_id else env_id,  # so that another process finds it
            **{"env_kwargs": kwargs, "episodes": episodes, "seed": seed, "at": checks, "budgets": horizons},
            **({} if allowed is None else {"deltas": allowed}),
            **{"deterministic": deterministic, "rows": rows, "versions": packages()},
        }
        empty_runs = [plan.empty(0) for plan in plans]
        wanted = precision_of(precision, empty_runs)
        if wanted is not None:
            if part is not None:
                raise ValueError("precision is decided on all blocks in their order: it cannot be had with shard")
            settings["precision"] = precision if isinstance(precision, str) else dict(wanted.widths)
        together = rows == "none" or wanted is not None  # so that all agents have the same episodes in the end
        groups = grouped([plan.work for plan in plans], episodes, together=together, fine=wanted is not None)
        if out is None:
            store = storage.Store(empty_runs, groups, episodes, settings)
        else:
            store = storage.claimed(out, empty_runs, groups, episodes, identity_of(plans, settings), settings)
        ending = None if wanted is None else Ending(wanted, store.blocks)
        facts = {"versions": settings["versions"], "jobs": jobs, "shard": part}
        fill(store, plans, seed=seed, jobs=jobs, part=part, ending=ending, progress=progress, facts=facts)
        runs = store.runs()
        for plan, run in zip(plans, [] if part is not None else runs, strict=False):
            if run.deterministic is not None:  # a model
                pulls = run.mean("total_pulls", -1) if run.at is None else math.inf
                warn_of_stops(plan.label, plan.policy, plan.task, pulls)
        if ending is not None:
            settings |= {"episodes": runs[0].episodes, "look": ending.look}
            if lacking := ending.wanted.lacks(runs, ending.look):
                text = f"the precision is not reached in {settings['episodes']} episodes: {lacking}; allow for more"
                warnings.warn(text, RuntimeWarning, stacklevel=2)
    return Evaluation(runs, settings)


def fill(
    store: Store,
    plans: Sequence[Plan],
    *,
    seed: int,
    jobs: int = 1,
    part: tuple[int, int] | None = None,
    ending: Ending | None = None,
    progress: bool | None = None,
    facts: Mapping[str, object],
) -> None:
    """Make the blocks that a store lacks: those of `part` (i, n), or all, until `ending` has enough of them.

    Raises:
        WriteError: if the store cannot be written to. WorkerDiedError: if a process that made blocks has died.
        KeyboardInterrupt: saying how to go on.
    """
    i, n = (1, 1) if part is None else part
    if ending is not None and store.ended is not None:
        ending.look, ending = store.ended, None
    ours = store.blocks[i - 1 :: n]
    todo = store.lacking(ours)
    if not todo if ending is None else ending.decided(store):
        return
    done = set(ours) - set(todo)
    total, before = _work(plans, ours), _work(plans, done)
    bar = Progress(total, before, all(plan.task.budget is not None for plan in plans), progress)
    watch = Watch(bar if bar.show else None)
    works = [replace(plan.work, slow=plan.work.slow and store.place is not None) for plan in plans]
    calls: list[Call[Played]] = []
    for span in spans(todo, works, cores(jobs)):
        runs = [plans[i] for i in span[0].runs]
        run = functools.partial(play, runs, span, seed, store.form)
        wanted = lambda span=span: not all(map(store.has, span))  # others may have made all of them meanwhile
        calls.append(Call(run, all(plan.compiled for plan in runs), wanted))
    with store.calls.at_work(facts) as others, closing(bar), ThreadPoolExecutor(1) as keeper:
        if others and ending is None:  # who has begun with the first block
            calls.reverse()
        kept = keeper.submit(lambda: None)
        try:
            for made, here in outcomes(calls, jobs, watch):
                kept.result()
                kept = keeper.submit(_keep, store, made)  # no player waits for the disk
                if watch.bar is not None and not here:
                    _show(made, bar)
                if ending is not None:
                    kept.result()
                    if ending.decided(store):
                        break
            kept.result()
        except (KeyboardInterrupt, WriteError, WorkerDiedError) as error:
            if (said := store.advice()) is None:
                raise
            raise type(error)(f"{error}; {said}" if str(error) else said) from error
        if ending is not None:
            ending.decided(store)  # others may have made the last blocks


def _keep(store: Store, made: Played) -> None:
    """Keep what was played."""
    for block, content in zip(made.blocks, made.contents, strict=True):
        store.put(block, content)
    for i, (_, pulls, seconds) in zip(made.blocks[0].runs, made.spent, strict=True):
        store.calls.spend(i, pulls, seconds)


def _show(made: Played, bar: Progress) -> None:
    """Count in the progress what was played in another process."""
    for label, pulls, _ in made.spent:
        bar.label = label
        bar.add(pulls, sum(block.episodes for block in made.blocks))


def _work(plans: Sequence[Plan], blocks: Iterable[Block]) -> int:
    """What the progress counts of blocks: pulls where all agents have a budget, else episodes."""
    budgets = [plan.task.budget for plan in plans]
    pulls = [1 if None in budgets else budget or 0 for budget in budgets]
    return sum(block.episodes * pulls[i] for block in blocks for i in block.runs)
