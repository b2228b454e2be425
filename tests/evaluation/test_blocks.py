"""Blocks of episodes: they depend on the plan alone, are neither tiny nor huge, and are planned fast."""

from __future__ import annotations

import sys

import numpy as np

from agents.evaluation import blocks
from agents.evaluation.blocks import Work
from agents.evaluation.storage.block_files import name_of


def test_blocks_cover_all_episodes_once_and_depend_on_the_plan_alone() -> None:
    works = [Work(200), Work(None, 4), Work(3_000_000), Work(None, 1, 50)]
    for episodes in (1, 7, 100, 12_345, 10**5):
        for together in (False, True):
            groups = blocks.grouped(works, episodes, together=together)
            cut = blocks.cut(groups, episodes)
            assert [block.number for block in cut] == list(range(len(cut)))
            for i in range(len(works)):
                own = [block for block in cut if i in block.runs]
                assert [block.first for block in own] == [0, *np.cumsum([block.episodes for block in own])[:-1]]
                assert sum(block.episodes for block in own) == episodes
            for jobs in (1, 2, 5):
                spans = blocks.spans(cut, works, jobs)
                assert [block for span in spans for block in span] == cut
                assert all(len({block.runs for block in span}) == 1 for span in spans)
                assert all(len({block.episodes for block in span[:-1]}) <= 1 for span in spans)
                assert all(span[-1].episodes <= span[0].episodes for span in spans)


def test_blocks_are_neither_tiny_nor_huge() -> None:
    def sizes(work: Work, episodes: int) -> list[int]:
        return [block.episodes for block in blocks.cut(blocks.grouped([work], episodes), episodes)]

    assert sizes(Work(200), 50) == [50]  # 10,000 pulls are not worth being cut
    assert sizes(Work(200), 8000) == [1000] * 8
    most = [22] * 270 + [6] * 10  # some 66 million pulls, a quarter of it at the end
    assert sizes(Work(3_000_000), 6000) == most
    assert sizes(Work(10**12), 3) == [1, 1, 1]
    assert max(sizes(Work(1, cells=1000), 10**6)) <= 2**21 / 1000


def test_many_cores_find_many_blocks() -> None:
    """Eight blocks while each is short of a grain, then more; agents that decide in Python have a finer grain."""

    def count(pulls: int, **how: int) -> int:
        return len(blocks.cut(blocks.grouped([Work(1000, **how)], pulls // 1000), pulls // 1000))

    powers = [10**5, 10**6, 10**7, 10**8, 10**9, 10**10]
    assert [count(pulls) for pulls in powers] == [6, 8, 8, 47, 128, 156]
    assert [count(pulls, grain=blocks.SLOW_GRAIN) for pulls in powers] == [6, 8, 76, 128, 128, 156]


def test_twice_as_many_blocks_are_planned_in_twice_as_many_steps() -> None:
    """Steps are the lines that Python runs."""

    def steps(episodes: int) -> int:
        count, before = 0, sys.gettrace()

        def counts(*_: object) -> object:
            nonlocal count
            count += 1
            return counts

        sys.settrace(counts)
        cut = blocks.cut(blocks.grouped(works, episodes), episodes)
        spans = blocks.spans(cut, works, 64)
        names = {name_of("root", block) for block in cut}
        sys.settrace(before)
        assert len(cut) == len(spans) == len(names) == episodes
        return count

    works = [Work(2**26)]
    assert 500 < steps(1000) < 2.01 * steps(500)


def test_a_long_plan_ends_with_small_tasks() -> None:
    """Where two jobs go through the tasks in order, the one that ends first waits for less than 2 % of the time."""
    works = [Work(200)]
    for episodes in (3_000_000, 3_400_000, 4_000_000, 10_000_000):
        cut = blocks.cut(blocks.grouped(works, episodes), episodes)
        busy = [0, 0]
        for span in blocks.spans(cut, works, 2):
            busy[busy.index(min(busy))] += sum(block.episodes for block in span)
        assert max(busy) < 1.02 * episodes / 2


def test_slow_agents_keep_blocks_early() -> None:
    """Eight blocks of 40,000 pulls: at once where they are compiled, else six and two."""
    cut = blocks.cut(blocks.grouped([Work(200)], 1600), 1600)
    assert [len(span) for span in blocks.spans(cut, [Work(200)], 1)] == [8]
    assert [len(span) for span in blocks.spans(cut, [Work(200, slow=True)], 1)] == [6, 2]


def test_gaps_end_a_span() -> None:
    works = [Work(200)]
    cut = blocks.cut(blocks.grouped(works, 8000), 8000)
    some = [block for block in cut if block.number not in (2, 5)]
    assert [[block.number for block in span] for span in blocks.spans(some, works, 1)] == [[0, 1], [3, 4], [6, 7]]
