"""Blocks are made, in this process or wherever joblib runs them, and kept as soon as they are there."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from .blocks import Block, spans
from .execution import Call, Watch, WorkerDiedError, cores, outcomes
from .plan import Plan
from .precision import Ending
from .progress import Progress
from .storage import Folder, WriteError

__all__ = ["Maker"]


@dataclass(frozen=True)
class Maker:
    """Makes blocks.

    Attributes:
        plans: the runs. seed: the root.
        jobs: how many blocks at the same time. progress: as for `evaluate`.
    """

    plans: Sequence[Plan]
    seed: int
    jobs: int
    progress: bool | None

    def go_on(
        self, folder: Folder, part: tuple[int, int] | None, told: Mapping[str, Any], ending: Ending | None
    ) -> None:
        """Make the blocks that a folder lacks, after a look at those that are there.

        Args:
            folder: keeps them.
            part: of the blocks, (i, n); None: all.
            told: of this call.
            ending: as for `fill`.

        Raises:
            WriteError: if the folder cannot be written to. WorkerDiedError: if a process that made blocks has died.
            KeyboardInterrupt: telling how to go on.
        """
        folder.tidy()
        if ending is not None:
            folder.look()
            if folder.ended is not None:
                ending.look = folder.ended
                ending = None
        i, n = (1, 1) if part is None else part
        ours = [block for block in folder.blocks if block.number % n == i - 1]
        lacking = _lacking(folder, ours)
        todo = [block for block in ours if block.number in lacking]
        done = [block for block in ours if block.number not in lacking]
        if not todo if ending is None else ending.decided(folder):
            return
        others = folder.begin(told)
        try:
            self.fill(folder, todo, ending, done=done, back=others and ending is None)
        except (KeyboardInterrupt, WriteError, WorkerDiedError) as error:
            there, count = len(folder.blocks) - len(folder.missing()), len(folder.blocks)
            said = f"{there} of {count} blocks are kept in {folder.place}, and the same call goes on from them"
            if isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(said) from None
            raise type(error)(f"{error}; {said}") from error
        finally:
            with contextlib.suppress(OSError):
                folder.calls.end()

    def fill(
        self,
        kept: Any,
        blocks: Sequence[Block],
        ending: Ending | None = None,
        *,
        done: Sequence[Block] = (),
        back: bool = False,
    ) -> None:
        """Make blocks and keep them.

        Args:
            kept: where.
            blocks: those to be made. done: those that have been made before, for the progress alone.
            ending: decides when enough blocks are there; None: all are needed.
            back: begin with the last one, since somebody else has begun with the first.
        """
        by_pulls = all(plan.budget is not None for plan in self.plans)
        bar = Progress(self._work(blocks) + self._work(done), by_pulls, self.progress)
        with closing(bar), closing(_Keeper(kept)) as keeper:
            bar.found(self._work(done))
            watch = Watch(bar if bar.show else None)
            calls = [self._call(span, kept) for span in spans(blocks, [p.work for p in self.plans], cores(self.jobs))]
            for outcome in outcomes(calls[::-1] if back else calls, self.jobs, watch):
                keeper.keep(outcome.made)
                if watch.bar is not None and not outcome.here:
                    self._show(outcome.made, bar)
                if ending is not None and ending.decided(keeper.all()):
                    break
            keeper.all()
            if ending is not None:
                ending.decided(kept)  # others may have made the last blocks

    def _show(self, made: _Played, bar: Progress) -> None:
        """Tell the progress of what was played in another process."""
        for i, (pulls, _) in zip(made.blocks[0].runs, made.spent, strict=True):
            bar.label = self.plans[i].label
            bar.step(pulls)
            bar.ended(sum(block.episodes for block in made.blocks))

    def _work(self, blocks: Iterable[Block]) -> int:
        """What the progress counts of blocks: pulls where all agents have a budget, else episodes."""
        budgets = [plan.budget for plan in self.plans]
        pulls = [1 if None in budgets else budget or 0 for budget in budgets]
        return sum(block.episodes * pulls[i] for block in blocks for i in block.runs)

    def _call(self, span: Sequence[Block], kept: Any) -> Call[_Played]:
        """The task of making neighbouring blocks, which nobody needs once all of them are there."""
        plans = [self.plans[i] for i in span[0].runs]
        return Call(
            functools.partial(_play, plans, span, self.seed, kept.form),
            lockless=all(plan.compiled for plan in plans),
            wanted=lambda: not all(map(kept.has, span)),
        )


def _lacking(folder: Folder, blocks: Iterable[Block]) -> set[int]:
    """The numbers of those of these blocks that a folder lacks; damaged ones are told, and removed from it."""
    lacking = {block.number for block in folder.missing()}
    for block in blocks:
        if block.number not in lacking:
            try:
                folder.check(block)
            except ValueError as error:
                warnings.warn(f"{error}: made anew", RuntimeWarning, stacklevel=4)
                folder.discard(block)
                lacking.add(block.number)
    return lacking


@dataclass(frozen=True)
class _Played:
    """What came of a span.

    Attributes:
        blocks: what was made. contents: makes what they hold. spent: for each run, pulls and seconds.
    """

    blocks: Sequence[Block]
    contents: Callable[[], Sequence[Any]]
    spent: Sequence[tuple[int, float]]


def _play(plans: Sequence[Plan], span: Sequence[Block], seed: int, form: Any, watch: Watch) -> _Played:
    """Play the episodes of neighbouring blocks in one go.

    Args:
        plans: the runs of the blocks.
        span: the blocks, all of the same size but the last one.
        seed: the root.
        form: makes the contents of the blocks from their rows; None: all of them are one block.
        watch: of the tasks that run at the same time.
    """
    first, episodes = span[0].first, sum(block.episodes for block in span)
    size = episodes if form is None else span[0].episodes
    parts, spent = [], []
    for plan in plans:
        started = time.perf_counter()
        if watch.bar is not None:
            watch.bar.label = plan.label
        rows = plan.play(first, episodes, seed, size, watch)
        pulls = sum(int(part.columns["total_pulls"][:, -1].sum()) for part in rows)
        parts.append(rows)
        spent.append((pulls, time.perf_counter() - started))
    if form is None:
        whole = dataclasses.replace(span[0], episodes=episodes)
        return _Played([whole], functools.partial(tuple, [[rows[0] for rows in parts]]), spent)
    contents = functools.partial(form, span, parts)
    if not watch.here:  # the file of a block is smaller than its rows
        contents = functools.partial(tuple, contents())
    return _Played(span, contents, spent)


class _Keeper:
    """Keeps blocks while others are played, one after another: no player waits for the disk.

    Args:
        kept: where.
    """

    def __init__(self, kept: Any) -> None:
        self._kept, self._thread = kept, ThreadPoolExecutor(1)
        self._last = Future[None]()
        self._last.set_result(None)

    def keep(self, made: _Played) -> None:
        """Keep what was played, as soon as what came before it is kept.

        Raises:
            WriteError: if that could not be kept.
        """
        self._last.result()
        self._last = self._thread.submit(self._keep, made)

    def all(self) -> Any:
        """Where all is kept now that was to be kept.

        Raises:
            WriteError: if the last could not be kept.
        """
        self._last.result()
        return self._kept

    def close(self) -> None:
        """End, as soon as what is being kept is kept."""
        self._thread.shutdown()

    def _keep(self, made: _Played) -> None:
        for block, content in zip(made.blocks, made.contents(), strict=True):
            self._kept.put(block, content)
        for i, (pulls, seconds) in zip(made.blocks[0].runs, made.spent, strict=True):
            self._kept.spent(i, pulls, seconds)
