"""A scripted player, and a program that plays its episodes on a server: `served_player.py URL 1 20 < jobs > plays`.

It plays all jobs for each number of sessions at the same time, and prints a list of plays for each. A job is what
`reset` takes; a play is the id of the episode in `state`, its steps, and [message, reward, done] of each frame. The
program needs openenv and the client alone.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
from collections.abc import Iterator
from typing import Any


def replies(opening: str, seed: int) -> Iterator[str]:
    """Pulls, now and then nonsense, and an answer: by the first message and the seed alone."""
    draw = random.Random(seed)
    names = re.search(r"^There (?:are|is) .*?: (.*)\.$", opening, re.M)[1].split(", ")
    control = re.search(r"^The control is (\S+); ", opening, re.M)
    size = re.search(r"It holds (\d+) ", opening)
    for _ in range(draw.randrange(4, 14)):
        nonsense = draw.random() < 0.1
        yield (
            draw.choice(("Hm.", "PULL nothing", ""))
            if nonsense
            else f"PULL {draw.choice(names)} {draw.randrange(1, 5)}"
        )
    free = [name for name in names if control is None or name != control[1]]
    answer = draw.sample(free, int(size[1]) if size else draw.randrange(len(free) + 1))
    while True:
        yield f"ANSWER {', '.join(answer) or 'none'}"


async def play(url: str, jobs: list[dict[str, Any]], at_once: int) -> list[dict[str, Any]]:
    """The plays of jobs, so many sessions at the same time, each of which plays one job after the other."""
    from pure_exploration import BanditAction, BanditEnv

    waiting, plays = list(enumerate(jobs)), [dict[str, Any]() for _ in jobs]

    async def session() -> None:
        async with BanditEnv(base_url=url, message_timeout_s=600) as env:  # kernels may be compiled first
            while waiting:
                place, job = waiting.pop(0)
                result = await env.reset(**job)
                said = [[result.observation.message, result.reward, result.done]]
                for reply in replies(said[0][0], place):
                    result = await env.step(BanditAction(text=reply))
                    said.append([result.observation.message, result.reward, result.done])
                    if result.done:
                        break
                state = await env.state()
                plays[place] = {"id": state.episode_id, "steps": state.step_count, "said": said}

    await asyncio.gather(*(session() for _ in range(at_once)))
    return plays


if __name__ == "__main__":
    jobs = json.load(sys.stdin)
    print(json.dumps([asyncio.run(play(sys.argv[1], jobs, int(number))) for number in sys.argv[2:]]))
