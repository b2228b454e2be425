"""The logs of evaluation harnesses: a table of their scores, and comparisons on the same items, valid at any time."""

from __future__ import annotations

import contextlib
import json
import math
import re
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from bandit_envs import stopping
from bandit_envs.instances import MISSING, NUMBERS, WORDS, cells_of, number_in
from bandit_envs.kernels import interval, number, require, unzipped, within_ends

from .evaluation.report import p_text
from .evaluation.statistics import mcnemar_midp

if TYPE_CHECKING:
    from pandas import DataFrame

Logs = Mapping[str, Any] | Sequence[str | Path]
Ends = tuple[float, float]
Numbers = NDArray[Any]
Read = tuple[list["Row"], tuple[str, str, str, str]]
GRADES = {**WORDS, "p": 0.5, "partial": 0.5, **dict.fromkeys(MISSING, math.nan)}  # P is Inspect's word
LM_EVAL = re.compile(r"samples_(.+)_\d{4}-\d\d-\d\dT.+\.jsonl")  # in a folder that is named after the model
CANDIDATES = re.compile(r"(model|llm|provider|candidate|variant|system|agent|prompt|config|task)([_ ](name|id))?")
SINES = np.sin((np.arange(8) + 0.5) * math.pi / 16)  # bets like Beta(1/2, 1/2) on items that one log alone has right
BETS = np.append(stopping.BETS, SINES)
SHARES = np.append(0.6 * np.array(stopping.SHARES), np.full(8, 0.4 / 8))  # of bets
HALVINGS = 40  # of an end of an interval
CLOCK = re.compile(r"[\d\s:TZ.+-]+|[\da-fA-F-]{32,36}")  # numbers, times, or marks of random bits


class Row(NamedTuple):
    """A graded answer."""

    item: Any
    scores: Mapping[str, Any]  # by metric; none: an error
    candidate: str = ""
    mark: str = ""  # lines on the item's data, the same in all logs
    filter: str = ""
    repeat: Any = None  # which one of its item, each once; None: not known
    failed: bool = False  # an error that has a score
    data: Any = None  # items with the same may be one


def logs_table(
    logs: Logs, *, item: str | None = None, value: str | None = None, filter: str | None = None, range: Ends = (0, 1),
    sep: str | None = None, sheet: str | int | None = None,
) -> DataFrame:  # fmt: skip
    """The scores in logs of the same items, (items, logs), for `from_table(.., shared=True)`; NaN: there is none.

    Repeats of an item (epochs) are averaged. `attrs["skipped"]` counts the scores of each log that are empty or errors,
    `attrs["errors"]` its errors that have a score, which counts; `attrs["alike"]` counts items with the data of another
    one, which may be repeats; `attrs["read"]` says in a line what was read as what.

    Args:
        logs: paths, or {name: path or {item: score}}: logs of Inspect (.eval, .json), samples of lm-evaluation-harness
            (`samples_*.jsonl`), results of promptfoo (.json: a log for each provider and prompt), tables (CSV, Excel,
            JSON Lines, Parquet), or folders of lm-evaluation-harness (a log for each model) or Inspect. Without names:
            those of models or providers, else of files; longer ones, if these are not unique.
        item: of a table, its column of items; or another field that names the items of lm-evaluation-harness or
            promptfoo, as "testIdx". None: the only one.
        value: of a table, its column of scores; or a metric of lm-evaluation-harness, a scorer of Inspect, or "score"
            of promptfoo (None: "success"). None: the only one.
        filter: of lm-evaluation-harness, which filter counts. range: the lowest and the highest score.
        sep: of CSV, the mark between cells. sheet: of Excel, the sheet.

    Raises:
        ValueError: for no such log, what is ambiguous, scores outside the range, a log twice, items that differ.
    """
    return _tables(logs, range, item, value, filter, sep, sheet)[0]


def _tables(
    logs: Logs, range: Ends = (0, 1), item: Any = None, value: Any = None, filter: Any = None, sep: Any = None,
    sheet: Any = None,
) -> tuple[DataFrame, DataFrame]:  # fmt: skip
    """The table, and the one in which errors and empty scores are the lowest."""
    pandas, ends, marks = require("pandas", "a table of logs"), interval("range", range), dict[str, tuple[str, str]]()
    item, value, filter = map(_composed, (item, value, filter))
    cells, read = list[tuple[Any, ...]](), list[tuple[Any, ...]]()
    for name, path, source in _given(logs):
        try:
            rows, (items, candidates, *fields) = _read(source, item, value, filter, sep, sheet)
            others = _scores(name, path, rows, fields[0], value, filter, ends, marks, cells)
        except RecursionError:
            raise ValueError(f"{path} is nested too deeply") from None
        read.append((items, "their names" if name else candidates, *fields, *others))
    if item not in (None, *(one[0] for one in read)):
        raise ValueError(f"no log has a field item={item!r:.80} (--item): items are by {[one[0] for one in read]}")
    keys = list(dict.fromkeys(key for _, key, *_ in cells))
    forms = [[name or candidate or Path(path).stem for name, candidate, path in keys]]
    forms += [[" ".join(key[:2]).strip() for key in keys], [" ".join(key).strip() for key in keys]]
    names = dict(zip(keys, next((one for one in forms if len({*one}) == len(one)), forms[-1]), strict=True))
    found = [(x, names[key], *more) for x, key, *more in cells]
    long = pandas.DataFrame(found, columns=["item", "log", "score", "error", "data"])
    means = long.assign(floor=long["score"].fillna(ends[0])).groupby(["item", "log"])[["score", "floor"]].mean()
    means = means.apply(lambda column: within_ends(column.to_numpy(), *ends)).unstack()
    table, floor = (means[name][list(names.values())].rename_axis(columns=None) for name in ("score", "floor"))
    for name, counted in (("skipped", long["score"].isna()), ("errors", long["error"])):
        table.attrs[name] = counted.groupby(long["log"]).sum().to_dict()
    table.attrs["alike"] = int(long.drop_duplicates("item")["data"].dropna().duplicated().sum())
    table.attrs["read"] = _said(read, table, len(long) - len(long.drop_duplicates(["item", "log"])))
    return table, floor


def _said(read: list[tuple[Any, ...]], table: DataFrame, repeated: int) -> str:
    """In one line, what was read as what, and what was left out."""
    words, of = list(zip(*read, strict=True)), table.attrs
    by, candidates, repeats, unread, metric = (" or ".join(dict.fromkeys(filter(None, one))) for one in words[:5])
    parts = [f"{len(table.columns)} logs (by {candidates}), {len(table):,} items (by {by})"]
    parts += [f"scores of {metric}"] if metric else []
    parts += [f"{repeated:,} repeats{repeats and f' (by {repeats})'} are averaged" if repeated else "no repeats"]
    parts += [f"{of['alike']:,} items have the data of another"] if of["alike"] else []
    parts += [f"{many:,} errors of {name} have a score, which counts" for name, many in of["errors"].items() if many]
    out = [f"{many:,} errors or empty scores of {name}" for name, many in of["skipped"].items() if many]
    out += [f"{sum(words[5]):,} rows of other filters"] if any(words[5]) else []
    out += [f"the columns {unread}"] if unread else []
    return f"read: {'; '.join(parts)}; left out: {', '.join(out) or 'nothing'}"


def _given(logs: Logs) -> list[tuple[str, str, Any]]:
    """Names, paths and logs."""
    if not isinstance(logs, (Mapping, list, tuple)):
        raise TypeError(f"logs must be a list of paths, or a dict of paths or scores by names, got {logs!r:.80}")
    found = list[tuple[str, str, Any]]()
    for key, log in logs.items() if isinstance(logs, Mapping) else [("", log) for log in logs]:
        if not isinstance(log, (str, Path, Mapping)):
            raise TypeError(f"a log is a path, or a dict of scores by items, got {log!r:.80}")
        name = _composed(str(key))
        found += [(name, name, log)] if isinstance(log, Mapping) else [(name, str(x), x) for x in _files(Path(log))]
    paths = [path.resolve() for _, _, path in found if isinstance(path, Path)]
    if len(set(paths)) < len(paths):
        raise ValueError(f"a log is there twice: {max(paths, key=paths.count)}")
    if not logs or isinstance(logs, Mapping) and len({_composed(str(key)) for key in logs} - {""}) < len(logs):
        raise ValueError(f"no log, one without a name, or two logs have the same name, in {list(logs)}")
    return found


def _files(path: Path) -> list[Path]:
    """A file, or the logs in a folder: samples of lm-evaluation-harness, one of each model, or logs of Inspect."""
    if not path.is_dir():
        return [path]
    found = sorted(path.rglob("samples_*.jsonl")) or sorted(path.rglob("*.eval"))
    models = [one.parent for one in found if one.suffix == ".jsonl"]
    if len({*models}) < len(models):
        twice = [one.name for one in found if models.count(one.parent) > 1]
        raise ValueError(f"{path} has several logs of a model, {twice[:5]}: give the paths of those that are meant")
    if not found:
        raise FileNotFoundError(f"there is no samples_*.jsonl and no *.eval in the folder {path}")
    return found


def _composed(text: Any) -> Any:
    """A text in the one form of Unicode in which names and items are compared."""
    return normalize("NFC", text) if isinstance(text, str) else text


def _json(data: Any) -> str:
    return json.dumps(data, sort_keys=True, ensure_ascii=False)


def _scores(
    name: str, path: str, rows: list[Row], repeats: str, value: Any, filter: Any, ends: Ends, marks: Any, cells: Any
) -> tuple[str, int]:
    """The metric of a log, and its rows of other filters. The scores go to `cells`, and what marks items to `marks`."""
    texts, seen, every = dict[str, bool](), set[tuple[str, str, Any]](), len(rows)
    rows = [row._replace(scores={_composed(x): score for x, score in row.scores.items()}) for row in rows]
    filters = sorted({row.filter for row in rows})
    if len(filters) > 1 and filter is None or filter not in (None, *filters):
        raise ValueError(f"{path} has the filters {filters}: say filter= (--filter), got {filter!r:.80}")
    rows = [row for row in rows if filter in (None, row.filter)]
    metrics = list(dict.fromkeys(metric for row in rows for metric in row.scores))
    metric = metrics[0] if value is None and len(metrics) == 1 else value
    other, place = marks.setdefault("", (metric, path)) if metric else (metric, path)  # no item has this name
    if metric in metrics and other != metric:
        text = f"{path} has scores of {metric!r:.80}, and {place} of {other!r:.80}:"
        raise ValueError(f"{text} say which by value= (--value)")
    if metric not in metrics:
        there = f"the scores {metrics[:20]}" if metrics else "no row with a score, only errors"
        raise ValueError(f"{path} has {there}: say which by value= (--value), got {value!r:.80}")
    for item, scores, candidate, mark, _, repeat, failed, data in rows:
        name_of = int(item) if isinstance(item, float) and item.is_integer() else item
        key, score, is_text = _composed(str(name_of)).strip(), math.inf, isinstance(item, str)
        of = f"{path}, item {key!r:.80}"
        if key == "" or item is None or item != item or texts.setdefault(key, is_text) != is_text:
            text = f"{of}: each item has a name, and no two are a number and a text that look alike;"
            raise ValueError(f"{text} item= (--item) says which field it is, as 'testIdx' of promptfoo")
        if repeat is not None and (candidate, key, repeat) in seen:
            text = f"{of}: it is there twice with the same {repeats}: two tasks, filters or candidates in one file?"
            raise ValueError(f"{text} Give each a file or a label; or say item= (--item), the field that names an item")
        seen.add((candidate, key, repeat))
        for line in mark.split("\n") if mark else ():  # those of different kinds say nothing of each other
            other, place = marks.setdefault(f"{line.partition(' ')[0]} {key}", (line, path))
            if line != other:
                raise ValueError(f"{of}: its data are not those of this item in {place}")
        word = str("" if scores.get(metric) is None else scores[metric]).strip().lower()
        with contextlib.suppress(ValueError):
            score = GRADES[word] if word in GRADES else number_in(word)
        score = within_ends(score, *ends) if score < ends[0] or score > ends[1] else score
        if score < ends[0] or score > ends[1]:
            allowed = f"true, false, a word as C, I, P or correct, or from {ends[0]:g} to {ends[1]:g} (range=, --range)"
            raise ValueError(f"{of}: a score {metric or ''!r:.80} is {allowed}, or empty, got {scores[metric]!r:.80}")
        cells.append((key, (name, _composed(candidate), path), score, failed and score == score, data))
    return metric or "", every - len(rows)


def _read(log: Any, item: str | None, value: str | None, filter: str | None, sep: Any, sheet: Any) -> Read:
    """The rows of a log, and the fields that are items, candidates and repeats, and that are not read."""
    if isinstance(log, Mapping):
        rows = [Row(key, {value or "": x}, filter=filter or "", repeat=0) for key, x in log.items()]
        return rows, ("the keys", "", "name", "")
    if not (path := Path(log)).is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if path.suffix.lower() in (".eval", ".json"):
        try:
            if zipfile.is_zipfile(path):
                with contextlib.suppress(ImportError):
                    require("zipfile_zstd", "an archive")  # for zipfile, which knows zstd from Python 3.14 on
                with unzipped(path) as archive:
                    names = dict.fromkeys(archive.namelist())
                    head = json.loads(archive.read("header.json" if "header.json" in names else "_journal/start.json"))
                    samples = (json.loads(archive.read(name)) for name in names if name.startswith("samples/"))
                    return _inspect(samples, head)
            found = json.loads(path.read_text(encoding="utf-8-sig"))
            if "eval" in found:
                return _inspect(found["samples"], found)
            results = found["results"]
            return _promptfoo(results["results"] if isinstance(results, dict) else results, item, value)
        except (ValueError, KeyError, TypeError, AttributeError, NotImplementedError, zipfile.BadZipFile) as error:
            hint = "; where it is packed with zstd: pip install zipfile-zstd" if path.suffix == ".eval" else ""
            what = "no log of Inspect or promptfoo that is read, and of lm-eval give samples_*.jsonl"
            raise ValueError(f"{path} is {what}{hint}: {error!r:.200}") from None
    cells = cells_of(str(path), sep, sheet)
    places = {head: cells.column(head) for head in cells.columns}
    table, heads = [{head: row[j] for head, j in places.items()} for row in cells.rows], list(places)
    try:
        if {"provider", "testIdx"} <= {*heads}:
            return _promptfoo(table, item, value)
        if "doc_id" in heads and item in (None, *heads):
            return _lm_eval(path, table, item, value)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is no log of lm-eval or promptfoo that is read: {error!r:.200}") from None
    if item not in heads or value not in heads:
        what = "a table needs the columns of items and scores, item= and value= (--item, --value)"
        raise ValueError(f"{path}: {what}, of {heads[:20]}, got {item!r:.80} and {value!r:.80}")
    unread, items = [head for head in heads if head not in (item, value)], dict[str, list[Any]]()
    for row in table:
        items.setdefault(str(row[item]), []).append(row)
    several = [rows for rows in items.values() if len(rows) > 1]
    for head in unread if several else ():
        kinds = Counter(tuple(sorted(str(row[head]) for row in rows)) for rows in several)
        (kind, most), known = kinds.most_common(1)[0], CANDIDATES.fullmatch(head.lower())
        same = len({*kind}) > 1 and most >= max(3, 0.9 * len(several))  # each item has all of a few cells
        named = known and any(len({*kind}) > 1 for kind in kinds)
        if (same or named) and re.split("[_ ]", head.lower())[-1] not in NUMBERS.split():
            text = f"{path} has items with several {head!r}, which are no repeats: give each a file"
            raise ValueError(f"{text}; of repeats call the column 'repeat', or leave it out")
    return [Row(row[item], {str(value): row[value]}) for row in table], (str(item), "file", "", ", ".join(unread))


def _lm_eval(path: Path, rows: list[dict[str, Any]], item: str | None, value: str | None) -> Read:
    """Samples of lm-evaluation-harness, which has no repeats: what is there twice is another task, or was appended."""
    named, found = LM_EVAL.fullmatch(path.name), list[Row]()
    model, task = (path.resolve().parent.name, f"\nlm-task {named[1]}") if named else ("", "")
    for row in rows:
        numbers = [value] if value else [name for name, x in row.items() if isinstance(x, (int, float))]
        metrics = row.get("metrics") or [name for name in numbers if name not in ("doc_id", "target")]
        if not isinstance(metrics, list) or not all(isinstance(one, str) for one in metrics):
            raise ValueError(f"metrics are a list of names, got {metrics!r:.80}")
        hashed = row.get("doc_hash")
        mark = _composed(f"hash {hashed}" if hashed else f"lm-target {_json(row.get('target'))}{task}")
        scores, repeat = {name: row.get(name) for name in metrics}, None if hashed or item else 0
        of = _composed(str(row.get("filter") or ""))
        found.append(Row(row[item or "doc_id"], scores, model, mark, of, repeat, data=hashed))
    return found, (item or "doc_id", "the folder of the model" if model else "file", "doc_id", "")


def _inspect(samples: Any, head: Mapping[str, Any]) -> Read:
    """Samples of Inspect. An error with a score was scored (`score_on_error`); what is invalidated has none."""
    found, model = list[Row](), str(head["eval"]["model"])
    for row in samples:
        scores = {name: x["value"] for name, x in (row.get("scores") or {}).items() if not row.get("invalidation")}
        asked = _asked(row.get("input"), row.get("attachments") or {})
        mark = _composed(f"target {_json(row.get('target'))}\ninput {hash(asked)}")
        data = hash(_json([asked, *(row.get(name) for name in ("target", "choices", "files", "setup"))]))
        found.append(Row(row["id"], scores, model, mark, "", row.get("epoch"), bool(row.get("error")), data))
    return found, ("id", "eval.model", "epoch", "")


def _asked(given: Any, attachments: Mapping[str, str]) -> str:
    """The input of a sample, without the ids of its messages, and with what is attached."""
    if isinstance(given, list):
        given = [{name: one.get(name) for name in ("role", "content")} for one in given]
    return re.sub(r"attachment://(\w+)", lambda at: _json(attachments.get(at[1], at[0]))[1:-1], _composed(_json(given)))


def _promptfoo(rows: list[dict[str, Any]], item: str | None, value: str | None) -> Read:
    """Results of promptfoo. An item is the test case: its repeats have numbers of their own, `testIdx`."""
    names = [one.get("label") or one["id"] if isinstance(one := row["provider"], dict) else str(one) for row in rows]
    prompts = {(name, row.get("promptIdx")) for name, row in zip(names, rows, strict=True)}
    found, items, many = list[Row](), "test case: description, vars, assert", len(prompts) > len({*names})
    for name, row in zip(names, rows, strict=True):
        case, reason = row.get("testCase") or {}, row.get("failureReason")
        of = [case.get("description"), case.get("vars") or row.get("vars"), case.get("assert")]
        given = of[1] if isinstance(of[1], dict) else {}
        still = {name: x for name, x in given.items() if not CLOCK.fullmatch(str(x))}
        data = _json([of[0], still, of[2]]) if still else None  # a clock or a counter alone tells no items apart
        if item in (fields := {**given, **case, **row}):
            of, items, data = [fields[item]], str(item), None
        texts = [x if isinstance(x, str) else _json(x) for x in of if x or x == 0]
        failed = reason == 2 or reason is None and row.get("error") and not row.get("gradingResult")  # no wrong answer
        scores = {"success": row["success"]} if not failed else {}
        scores |= {"score": row.get("score"), **(row.get("namedScores") or {})} if value and not failed else {}
        candidate = name + (f" prompt {row['promptIdx'] + 1}" if many else "")
        found.append(Row(" ".join(texts), scores, candidate, repeat=row.get("testIdx"), data=data))
    return found, (items, "provider, prompt" if many else "provider", "testIdx", "")


def compare_logs(logs: Logs, *, control: str | None = None, delta: float = 0.05, **columns: Any) -> DataFrame:
    """Compare logs of evaluation harnesses on the items that all of them have scored; valid at any time.

    Look after each item, and stop when you like. Items must be a random sample of those that are meant, and which items
    are there must not depend on their scores. The evidence that the mean of the differences, scaled to [-1, 1], is
    above m is a mixture of the capitals prod (1 + f ((1 + d) / (1 + m) - 1)) over bets f (Waudby-Smith & Ramdas, JRSS B
    2024, section 4); that it is below, of -d. The interval has all m at which neither reaches 2 / delta; p is 2 over
    the larger one at m = 0, at most 1.

    Args:
        logs, item, value, filter, range, sep, sheet: as for `logs_table`.
        delta: 1 - the level of the intervals, together.
        control: the log that the others are compared with. None: of two the first, of more the best.

    Returns:
        A row for each comparison: `a` (the control, the best or the first), `b`, `items`, `mean_a`, `mean_b`,
        `difference` (b - a), its interval `low`, `high`, `p`; of scores that are the lowest or the highest, else NaN,
        `both`, `only_a`, `only_b`, counts of the highest, and `mcnemar`, the exact test's p, for a number of items that
        was fixed beforehand; and a `sentence`. delta is shared by `attrs["comparisons"]`, and each p multiplied by it:
        K - 1, or K (K - 1) / 2 of the best, which scores choose. `attrs["left_out"]`: scored items that others lack;
        and the `attrs` of `logs_table`. Where errors and empty scores as lowest scores would turn the conclusion, the
        sentence says so.

    Raises:
        ValueError: for one log alone, a control that is none of them, no item in common; and as `logs_table`.
    """
    (scores, lowest), delta = _tables(logs, **columns), number("delta", delta, 0, 1, above=True, below=True)
    names, full, control = list(map(str, scores)), scores.dropna(), _composed(control)
    if len(names) < 2 or control not in (None, *names):
        raise ValueError(f"two logs or more are needed, and a control is one of them, got {names} and {control!r:.80}")
    if full.empty:
        raise ValueError(f"no item has a score in all logs, {', '.join(names)}: there are {list(scores.index[:5])}")
    first = control or (names[0] if len(names) == 2 else str(full.mean().idxmax()))
    pairs = len(names) - 1 if control else math.comb(len(names), 2)
    lost: Any = {"left_out": (scores.count() - len(full)).to_dict(), **scores.attrs, "comparisons": pairs}
    if alone := [f"{many:,} of {name}" for name, many in lost["left_out"].items() if many]:
        lost["read"] += f"; items that another log has not scored: {', '.join(alone)}"
    lowest, ends = lowest.dropna(), interval("range", columns.get("range", (0, 1)))
    others = [[first, b] for b in names if b != first]
    rows = [_compared(full[pair], lowest[pair], ends, delta, lost) for pair in others]
    found: DataFrame = type(scores)(rows)
    found.attrs = {**lost, "level": 1 - delta, "control": control}
    return found


def _difference(table: DataFrame, ends: Ends, share: float) -> tuple[float, float, float, float]:
    """The mean difference of two columns, the ends of its interval of level 1 - share, and p."""
    width, (x, y) = ends[1] - ends[0], table.to_numpy(np.float64).T
    d, counts = np.unique((y - x) / width, return_counts=True)
    mean, need = float(d @ counts) / len(x), math.log(2 / share)
    sides = ((d, counts), (-d[::-1], counts[::-1]))
    found = [_excluded(*one, m, need) for one, m in zip(sides, (mean, -mean), strict=True)]
    p = 2 * math.exp(-max(_evidence(*one, 0.0) for one in sides))
    return width * mean, width * found[0], -width * found[1], p


def _evidence(d: Numbers, counts: Numbers, m: float) -> float:
    """The logarithm of the mixture of capitals against a mean of at most m, of differences d in [-1, 1]."""
    logs = counts @ np.log1p(np.outer((1 + d) / max(1 + m, 1e-12) - 1, BETS))
    return float(np.logaddexp.reduce(logs + np.log(SHARES)))


def _excluded(d: Numbers, counts: Numbers, mean: float, need: float) -> float:
    """The largest mean that is excluded from below, but for rounding; -1: none is."""
    low, high = -1.0, mean
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _evidence(d, counts, middle) >= need else (low, middle)
    return low


def _compared(table: DataFrame, lowest: DataFrame, ends: Ends, delta: float, lost: Any) -> dict[str, Any]:
    """A row of a comparison of two columns; `lowest`: errors have the lowest score; `lost`: its attributes."""
    pairs, (x, y), (a, b) = lost["comparisons"], table.to_numpy(np.float64).T, list(table)
    binary, level = np.isin([x, y], ends).all(), f"{100 - 100 * delta:.4g} % interval"
    as_points = binary and ends[1] - ends[0] == 1

    def in_words(mean: float, low: float, high: float) -> str:
        (better, worse, sign), form = (b, a, 1) if mean > 0 else (a, b, -1), ".1f" if as_points else ".3g"
        low, high, more = (sign * (100 if as_points else 1) * end for end in (low, high, mean))
        verb = f"is right {more:{form}} percentage points" if as_points else f"scores {more:{form}}"
        said = f"{better} {verb} more{' often' if as_points else ''} than {worse}" if mean else ""
        said = said or f"{a} and {b} have the same mean, which does not show that they are equally good"
        return f"{said} ({level} {min(low, high):{form}} to {max(low, high):{form}}"

    (*of, p), (*bound, _) = _difference(table, ends, delta / pairs), _difference(lowest, ends, delta / pairs)
    p = min(1.0, pairs * p)
    found: dict[str, Any] = {"a": a, "b": b, "items": len(x), "mean_a": x.mean(), "mean_b": y.mean()}
    found |= {**dict(zip(("difference", "low", "high"), of, strict=True)), "p": p}
    found |= dict.fromkeys(("both", "only_a", "only_b", "mcnemar"), math.nan)
    said = f"{in_words(*of)}, valid at any time{f', for {pairs} comparisons together' if pairs > 1 else ''}; p "
    said += f"{p_text(p)}), of {len(x)} items that {'both' if len(lost['skipped']) == 2 else 'all'} have scored."
    said += " This may still be chance." if of[0] and of[1] <= 0 <= of[2] else ""
    if binary:
        counts = [int(((x == i) & (y == j)).sum()) for i, j in ((ends[1], ends[1]), ends[::-1], ends)]
        k, m = min(counts[1:]), sum(counts[1:])
        exact = min(1.0, pairs * (mcnemar_midp(*counts[1:]) + math.comb(m, k) / 2**m))
        found |= dict(zip(("both", "only_a", "only_b", "mcnemar"), (*counts, exact), strict=True))
        said += f" McNemar's exact test says p {p_text(exact)}, if the number of items was fixed beforehand."
    for name in (a, b):
        kinds = (("skipped", "errors or empty scores"), ("left_out", "items that another log has not scored"))
        if parts := [f"{many:,} {what}" for key, what in kinds if (many := lost[key][name])]:
            said += f" Left out of {name}: {' and '.join(parts)}."
        said += f" {many:,} errors of {name} have a score, which counts." if (many := lost["errors"][name]) else ""
    verdicts = [(np.sign(mean), low > 0, high < 0) for mean, low, high in (of, bound)]
    if verdicts[0] != verdicts[1]:
        said += f" It depends on what is left out: with the score {ends[0]:g} for each error and empty score, "
        said += f"{in_words(*bound)})."
    if lost["alike"]:
        said += f" {lost['alike']:,} items have the data of another: if they are repeats, they are no items."
    return {**found, "sentence": said}
