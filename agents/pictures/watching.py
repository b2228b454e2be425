"""One episode in the terminal: the arms as lines of text that move, or as plain lines where there is no terminal."""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import IO, Any

import numpy as np

from bandit_envs.envs import View, Viewer, arms_that_matter, image, limits_of
from bandit_envs.kernels import integer, number

from ..core.files import try_out, write_alone
from ..core.optional import require
from ..evaluation import Trace, play

MOST_FRAMES = 240
FEWEST_FRAMES, MOST_ASKED = 2, 10_000
HEAD = 4  # lines that are no arms
FEWEST, WIDEST = 24, 78  # columns of the part in which the arms move
GIF_FRAMES = 120  # at most
COLOURS = 64  # of a GIF
HOLD = 2.0  # seconds for which the last frame of a GIF stands
PLAIN_LINES = 20  # at most, where there is no terminal
BAR = 12  # length of the longest bar of pulls
INSIDE, OUTSIDE, BOUNDARY, DIM, RESET = "\x1b[94m", "\x1b[33m", "\x1b[97m", "\x1b[2m", "\x1b[0m"
HIDE, SHOW, HOME, END_OF_LINE, END_OF_SCREEN = "\x1b[?25l", "\x1b[?25h", "\x1b[H", "\x1b[K", "\x1b[J"


@dataclass(frozen=True, eq=False)
class Film:
    """One episode of an agent at some numbers of pulls, from none on."""

    label: str  # of the agent
    trace: Trace  # its `at` holds the numbers of pulls of all frames but the first
    viewer: Viewer  # makes the views

    @cached_property
    def views(self) -> list[View]:
        """The arms in each frame, with the agent's own answer."""
        seen, zeros = self.trace.seen, np.zeros(self.trace.means.shape)
        frames = zip(seen["pulls"], seen["mean"], seen["variance"], self.trace.answers, strict=True)
        blank = self.viewer.view(np.zeros(self.trace.task.shape, np.int64), zeros, zeros)
        return [blank, *(self.viewer.view(*frame) for frame in frames)]

    @cached_property
    def limits(self) -> tuple[float, float]:
        """Limits of the axis of values that show all frames."""
        return limits_of(self.views[1:], self.viewer.support)

    @property
    def end(self) -> int:
        """Pulls of the whole episode."""
        return len(self.trace.arms)

    def title(self, i: int) -> str:
        """The agent, the problem, and how far the episode is in a frame."""
        task = self.trace.task
        of = "" if task.budget is None else f" of {task.budget:,}"
        return f"{self.label} on {task.problem}: {self.views[i].pulls.sum():,}{of} pulls"


def moments(end: int, frames: int) -> list[int]:
    """Numbers of pulls at which there are frames: of 1 to `end`, evenly, at most so many."""
    return sorted({int(t) for t in np.linspace(0, end, min(end, frames) + 1)[1:].round()})


def films(
    agents: Mapping[str, Any], env_id: str, *, frames: int | Callable[[int], int] = MOST_FRAMES, **how: Any
) -> list[Film]:
    """The same episode by several agents {label: agent}, at the same numbers of pulls: those of the longest.

    Every episode is played twice, at first to learn how long it is. `frames`: at most, without that before the first
    pull; a number, or a function of the number of arms. All others are as for `play`.
    """
    if not callable(frames):
        frames = integer("frames", frames, FEWEST_FRAMES, MOST_ASKED)
    traces = [play(agent, env_id, **how) for agent in agents.values()]
    end = max(1, *(len(trace.arms) for trace in traces))
    at = moments(end, frames(traces[0].task.K) if callable(frames) else frames)
    traces = [play(agent, env_id, at=at, **how) for agent in agents.values()]
    return [Film(label, trace, Viewer(trace.task)) for label, trace in zip(agents, traces, strict=True)]


def watch(
    agent: object,
    env_id: str,
    *,
    env_kwargs: Mapping[str, object] | None = None,
    seed: int = 0,
    episode: int = 0,
    frames: int | None = None,
    speed: float = 10.0,
    gif: str | Path | None = None,
    color: bool | None = None,
    out: IO[str] | None = None,
    trust: bool = False,
) -> Film:
    """Show an agent in one episode, in the terminal or as an animated GIF.

    Where `out` is no terminal, it gets one plain line for each of at most 20 frames, and the arms as they are in the
    end.

    Args:
        agent, env_id, env_kwargs, seed, episode, trust: as for `play`.
        frames: at most, spread evenly over the pulls; None: as many as are worth it.
        speed: frames in a second.
        gif: write the moving picture into this file, instead of showing it; it needs Matplotlib.
        color: whether to use colours; None: where there is a terminal, and the variable NO_COLOR is not set.
        out: where to write; None: standard output.

    Raises:
        ValueError: for a file that is no .gif, and as `play`.
    """
    out = sys.stdout if out is None else out
    speed, moving = number("speed", speed, 0.1, 1000), out.isatty()
    if gif is not None:
        gif = Path(gif)
        if gif.suffix.lower() != ".gif":
            raise ValueError(f"the suffix of a moving picture must be .gif, got {str(gif)!r}")
        try_out(gif)
    most = GIF_FRAMES if gif is not None else MOST_FRAMES if moving else PLAIN_LINES
    how: dict[str, object] = {"env_kwargs": env_kwargs, "seed": seed, "episode": episode, "trust": trust}
    (shown,) = films({str(agent): agent}, env_id, frames=most if frames is None else frames, **how)
    if gif is not None:
        save_gif(shown, gif, speed)
    elif moving:
        _move(shown, speed, "NO_COLOR" not in os.environ if color is None else color, out)
    else:
        states = [_status(shown, i) for i in range(len(shown.views))]
        print("\n".join([*states, *lines(shown, len(states) - 1, 100, bool(color))[1:]]), file=out)
    return shown


def _status(shown: Film, i: int) -> str:
    """A line of text: how far the episode is in a frame, and what would be answered."""
    view = shown.views[i]
    text = f"{shown.title(i)}, {view.answer.sum():,} arms in the answer"
    if i == 0:
        return text
    correct, score = (shown.trace.verdicts[name][i - 1] for name in ("correct", "score"))
    over = ", ended" if view.pulls.sum() == shown.end else ""
    return f"{text}, score {score:.3f} ({'correct' if correct else 'wrong'}){over}"


def lines(shown: Film, i: int, width: int, color: bool, most: int = 20) -> list[str]:
    """Frame i as lines of text of this width: a head, and one for each arm, with its interval, value, and pulls.

    Of more than `most` arms, those that matter most are shown.
    """
    view, (low, high) = shown.views[i], shown.limits
    K, kept = len(view.pulls), shown.viewer.problem.control_arm
    chosen = np.arange(K)
    if (most := max(most, 3)) < K:
        chosen = arms_that_matter(view.pulls, view.value - (view.boundary or 0.0), view.answer, most)
    names = max(3, len(str(K - 1)))
    places = max(FEWEST, min(WIDEST, width - names - BAR - 15))
    each = max(1, math.ceil(int(view.pulls.max()) / BAR))

    def paint(text: str, colour: str) -> str:
        return f"{colour}{text}{RESET}" if color else text

    def place(x: float) -> int:
        return round(min(max((x - low) / (high - low), 0.0), 1.0) * (places - 1))

    def row(k: int) -> str:
        shade = INSIDE if view.answer[k] else OUTSIDE
        cells = [(shade, " ")] * places
        if seen := bool(np.isfinite(view.value[k])):
            first, last = (place(view.value[k] + side * view.reach[k]) for side in (-1, 1))
            cells[first : last + 1] = [(shade, "-")] * (last + 1 - first)
        if view.boundary is not None:
            cells[place(view.boundary)] = BOUNDARY, "|"
        if seen:
            cells[place(view.value[k])] = shade, "o"
        runs = groupby(cells, key=lambda cell: cell[0])
        arm = "".join(paint("".join(letter for _, letter in run), colour) for colour, run in runs)
        mark = paint("*", shade) if view.answer[k] else "=" if k == kept else " "
        bar = paint("#" * -(-int(view.pulls[k]) // each), shade)
        return f"{k:>{names}} {mark}  {arm}  {view.pulls[k]:>7,} {bar}".rstrip()

    ends = f"{low:.3g}".ljust(places - 8) + f"{high:.3g}".rjust(8)
    tail = f"* in the answer, {'= the control, ' * (kept is not None)}| the boundary, {shown.viewer.value}s"
    if hidden := K - len(chosen):
        tail = f"{hidden:,} of {K:,} arms are not shown"
    head = [_status(shown, i)[:width], "", paint(f"{'arm':>{names}}    {ends}  pulls, a # for {each}"[:width], DIM)]
    return [*head, *(row(int(k)) for k in chosen), paint(tail[:width], DIM)]


def _move(shown: Film, speed: float, color: bool, out: IO[str]) -> None:
    """Show the frames one after another in the same place; the cursor is there in the end, also after an error."""
    try:
        out.write(HIDE + HOME + END_OF_SCREEN)
        for i in range(len(shown.views)):
            begin, size = time.monotonic(), shutil.get_terminal_size((100, 30))
            rows = lines(shown, i, size.columns, color, size.lines - HEAD - 1)
            out.write(HOME + "".join(f"{row}{END_OF_LINE}\n" for row in rows[: size.lines - 1]) + END_OF_SCREEN)
            out.flush()
            time.sleep(max(0.0, begin + 1 / speed - time.monotonic()))
    finally:
        out.write(RESET * color + SHOW)
        out.flush()


def save_gif(shown: Film, path: Path, speed: float) -> None:
    """Write an episode as an animated GIF."""
    pictures = require("PIL.Image", "a GIF")
    frames = (image(shown.viewer, view, shown.title(i), shown.limits) for i, view in enumerate(shown.views))
    drawn = list(map(pictures.fromarray, frames))
    palette = drawn[-1].quantize(COLOURS)  # the same for all, so that a frame holds only what has changed
    first, *rest = (picture.quantize(palette=palette, dither=pictures.Dither.NONE) for picture in drawn)
    wait = round(1000 / speed)
    times = [wait] * len(rest) + [wait + round(1000 * HOLD)]
    how: dict[str, object] = {"save_all": True, "append_images": rest, "duration": times, "loop": 0, "optimize": False}
    write_alone(path, lambda place: first.save(place, **how))
