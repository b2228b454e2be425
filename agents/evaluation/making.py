"""Makes blocks, in this process or wherever joblib runs them. Each is kept as soon as it is made."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

from .blocks import Block, spans
from .execution import Call, Watch, WorkerDiedError, cores, outcomes
from .lockstep import Played, play
from .plan import Plan
from .precision import Ending
from .progress import Progress
from .storage import Store, WriteError


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
