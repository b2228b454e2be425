"""Blocks are made, in this process or wherever joblib runs them, and kept as soon as they are there."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from .blocks import Block, spans
from .execution import Call, Watch, cores, outcomes
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
            WriteError: if the folder cannot be written to. KeyboardInterrupt: telling how to go on.
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
        except (KeyboardInterrupt, WriteError) as error:
            there, count = len(folder.blocks) - len(folder.missing()), len(folder.blocks)
            said = f"{there} of {count} blocks are kept in {folder.place}, and the same call goes on from them"
            if isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(said) from None
            raise WriteError(f"{error}; {said}") from error
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
        with closing(Progress(self._work(blocks) + self._work(done), by_pulls, self.progress)) as bar:
            bar.found(self._work(done))
            watch = Watch(bar if bar.show else None)
            calls = [self._call(span, kept) for span in spans(blocks, [p.work for p in self.plans], cores(self.jobs))]
            for outcome in outcomes(calls[::-1] if back else calls, self.jobs, watch):
                made = outcome.made
                for block, content in zip(made.blocks, made.contents, strict=True):
                    kept.put(block, content)
                for i, (pulls, seconds) in zip(made.blocks[0].runs, made.spent, strict=True):
                    kept.spent(i, pulls, seconds)
                    if watch.bar is not None and not outcome.here:
                        bar.label = self.plans[i].label
                        bar.step(pulls)
                        bar.ended(sum(block.episodes for block in made.blocks))
                if ending is not None and ending.decided(kept):
                    break
            else:
                if ending is not None:
                    ending.decided(kept)  # others have made the last blocks

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
        blocks, contents: what was made. spent: for each run, pulls and seconds.
    """

    blocks: Sequence[Block]
    contents: Sequence[Any]
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
        return _Played([whole], [[rows[0] for rows in parts]], spent)
    return _Played(span, form(span, parts), spent)
