"""The logs of evaluation harnesses: a table of their scores, and comparisons on the same items, valid at any time."""

from __future__ import annotations

import contextlib
import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bandit_envs import stopping
from bandit_envs.instances import MISSING, WORDS, number_in, rows_of_file
from bandit_envs.kernels import interval, number, require

from .evaluation.report import p_text
from .evaluation.statistics import mcnemar_midp

if TYPE_CHECKING:
    from pandas import DataFrame

Logs = Mapping[str, Any] | Sequence[str | Path]
Ends = tuple[float, float]
# A graded answer: its item, scores by metric (none: an error), candidate, mark of the item in all logs, and filter.
Row = tuple[Any, Mapping[str, Any], str, str, str]
GRADES = {**WORDS, "p": 0.5, "partial": 0.5, **dict.fromkeys(MISSING, math.nan)}  # P is Inspect's word


def logs_table(
    logs: Logs, *, item: str | None = None, value: str | None = None, filter: str | None = None, range: Ends = (0, 1)
) -> DataFrame:
    """The scores in logs of the same items, (items, logs), for `from_table(.., shared=True)`; NaN: there is none.

    Repeats of an item (epochs) are averaged. `attrs["skipped"]` counts the scores of each log that are empty or errors.

    Args:
        logs: paths, or {name: path or {item: score}}: logs of Inspect (.eval, .json), samples of lm-evaluation-harness
            (samples_*.jsonl), results of promptfoo (.json: a log for each provider and prompt), or tables (CSV, Excel,
            JSON Lines). Without names: those of models or providers, else of files; all, if these are not unique.
        item, value: of a table, its columns of items and scores. value is also a metric of lm-evaluation-harness, a
            scorer of Inspect, or "score" of promptfoo (None: "success"). None: the only one.
        filter: of lm-evaluation-harness, which filter counts. range: the lowest and the highest score.

    Raises:
        ValueError: for no such log, what is ambiguous, scores outside the range, a log twice, items that differ.
    """
    pandas, ends, marks = require("pandas", "a table of logs"), interval("range", range), dict[str, tuple[str, str]]()
    if not isinstance(logs, (Mapping, list, tuple)):
        raise TypeError(f"logs must be a list of paths, or a dict of paths or scores by names, got {logs!r:.80}")
    logs = {str(name): log for name, log in logs.items()} if isinstance(logs, Mapping) else logs
    given: list[tuple[str, Any]] = list(logs.items()) if isinstance(logs, Mapping) else [("", path) for path in logs]
    if wrong := [log for _, log in given if not isinstance(log, (str, Path, Mapping))]:
        raise TypeError(f"a log is a path, or a dict of scores by items, got {wrong[0]!r:.80}")
    paths = [Path(log).resolve() for _, log in given if not isinstance(log, Mapping)]
    if len(set(paths)) < len(paths):
        raise ValueError(f"a log is there twice: {max(paths, key=paths.count)}")
    long = list[tuple[str, tuple[str, ...], float]]()
    for name, log in given:
        path = name if isinstance(log, Mapping) else str(log)
        long += _scores(name, path, _rows(log, item, value, filter), value, filter, ends, marks)
    keys = list(dict.fromkeys(key for _, key, _ in long))
    short = [name or candidate or Path(path).stem for name, candidate, path in keys]
    unique = len({*short}) == len(short)
    names = {key: one if unique else " ".join(key).strip() for key, one in zip(keys, short, strict=True)}
    cells = pandas.DataFrame([(x, names[key], score) for x, key, score in long], columns=["item", "log", "score"])
    table: DataFrame = cells.groupby(["item", "log"])["score"].mean().unstack().rename_axis(columns=None)
    table.attrs["skipped"] = cells["score"].isna().groupby(cells["log"]).sum().to_dict()
    return table[list(names.values())]


def _scores(
    name: str, path: str, rows: list[Row], value: str | None, filter: str | None, ends: Ends, marks: dict[str, Any]
) -> list[tuple[str, tuple[str, ...], float]]:
    """The scores of a log, with their items and candidates; `marks` of items, with their logs, are added to others."""
    found, texts, filters = list[Any](), dict[str, bool](), sorted({row[4] for row in rows})
    if len(filters) > 1 and filter is None or filter not in (None, *filters):
        raise ValueError(f"{path} has the filters {filters}: say filter= (--filter), got {filter!r:.80}")
    rows = [row for row in rows if filter in (None, row[4])]
    metrics = list(dict.fromkeys(metric for row in rows for metric in row[1]))
    metric = metrics[0] if value is None and len(metrics) == 1 else value
    other, place = marks.setdefault("", (metric, path)) if metric else (metric, path)  # no item has this name
    if metric in metrics and other != metric:
        text = f"{path} has scores of {metric!r:.80}, and {place} of {other!r:.80}:"
        raise ValueError(f"{text} say which by value= (--value)")
    if metric not in metrics:
        raise ValueError(f"{path} has the scores {metrics[:20]}: say which by value= (--value), got {value!r:.80}")
    for item, scores, candidate, mark, _ in rows:
        key = str(int(item) if isinstance(item, float) and item.is_integer() else item).strip()
        of, score, is_text = f"{path}, item {key!r:.80}", math.inf, isinstance(item, str)
        if key in ("", "None") or texts.setdefault(key, is_text) != is_text:
            raise ValueError(f"{of}: each item has a name, and no two are a number and a text that look alike")
        kind = mark.partition(" ")[0]  # marks of different kinds say nothing of each other
        other, place = marks.setdefault(f"{kind} {key}", (mark, path)) if mark else (mark, path)
        if mark != other:
            raise ValueError(f"{of}: its data are not those of this item in {place}")
        word = str("" if scores.get(metric) is None else scores[metric]).strip().lower()
        with contextlib.suppress(ValueError):
            score = GRADES[word] if word in GRADES else number_in(word)
        if score < ends[0] or score > ends[1]:
            allowed = f"true, false, a word as C, I, P or correct, or from {ends[0]:g} to {ends[1]:g} (range=, --range)"
            raise ValueError(f"{of}: a score {metric or ''!r:.80} is {allowed}, or empty, got {scores[metric]!r:.80}")
        found.append((key, (name, candidate, path), score))
    return found


def _rows(log: Any, item: str | None, value: str | None, filter: str | None) -> list[Row]:
    """The rows of a log."""
    if isinstance(log, Mapping):
        return [(key, {value or "": x}, "", "", filter or "") for key, x in log.items()]
    if not (path := Path(log)).is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if path.suffix.lower() in (".eval", ".json"):
        try:
            if zipfile.is_zipfile(path):
                with contextlib.suppress(ImportError):
                    require("zipfile_zstd", "an archive")  # for zipfile, which knows zstd from Python 3.14 on
                with zipfile.ZipFile(path) as archive:
                    names = archive.namelist()
                    head = json.loads(archive.read("header.json" if "header.json" in names else "_journal/start.json"))
                    samples = (json.loads(archive.read(name)) for name in names if name.startswith("samples/"))
                    return [_row(sample, value, head["eval"]["model"]) for sample in samples]
            found = json.loads(path.read_text(encoding="utf-8-sig"))
            if "eval" in found:
                return [_row(sample, value, found["eval"]["model"]) for sample in found["samples"]]
            results = found["results"]["results"] if isinstance(found["results"], dict) else found["results"]
            many = len({row.get("promptIdx") for row in results}) > 1
            return [_row(row, value, f" prompt {row['promptIdx'] + 1}" if many else "") for row in results]
        except (ValueError, KeyError, TypeError, AttributeError, NotImplementedError, zipfile.BadZipFile) as error:
            how = "; where it is packed with zstd: pip install zipfile-zstd" if path.suffix == ".eval" else ""
            what = "no log of Inspect or promptfoo that is read, and of lm-eval give samples_*.jsonl"
            raise ValueError(f"{path} is {what}{how}: {error!r:.200}") from None
    (_, heads), *others = rows_of_file(str(path)) or [("", [])]
    if long := [place for place, cells in others if len(cells) > len(heads)]:
        raise ValueError(f"{path}, {long[0]}: it has more cells than there are columns, {heads[:20]}")
    if len({*heads}) < len(heads):
        text = f"{path} has columns of the same name:"
        raise ValueError(f"{text} {[head for head in heads if heads.count(head) > 1][:1]}")
    rows = [{head: cells[j] if j < len(cells) else "" for j, head in enumerate(heads)} for _, cells in others]
    if item is None and "doc_id" in heads:
        return [_row(row, value) for row in rows]
    if item not in heads or value not in heads:
        what = "a table needs the columns of items and scores, item= and value= (--item, --value)"
        raise ValueError(f"{path} has no doc_id; {what}, of {heads[:20]}, got {item!r:.80} and {value!r:.80}")
    return [(row[item], {str(value): row[value]}, "", "", "") for row in rows]


def _row(row: Mapping[str, Any], value: str | None, run: str = "") -> Row:
    """A row of any harness; `run`: of Inspect the model, of promptfoo what its prompt adds to the provider's name."""
    if "doc_id" in row:
        scores, hashed = {name: row.get(name) for name in row.get("metrics") or [value]}, row.get("doc_hash")
        mark = f"hash {hashed}" if hashed else f"lm-target {row['target']}" if "target" in row else ""
        return row["doc_id"], scores, "", mark, row.get("filter") or ""
    if "provider" not in row:
        scores = {} if row.get("error") else {name: x["value"] for name, x in (row.get("scores") or {}).items()}
        return row["id"], scores, run, f"target {json.dumps(row.get('target'))}", ""
    one, reason = row["provider"], row.get("failureReason")
    failed = reason == 2 or reason is None and row.get("error") and not row.get("gradingResult")  # no wrong answer
    scores = {} if failed else {**(row.get("namedScores") or {}), "success": row["success"], "score": row.get("score")}
    variables = row.get("vars") or (row.get("testCase") or {}).get("vars")
    item = json.dumps(variables, sort_keys=True, ensure_ascii=False) if variables else row.get("testIdx")
    scores = {value or "success": scores.get(value or "success")} if scores else {}
    return item, scores, (one.get("label") or one["id"] if isinstance(one, dict) else str(one)) + run, "", ""


def compare_logs(logs: Logs, *, control: str | None = None, delta: float = 0.05, **columns: Any) -> DataFrame:
    """Compare logs of evaluation harnesses on the items that all of them have scored; valid at any time.

    Look after each item, and stop when you like. Items must be a random sample of those that are meant, and which items
    are there must not depend on their scores. Differences are samples of a bounded arm: mixtures of bets, those of
    `stopping.betting` (Waudby-Smith & Ramdas, JRSS B 2024, section 4), are evidence that their mean is above m, and
    below. The interval has all m at which neither reaches 2 / delta; p is 2 over the larger one at m = 0, at most 1.

    Args:
        logs, columns: and item, value, filter, range: of `logs_table`. delta: 1 - the level of the intervals, together.
        control: the log that the others are compared with. None: of two the first, of more the best.

    Returns:
        A row for each comparison: `a` (the control, the best or the first), `b`, `items`, `mean_a`, `mean_b`,
        `difference` (b - a), its interval `low`, `high`, `p`; of scores that are the lowest or the highest, else NaN,
        `both`, `only_a`, `only_b`, counts of the highest, and `mcnemar`, the exact test's p, for a number of items that
        was fixed beforehand; and a `sentence`. delta is shared by `attrs["comparisons"]`, and each p multiplied by it:
        K - 1, or K (K - 1) / 2 of the best, which scores choose. `attrs["left_out"]`: scored items that others lack.

    Raises:
        ValueError: for one log alone, a control that is none of them, no item in common; and as `logs_table`.
    """
    scores, delta = logs_table(logs, **columns), number("delta", delta, 0, 1, above=True, below=True)
    names, full = list(map(str, scores)), scores.dropna()
    if len(names) < 2 or control not in (None, *names):
        raise ValueError(f"two logs or more are needed, and a control is one of them, got {names} and {control!r:.80}")
    if full.empty:
        raise ValueError(f"no item has a score in all logs, {', '.join(names)}: there are {list(scores.index[:5])}")
    first = control or (names[0] if len(names) == 2 else str(full.mean().idxmax()))
    pairs = len(names) - 1 if control else math.comb(len(names), 2)
    lost: Any = {"left_out": (scores.count() - len(full)).to_dict(), **scores.attrs, "comparisons": pairs}
    rows = [_compared(full[[first, b]], columns.get("range", (0, 1)), delta, lost) for b in names if b != first]
    found: DataFrame = type(scores)(rows)
    found.attrs = {**lost, "level": 1 - delta, "control": control}
    return found


def _compared(table: DataFrame, ends: Ends, delta: float, lost: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a comparison of two columns; `lost`: its attributes."""
    width, pairs, (x, y), (a, b) = ends[1] - ends[0], lost["comparisons"], table.to_numpy(np.float64).T, list(table)
    d = np.sort((y - x) / width)  # sums do not depend on the order of items
    moments = np.array([((d - d.mean()) ** k).mean() for k in (2, 3, 4)])
    common, n, mean = stopping.common("bounded", support=(-1.0, 1.0)), np.array([len(d)]), d.mean(keepdims=True)
    low, high = width * stopping.arm_intervals(common, n, mean, moments, delta / pairs)[0]
    above_0 = stopping.Certifier.of("threshold", 1, common, 0.0, 0.0)
    p = min(1.0, 2 * pairs * math.exp(-stopping.sides(above_0, n[None], mean[None], moments[None]).max()))
    found: dict[str, Any] = {"a": a, "b": b, "items": len(x), "mean_a": x.mean(), "mean_b": y.mean()}
    found |= {"difference": width * mean[0], "low": low, "high": high, "p": p}
    found |= dict.fromkeys(("both", "only_a", "only_b", "mcnemar"), math.nan)
    binary, (better, worse, sign) = np.isin([x, y], ends).all(), (b, a, 1) if mean[0] > 0 else (a, b, -1)
    unit, form = (100 * sign, ".1f") if binary and width == 1 else (sign, ".3g")
    low, high, more = *sorted((unit * low, unit * high)), f"{unit * width * mean[0]:{form}}"
    verb = f"is right {more} percentage points more often than" if form == ".1f" else f"scores {more} more than"
    verb = verb if mean[0] else "is as good as"
    said = f"{better} {verb} {worse} ({100 - 100 * delta:.4g} % interval {low:{form}} to {high:{form}}, valid at any "
    said += f"time{f', for {pairs} comparisons together' if pairs > 1 else ''}; p {p_text(p)}), of {len(x)} items that "
    said += f"{'both' if len(lost['skipped']) == 2 else 'all'} have scored."
    said += " This may still be chance." if low <= 0 <= high else ""
    if binary:
        counts = [int(((x == i) & (y == j)).sum()) for i, j in ((ends[1], ends[1]), ends[::-1], ends)]
        k, m = min(counts[1:]), sum(counts[1:])
        exact = min(1.0, pairs * (mcnemar_midp(*counts[1:]) + math.comb(m, k) / 2**m))
        found |= dict(zip(("both", "only_a", "only_b", "mcnemar"), (*counts, exact), strict=True))
        said += f" McNemar's exact test says p {p_text(exact)}, if the number of items was fixed beforehand."
    for name in (a, b):
        skipped, left = lost["skipped"][name], lost["left_out"][name]
        words: list[tuple[Any, str]] = [(skipped, "errors or empty scores"), (left, "items of it alone")]
        if parts := [f"{many:,} {what}" for many, what in words if many]:
            said += f" Left out of {name}: {' and '.join(parts)}."
    return {**found, "sentence": said}
