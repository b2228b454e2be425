"""Runs the figures of a paper: every claim gets an interval and a verdict at every point.

Each evaluation has a folder of its own, the `out` of `evaluate`, named by a hash of all that is asked for, so that
panels, figures and later runs that ask for the same one share it. A run that was killed goes on at the block of
episodes that it was at.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bandit_envs.kernels import EPISODES_LIMIT, flag, integer, root_number, unknown

from ..core.files import REPRODUCTION, SETTINGS, read_json, try_out, write_alone, write_together
from ..core.optional import pandas
from ..evaluation import Evaluation, evaluate, storage
from ..evaluation.identity import versions
from ..evaluation.plots import check_path, save
from ..evaluation.progress import now_at, reported_in_lines, shown
from ..evaluation.storage import WriteError
from . import pages
from .catalogue import PAPERS, named
from .declared import Figure
from .panels import AnyPanel, Conduct, Result
from .verdicts import scorecard, verdicts

if TYPE_CHECKING:
    import pandas as pd


class Store:
    """Evaluations by what they were asked for, kept in memory, and in a folder where one is given."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder, self.made = folder, 0  # evaluations that were run, or completed, as the store did not have them
        self._found: dict[str, Evaluation] = {}

    def evaluate(
        self, agents: Mapping[str, object], env_id: str, *, jobs: int = 1, progress: bool | None = None, **asked: Any
    ) -> Evaluation:
        """What `evaluate` yields, which runs only what has not been kept; a warning where that is damaged."""
        given = {name: value for name, value in asked.items() if value is not None}
        order = list(agents.items())  # labels in their order count, as it is that of the rows
        name = storage.root_of(given | {"agents": order, "env_id": env_id, "version": versions()})[:16]
        if name not in self._found:
            run = partial(evaluate, agents, env_id, jobs=jobs, progress=progress, **asked)
            self.made += self.folder is None
            self._found[name] = run() if self.folder is None else self._kept(run, self.folder / name)
        return self._found[name]

    def _kept(self, run: Callable[..., Evaluation], out: Path) -> Evaluation:
        """What is kept in a folder, after what it lacks has been made."""
        before = storage.calls(out)
        try:
            found = run(out=out)
        except storage.RefusedError as error:
            warnings.warn(f"a stored evaluation is damaged, and is run again: {error}", RuntimeWarning, stacklevel=3)
            storage.clear(out)
            before, found = 0, run(out=out)
        self.made += storage.calls(out) > before
        return found


EVALUATIONS = "evaluations"  # the folder of the evaluations in that of a figure


def _writing(texts: Mapping[str, str]) -> dict[str, Callable[[Path], object]]:
    """What writes each text into a file, by the names of the files."""
    return {name: partial(Path.write_text, data=text, encoding="utf-8") for name, text in texts.items()}


class DataMissing(OSError):
    """No panel of a figure has its data."""


@dataclass(eq=False)
class Reproduction:
    """The results of a figure's panels, and the verdicts on its claims."""

    figure: Figure  # the panels that were run, and the claims about them
    results: dict[str, Result]  # by the panels' titles
    level: float = 0.95  # of the intervals, of each alone and of all together
    skipped: dict[str, str] = field(default_factory=dict)  # panels whose data could not be had, with the reason
    made: int = 0  # evaluations that were run, while others had been kept from before
    asked: dict[str, Any] = field(default_factory=dict)  # figure, episodes, seed

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """One row per claim and point; the columns are those of `agents.figures.verdicts.verdicts`."""
        return verdicts(self.figure, self.results, self.level)

    @cached_property
    def points(self) -> pd.DataFrame:
        """What the panels show: panel, agent, x, episodes, mean, low, high, and `drawn`, the transformed mean."""
        rows = [
            {"panel": panel.title, **row}
            for panel in self.figure.panels
            for row in panel.rows(self.results[panel.title], self.level, self.figure.transform)
        ]
        table: pd.DataFrame = pandas().DataFrame(rows)
        return table

    def scorecard(self) -> pd.DataFrame:
        """Per claim: at how many points it is confirmed (yes), open, or refuted (no); see `verdicts.scorecard`."""
        return scorecard(self.verdicts)

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw all panels, at most three in a row, with one legend; an agent looks the same in all of them.

        Args:
            path: also write the figure there; the suffix names the format (.png, .svg, .pdf).

        Returns:
            A Matplotlib figure that belongs to no window.
        """
        from matplotlib.figure import Figure

        if path is not None:
            check_path(path)
        panels, results = self.figure.panels, self.results
        order = list(dict.fromkeys([*self.figure.order, *(name for one in results.values() for name in one.agents)]))
        columns = min(3, len(panels))
        rows = -(-len(panels) // columns)
        figure = Figure(figsize=(4.2 * columns + 1.6, 3.8 * rows), layout="constrained")
        axes, legend = figure.subplots(rows, columns, squeeze=False).ravel(), {}
        for ax, panel in zip(axes, panels, strict=False):
            panel.draw(ax, results[panel.title], self.level, self.figure.transform, order)
            ax.set_title(panel.title, fontsize=11)
            handles, labels = ax.get_legend_handles_labels()
            legend.update(dict(zip(labels, handles, strict=True)))
        for ax in axes[len(panels) :]:
            ax.set_visible(False)
        names = sorted(legend, key=lambda label: order.index(label) if label in order else len(order))
        figure.legend([legend[name] for name in names], names, loc="outside right upper", frameon=False, handlelength=3)
        if path is not None:
            save(figure, path)
        return figure

    def _files(self) -> dict[str, Callable[[Path], object]]:
        """What the documentation shows, by the names of the files."""
        verdicts_kept, verdicts_read = pages.as_kept(self.verdicts)
        points_kept, points_read = pages.as_kept(self.points)
        texts = {
            "verdicts.csv": verdicts_kept,
            pages.POINTS: points_kept,
            pages.CLAIMS: pages.claims_text(self.figure, verdicts_read),
            pages.VALUES: pages.values_text(self.figure.values, points_read),
        }
        return _writing(texts) | {"figure.svg": self.plot}

    def save(self, folder: str | Path) -> Path:
        """Write verdicts.csv, points.csv, figure (.png, .svg), claims.md, values.md, settings.json; returns the folder.

        The results of the panels are not among them: `reproduce(out=...)` keeps these.
        """
        folder = Path(folder)
        settings = {title: result.settings for title, result in self.results.items()}
        content = {REPRODUCTION: self.asked, "panels": settings, "skipped": self.skipped}
        write_together(folder / SETTINGS, content, self._files() | {"figure.png": self.plot})
        return folder

    def save_docs(self, docs: str | Path) -> Path:
        """Write what the documentation shows of the figure, and its overview of all figures; returns the folder."""
        folder = pages.check_docs(Path(docs)) / "figures" / self.figure.name
        folder.mkdir(exist_ok=True)
        for name, write in self._files().items():
            write_alone(folder / name, write)
        pages.update_overview(Path(docs))
        return folder


def open_folder(out: Path, asked: dict[str, Any], force: bool) -> None:
    """Make a folder ready for what is asked for: an empty one, or one that holds the same, whose run then goes on.

    Raises:
        ValueError: if it holds something else. OSError: if it cannot be written to.
    """
    index = out / SETTINGS
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is there already, and no folder: give another --out")
    kept: object = None
    if out.is_dir() and any(out.iterdir()):
        with suppress(ValueError):
            kept = read_json(index).get(REPRODUCTION) if index.is_file() else None
        if kept != asked and not force:
            what = ", ".join(f"{name} {value!r}" for name, value in asked.items())
            held = f"holds {kept!r:.200}" if kept else "holds something else"
            text = f"{out} is there already, and {held}, not {what}:"
            raise ValueError(f"{text} give another --out, or --force to write into it")
    try_out(index, folder=True)
    if kept != asked:
        write_together(index, {REPRODUCTION: asked}, {})


def reproduce(
    figure: Figure | str,
    *,
    episodes: int | None = None,
    seed: int = 0,
    panels: Sequence[str] | None = None,
    progress: bool | None = None,
    jobs: int = 1,
    out: str | Path | None = None,
    force: bool = False,
) -> Reproduction:
    """Run a figure of a paper.

    A panel whose data can neither be found nor downloaded is skipped, with the reason in `skipped`.

    Args:
        figure: its name, as "tao2019-figure-1", or a `Figure`.
        episodes: runs per point; None: as many as the paper's.
        seed: root seed.
        panels: titles of the panels to run; None: all.
        progress: whether to report how far the run is, as for `evaluate`; None: if standard error is a terminal.
        jobs: parts of the episodes that run at the same time, as for `evaluate`.
        out: a folder for the results. The episodes of each evaluation are kept there, block by block, and are not run
            again when the same is asked for once more: a run that was killed goes on from them.
        force: write into a folder that holds something else. Evaluations in it stay.

    Raises:
        ValueError: for an unknown figure or panel, with the known ones; for a number of episodes below 1; for a folder
            that holds something else.
        OSError: if every panel lacks its data; for a folder that cannot be written to.

    Warns:
        RuntimeWarning: where a block of episodes, or an evaluation, that was kept is damaged, and made again.
    """
    if isinstance(figure, str):
        figure = named(figure)
    titles = [panel.title for panel in figure.panels]
    for title in panels or []:
        if title not in titles:
            raise unknown("panel", title, titles)
    chosen = [panel for panel in figure.panels if panels is None or panel.title in panels]
    folder, store, how = _begun(out, episodes, seed, progress, jobs)
    return _run(figure, chosen, how, store, folder, flag("force", force))


def _begun(
    out: str | Path | None, episodes: int | None, seed: int, progress: bool | None, jobs: int
) -> tuple[Path | None, Store, Conduct]:
    """The folder, the store in it, and how all panels are run, checked."""
    folder = None if out is None else Path(out)
    store = Store(None if folder is None else folder / EVALUATIONS)
    episodes = None if episodes is None else integer("episodes", episodes, 1, EPISODES_LIMIT)
    return folder, store, Conduct(episodes, root_number(seed), shown(progress), jobs, store.evaluate)


def _run(
    figure: Figure, chosen: Sequence[AnyPanel[Any]], how: Conduct, store: Store, folder: Path | None, force: bool
) -> Reproduction:
    """Some panels of a figure, and the folder that describes them; see `reproduce`."""
    asked = {"figure": figure.name, "episodes": how.episodes, "seed": how.seed}
    if folder is not None:
        open_folder(folder, asked, force)
    before = store.made
    results: dict[str, Result] = {}
    skipped: dict[str, str] = {}
    with reported_in_lines(how.progress):
        for i, panel in enumerate(chosen):
            now_at(f"panel {i + 1} of {len(chosen)}, {panel.title}")
            try:
                results[panel.title] = panel.run(how)
            except WriteError:
                raise
            except OSError as error:
                skipped[panel.title] = str(error)
    if not results:
        raise DataMissing("; ".join(f"{title}: {reason}" for title, reason in skipped.items()))
    shown = figure.shown([panel for panel in chosen if panel.title in results])
    result = Reproduction(shown, results, skipped=skipped, made=store.made - before, asked=asked)
    if folder is not None:
        result.save(folder)
    return result


def reproduce_paper(
    paper: str,
    *,
    episodes: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
    jobs: int = 1,
    out: str | Path | None = None,
    force: bool = False,
) -> list[Reproduction]:
    """Run all figures of a paper, as mason2020; those of which every panel lacks its data are left out.

    What several figures ask for is run once. `out` is a folder for one of each figure, and one of the evaluations of
    all of them. The other arguments and errors are as for `reproduce`.
    """
    if paper not in PAPERS:
        raise unknown("paper", paper, PAPERS)
    folder, store, how = _begun(out, episodes, seed, progress, jobs)
    force, asked = flag("force", force), {"paper": paper, "episodes": how.episodes, "seed": how.seed}
    if folder is not None:
        open_folder(folder, asked, force)
    done, lacking = [], []
    for figure in PAPERS[paper]:
        own = None if folder is None else folder / figure.name
        try:
            done.append(_run(figure, figure.panels, how, store, own, force))
        except DataMissing as error:
            lacking.append(f"{figure.name}: {error}")
    if not done:
        raise OSError("; ".join(lacking))
    if folder is not None:
        tables = [one.verdicts.assign(figure=one.figure.name) for one in done]
        text, read = pages.as_kept(pandas().concat(tables, ignore_index=True))
        texts = [pages.claims_text(one.figure, read[read["figure"] == one.figure.name]) for one in done]
        files = _writing({"verdicts.csv": text, pages.CLAIMS: "\n".join(texts)})
        write_together(folder / SETTINGS, {REPRODUCTION: asked, "skipped": lacking}, files)
    return done
