"""Real data as instances. Each file is public; those whose licence allows it come with the package.

A call that names a folder reads the file there. Else it is read from the folder that the environment variable
BANDIT_ENVS_DATA names, or else from `bandit_envs/data`; where both lack it, it is downloaded once from its public
address, verified, and cached.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..kernels.checks import Floats, array, install_hint, integer, number
from ..kernels.naming import unknown
from .arms import Categorical
from .tables import cells_of, measurements, shared_scores

VARIABLE = "BANDIT_ENVS_DATA"
SHIPPED = Path(__file__).parents[1] / "data"  # files that come with the package, and LICENCES.md
T = TypeVar("T")


@dataclass(frozen=True)
class PublicFile:
    """A file of a public GitHub repository, at a fixed commit."""

    repository: str  # "owner/name"
    commit: str  # 40 hexadecimal digits
    path: str  # of the file in the repository
    sha256: str | None = None  # of its bytes, 64 hexadecimal digits; None where only the commit vouches for the file
    alias: str = ""  # the file's name here, or "folder/", if it is not the last part of `path`
    split: str = ""  # of prompts: "train", or "test" if their task is held out
    table: str = ""  # of records: a file with the same numbers as a table, read in their place where a folder has it

    @property
    def name(self) -> str:
        """The file's name in folders and in the cache."""
        last = self.path.rpartition("/")[2]
        return self.alias + last if self.alias.endswith("/") else self.alias or last

    @property
    def url(self) -> str:
        return f"https://raw.githubusercontent.com/{self.repository}/{self.commit}/{self.path}"


_TABLE = tomllib.loads(Path(__file__).with_name("datasets.toml").read_text(encoding="utf-8"))
FILES: dict[str, PublicFile] = {
    file.name: file
    for row in _TABLE["file"]
    for name, own in row.pop("each", {"": {}}).items()
    for file in [PublicFile(**{part: text.replace("{}", name) for part, text in {**row, **own}.items()})]
}


def local_folder() -> Path | None:
    """The folder that the environment variable BANDIT_ENVS_DATA names; None when unset or not there."""
    named = os.environ.get(VARIABLE)
    folder = Path(named).expanduser() if named else None
    return folder if folder is not None and folder.is_dir() else None


def fetched(name: str, folder: str | Path | None) -> Path:
    """The path of a data file, its checksum verified where it is known. See `captions` for what is raised."""
    public = FILES.get(name)
    if not isinstance(folder, (str, Path, type(None))):
        raise ValueError(f"folder must be a path or None, got {folder!r}")
    home = local_folder() if folder is None else Path(folder).expanduser()
    if folder is None and (SHIPPED / name).is_file() and not (home is not None and (home / name).is_file()):
        home = SHIPPED
    if home is not None and public is not None and public.table and (home / public.table).is_file():
        return fetched(public.table, home)
    if home is not None and (path := home / name).is_file():
        if public is not None and public.sha256 is not None:
            found = hashlib.sha256(path.read_bytes()).hexdigest()
            if found != public.sha256:
                text = f"{path} is truncated or altered: expected SHA-256 {public.sha256}, found {found};"
                raise ValueError(f"{text} the file is public at {public.url}")
        return path
    if public is not None and folder is None:
        return _download(public)
    if home is not None:
        other = f"leave `folder` out to download it from {public.url}" if public else "name the folder that has it"
        raise FileNotFoundError(f"no file {home / name}: put it there, or {other}")
    raise ValueError(
        f"no public address is known for {name}, only for {', '.join(FILES)}: pass `folder`, or set the environment "
        f"variable {VARIABLE} (now {os.environ.get(VARIABLE) or 'unset'}), to the folder that has the file"
    )


def _download(file: PublicFile) -> Path:
    """The cached copy of a public file, downloaded under a temporary name when it is absent or altered."""
    local = f"pass `folder`, or set the environment variable {VARIABLE}, to a folder that has {file.name}"
    try:
        import pooch  # type: ignore[import-untyped]
    except ImportError as error:
        raise ImportError(f"downloading {file.name} needs pooch: {install_hint()}. Without it, {local}") from error
    cache = pooch.os_cache("bandit_envs")
    try:
        expected = f"sha256:{file.sha256}" if file.sha256 else None
        return Path(pooch.retrieve(file.url, expected, fname=file.name, path=cache))
    except (OSError, ValueError) as error:
        kind = OSError if isinstance(error, OSError) else ValueError
        raise kind(f"could not download {file.url} to {cache}: {error}. Without a download, {local}") from error


def _read(
    path: Path, columns: Sequence[str], read: Callable[[dict[str, str]], T], beside: Sequence[str] = ()
) -> list[T]:
    """What `read` returns for each row of a CSV file, {column: text}; it names the lines for which that fails.

    The file must have the `columns` and may have those `beside`, each once.
    """
    table, found, unusable = cells_of(str(path), ","), list[T](), list[str]()
    if missing := [name for name in columns if name not in table.columns]:
        raise ValueError(f"{path}: columns {missing} are missing, found {table.columns}")
    if twice := sorted({name for name in (*columns, *beside) if table.columns.count(name) > 1}):
        raise ValueError(f"{path}: columns {twice} are there more than once, found {table.columns}")
    for place, fields in zip(table.places, table.rows, strict=True):
        try:
            found.append(read(dict(zip(table.columns, fields, strict=True))))
        except ValueError as error:
            unusable.append(f"{place}: {error}")
    if unusable:
        more = f"; and {len(unusable) - 3} more" if len(unusable) > 3 else ""
        raise ValueError(f"{path} has rows that cannot be used: {'; '.join(unusable[:3])}{more}")
    return found


RATINGS = ("unfunny", "somewhat_funny", "funny")  # the columns that count the ratings 1, 2, 3


@dataclass(frozen=True, eq=False)
class Captions:
    """The ratings of n captions.

    Attributes:
        counts: (n, 3) int64, how often each caption was rated 1 (unfunny), 2 (somewhat funny), 3 (funny); read-only.
        captions: the n texts, or none where the file has none.
        contest: number of the contest.
    """

    counts: NDArray[np.int64]
    captions: tuple[str, ...] = ()
    contest: int | None = None

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean ratings in [1, 3], (n,), each rounded once."""
        means: NDArray[np.float64] = self.counts @ np.array([1, 2, 3]) / self.counts.sum(axis=1)
        return means

    def arms(self) -> Categorical:
        """One arm per caption, in the order of the file: a pull is a rating, drawn from the caption's own counts."""
        return Categorical([1, 2, 3], self.counts)


def captions(contest: int, folder: str | Path | None = None) -> Captions:
    """The ratings of a New Yorker caption contest, used by Mason et al., NeurIPS 2020.

    Source: github.com/nextml/caption-contest-data-api, CC BY 4.0. The addresses of contests 627, 651 and 690 are known,
    and the checksums of 627 and 651. Files of other contests are read from a local folder.
    A file (CSV, UTF-8) has a header line, a caption in each row, and the integer columns `unfunny`,
    `somewhat_funny` and `funny`. Columns `count` (their sum) and `score` (the mean rating, to 1e-6) are verified where
    present, `caption` is kept, others are ignored.

    Args:
        contest: its number.
        folder: where `<contest>_summary_KLUCB.csv` is. None: the folder of the environment variable BANDIT_ENVS_DATA
            if it has the file, else the package (627 and 651), else a download, cached, of a known contest.

    Raises:
        ValueError: for a file whose checksum is wrong, one with columns missing or twice, or with lines that cannot be
            used, naming them and why; for an unknown contest without a folder, and arguments of wrong types.
        FileNotFoundError: when the folder lacks the file. OSError: when the download fails; nothing half-written is
            kept. ImportError: when a download needs pooch and it is not installed.
    """
    contest = integer("contest", contest, 1, 10**6)
    rows = _read(fetched(f"{contest}_summary_KLUCB.csv", folder), RATINGS, _ratings, ("count", "score", "caption"))
    table = np.array([counts for counts, _ in rows], np.int64)
    table.setflags(write=False)
    return Captions(table, tuple(text for _, text in rows if text is not None), contest)


def _ratings(row: dict[str, str]) -> tuple[list[int], str | None]:
    """How often a caption was rated 1, 2, 3, and its text, if it has one."""
    counts = [int(row[name]) for name in RATINGS]
    total = sum(counts)
    if min(counts) < 0 or not 0 < total < 2**50:
        raise ValueError(f"counts of ratings must be >= 0 and sum to 1 .. 2**50, got {counts}")
    if "count" in row and int(row["count"]) != total:
        raise ValueError(f"count is {row['count']}, but the ratings {counts} sum to {total}")
    mean = (counts[0] + 2 * counts[1] + 3 * counts[2]) / total
    if "score" in row and not abs(float(row["score"]) - mean) <= 1e-6:
        raise ValueError(f"score is {row['score']}, but the mean of the ratings {counts} is {mean}")
    return counts, row.get("caption")


PKIS2 = "pkis2_matrix_1um.csv"


def inhibitors(kinase: str = "ACVRL1", folder: str | Path | None = None) -> NDArray[np.float64]:
    """Mean activity -ln(1 - x / 100) of the compounds of PKIS2 against a kinase, (n,), in the order of the file.

    x is the percentage inhibition; compounds with x = 0 are dropped, and x = 100 counts as 99.9, as Mason et al.,
    NeurIPS 2020, do it (ACVRL1: 189 compounds remain). Source: Drewry et al., PLoS ONE 2017, CC BY.

    Args:
        kinase: a column of the file.
        folder: as for `captions`, as are the errors.

    Raises:
        ValueError: also for an unknown kinase (with the nearest ones), and entries that are no percentages.
    """
    path = fetched(PKIS2, folder)
    kinases = cells_of(str(path), ",").columns[1:]
    if kinase not in kinases:
        raise unknown("kinase", str(kinase), kinases)
    values = _read(path, [kinase], lambda row: number(f"the inhibition of {kinase}", float(row[kinase]), 0, 100))
    x = np.array([value for value in values if value > 0])
    activity: NDArray[np.float64] = -np.log1p(-np.where(x == 100, 99.9, x) / 100)
    return activity


SCALES = 7  # of a headline, 100 headlines each: question q = 1 .. 700 is of scale (q - 1) // 100
HEADLINES = 100
WIDTHS = (100, 100, 100, 100, 100, 100, 200)  # of the answers; the last scale is valence, -100 .. 100


def emotions(folder: str | Path | None = None) -> list[NDArray[np.float64]]:
    """How far 38 workers' ratings of headlines on 7 scales are from the experts', one table (n_i, 7) per worker.

    An entry is |answer - truth| / width of the scale; a row is one headline that the worker rated, on all scales.
    Workers come in the order of their names, headlines in that of the file's questions. Source: Snow, O'Connor,
    Jurafsky & Ng, EMNLP 2008; used by Katz-Samuels & Scott, ICML 2018.

    Args:
        folder: as for `captions`, as are the errors.

    Raises:
        ValueError: also for a worker who did not rate a headline on all scales.
    """
    truth = {q: value for q, value, _ in _ratings_of("emotion_truth.csv", ("question", "truth"), folder)}
    given: dict[str, NDArray[np.float64]] = {}
    for q, value, who in _ratings_of("emotion_answer.csv", ("question", "answer", "worker"), folder):
        off = given.setdefault(who, np.full((SCALES, HEADLINES), np.nan))
        place = divmod(q - 1, HEADLINES)
        if q not in truth or not np.isnan(off[place]):
            what = "has no truth, but an answer of" if q not in truth else "is answered twice by"
            raise ValueError(f"emotion_answer.csv: question {q} {what} worker {who}")
        off[place] = abs(value - truth[q]) / WIDTHS[place[0]]
    tables = []
    for worker, off in sorted(given.items()):
        rated = ~np.isnan(off)
        if (rated.any(axis=0) & ~rated.all(axis=0)).any():
            some = f"rated a headline on some scales only, not on all {SCALES}"
            raise ValueError(f"emotion_answer.csv: worker {worker} {some}")
        tables.append(off[:, rated[0]].T.copy())
    return tables


def _ratings_of(name: str, columns: tuple[str, ...], folder: str | Path | None) -> list[tuple[int, float, str]]:
    """Question, rating and the third of the columns, if any, of each line of a file."""

    def read(row: dict[str, str]) -> tuple[int, float, str]:
        q = integer(columns[0], int(row[columns[0]]), 1, SCALES * HEADLINES)
        rating = number(columns[1], float(row[columns[1]]), 100 - WIDTHS[(q - 1) // HEADLINES], 100)
        return q, rating, row[columns[-1]]

    return _read(fetched(name, folder), columns, read)


class _Part:
    """What a pickle says of an array or its type, kept as it stands: NumPy would make objects of bytes of the file."""

    state: Any = ()

    def __init__(self, *given: Any) -> None:
        self.given = given

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Numbers(pickle.Unpickler):
    """Reads what a pickle says of an array of numbers, and nothing else: a pickle may otherwise run any code."""

    def find_class(self, module: str, name: str) -> Any:
        made = name == "_reconstruct" and module in ("numpy.core.multiarray", "numpy._core.multiarray")
        if not made and (module != "numpy" or name not in ("ndarray", "dtype")):
            raise ValueError(f"{module}.{name} is no part of an array of numbers")
        return _Part

    def array(self) -> NDArray[Any]:
        """The array, a copy of bytes in the file."""
        _, shape, of, by_column, data = self.load().state
        mark, kind = of.state[1], of.given[0]
        if mark not in ("<", ">", "|", "=") or not re.fullmatch(r"[biuf][1248]", kind) or not isinstance(data, bytes):
            raise ValueError(f"it is of the type {mark!s:.8}{kind!s:.80}, not of numbers")
        return np.frombuffer(data, np.dtype(mark + kind)).reshape(shape, order="F" if by_column else "C").copy()


def score_table(name: str, folder: str | Path | None = None, **columns: Any) -> tuple[Floats, tuple[str, ...]]:
    """The scores (N, K) of K arms in the N rows of a public table, and the arms' names, none if it has none.

    Args:
        name: of the file, one of `FILES`: a pickled array (K, N), a table, or the records of LiveCodeBench, of
            AgentOpt (with cents=True the prices of calls, too, (N, K, 2)), or of "json", whose files are read together.
        folder: as for `captions`, as are the errors.
        columns: of a table, as for `measurements`.

    Raises:
        ValueError: also for a pickle of anything else than finite numbers with two axes; its code is not run.
    """
    if name.startswith(("agentopt", "json")):
        return _calls(name, folder, **columns) if name.startswith("agentopt") else _outcomes(folder)
    path = fetched(name, folder)
    if path.suffix == ".json":
        records = json.loads(path.read_text(encoding="utf-8"))["performances"]
        cells = {(one["question_id"], one["model"]): float(one["pass@1"]) for one in records}
        rows, models = dict.fromkeys(row for row, _ in cells), sorted({model for _, model in cells})
        return np.array([[cells[row, model] for model in models] for row in rows]), tuple(models)
    if path.suffix != ".pkl":
        table = measurements(path, **columns)
        return shared_scores(table), tuple(table.arms)
    try:
        with path.open("rb") as stream:
            found = array("scores", _Numbers(stream).array())
    except (ValueError, EOFError, pickle.UnpicklingError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is no pickle of an array of numbers: {error}") from None
    if found.ndim != 2 or not np.isfinite(found).all():
        raise ValueError(f"{path} must hold finite numbers with 2 axes, got {found!r:.200}")
    return found.T, ()


def _calls(name: str, folder: Any, cents: bool = False) -> tuple[Floats, tuple[str, ...]]:
    """The scores of models in AgentOpt, and the prices of calls; without the questions of which a call has failed."""
    path, prices, cells = fetched(name, folder), _TABLE["prices"], dict[tuple[int, str], list[float]]()
    heads, rows = ("item", "model", "score", "tokens_in", "tokens_out"), list[Any]()
    if path.suffix == ".csv":
        rows = _read(path, heads, lambda row: [row[one] for one in heads])
    for of in () if rows else map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        for call in of["datapoint_results"]:
            used = (sum(call[f"{side}_tokens"].values()) for side in ("input", "output"))
            rows.append([call["datapoint_index"], of["model_name"].removeprefix("agent="), call["score"], *used])
    for item, model, score, *tokens in rows:
        cells[int(item), model] = [float(score), float(np.dot(prices[model], [float(n) for n in tokens])) / 1e4]
    items = [i for i in sorted({i for i, _ in cells}) if all((i, model) in cells for model in prices)]
    table = np.array([[cells[i, model] for model in prices] for i in items])
    return (table if cents else table[..., 0]), tuple(prices)


def _outcomes(folder: Any) -> tuple[Floats, tuple[str, ...]]:
    """Whether the JSON of each model was valid, in the order of the requests' names."""
    models = tuple(name[5:-6] for name in FILES if name.startswith("json/"))
    paths = [fetched(f"json/{one}.jsonl", folder) for one in models]
    if paths[0].suffix == ".csv":
        return np.array(_read(paths[0], models, lambda row: [float(row[one]) for one in models])), models
    read = ([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] for path in paths)
    columns = [[float(x["passed"]) for x in sorted(rows, key=lambda x: str(x["id"]))] for rows in read]
    return np.array(columns).T, models
