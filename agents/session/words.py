"""What a session asks, in words of those who measure."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from bandit_envs import Problem

if TYPE_CHECKING:
    from .session import Session

ENDINGS = {"s": "es", "x": "es", "ch": "es", "sh": "es"}  # of words that take more than an "s"

LEEWAY = {
    "tolerance": "within {} of the boundary may be on either side",
    "slack": "beyond the boundary by up to {} may be, too",
    "epsilon": "worse by up to {} may stand for others",
}


def plural(noun: str) -> str:
    """The plural of a word: compound, compounds; dish, dishes; assay, assays; category, categories."""
    if noun.endswith("y") and noun[-2:-1] not in ("", *"aeiou"):
        return f"{noun[:-1]}ies"
    return noun + next((more for end, more in ENDINGS.items() if noun.endswith(end)), "s")


def said(row: Any) -> list[str]:
    """The count in a row of a history, as "41 of 1204"; nothing where it has none."""
    ones = str(row["successes"]) if row["kind"] == "counted" else ""
    return [f"{ones if ones.isdecimal() else 'mean {:g}'.format(row['mean'])} of {row['n']}"] if ones else []


def meaning(session: Session, noun: str = "option") -> str:
    """The question of a session in one or two sentences; an arm is a `noun` where no wish says otherwise.

    A problem that is not of this package has its own line, and its parameters.
    """
    problem, (nouns, unit) = session.task.make_problem(), _nouns(session, noun)
    nouns = f"{len(session.active)} {nouns}"
    ours = type(problem).__module__.startswith("bandit_envs.")  # what derives from these may ask something else
    ask = problem.in_words if ours else functools.partial(Problem.in_words, problem)
    question = ask(f"Which of the {nouns}", nouns, unit, session.minimize)
    lower = session.minimize and not problem.local
    return question.replace("?", "? A lower value is better.", 1) if lower else question


def leeway(session: Session, noun: str = "option") -> str:
    """What an answer may have that still counts as right, to stand behind its probability; "" where nothing."""
    problem, (nouns, unit) = session.task.make_problem(), _nouns(session, noun)
    given: Any = problem.settings
    for name, may in LEEWAY.items():
        near = float(given.get(name) or 0.0)
        if near and (name != "epsilon" or problem.answer_size is not None):
            return f", in which {nouns} {may.format(f'{near:g}' + unit * (name != 'slack'))},"
    return ""


def _nouns(session: Session, noun: str) -> tuple[str, str]:
    """What arms are called, and the unit of measurements behind a blank."""
    wishes = session.wishes
    return plural(wishes.get("noun", noun)), f" {wishes['unit']}" if "unit" in wishes else ""


def against(found: Any) -> tuple[str, dict[str, tuple[str, str, str, str]], str]:
    """What a table of `Session.comparison` says: "lift" or "difference", the cells of each arm, and a sentence.

    The cells are the lift or difference, its interval, p of "not better", or "not beyond" a margin, and the verdict.
    """
    shares, attrs, unsaid = bool(found["lift"].notna().any()), found.attrs, found.attrs.get("open", {})
    what, low, high = ("lift", "lift_low", "lift_high") if shares else ("difference", "low", "high")

    def shown(x: float) -> str:
        return "-" if x != x else f"{100 * x:+.3g} %" if shares and math.isfinite(x) else f"{x:+.4g}"

    rows, over = dict[str, tuple[str, str, str, str]](), "better" if not attrs["by"] else f"beyond {attrs['by']}"
    for row in found.to_dict("records"):
        p, under = row["p"], f"{f'not {over}' if attrs['by'] else 'worse'} (p {row['p_worse']:.2g})"
        said = "control" if row["name"] == attrs["control"] else over * row["better"] or under * row["worse"]
        said = f"open: {unsaid[row['name']]}" if row["name"] in unsaid else said
        ends = "-" if row[what] != row[what] else f"{shown(row[low])} .. {shown(row[high])}"
        rows[str(row["name"])] = shown(row[what]), ends, "-" if p != p else f"{p:.2g}", said
    sign = -1 if attrs["minimize"] else 1
    level, count = attrs["rate_level"], max(len(found) - 1, 1)
    near = found[~found["better"] & (found["p"] <= level) & ~found["name"].isin(list(unsaid))]
    small = [f"{row['name']} has p {row['p']:.2g}" for row in near.to_dict("records")]
    alone = f"; {', '.join(small[:3])}, for itself alone: among {count} a find takes {level / count:.2g}" * bool(small)
    better = found[found["better"]].sort_values(what, ascending=sign < 0)
    if not len(better):
        return what, rows, f"none is found {over} yet, against {attrs['control']}{alone}"
    best, more = better.iloc[0], f" and {len(better) - 1} more" * (len(better) > 1)
    found_so = f"{best['name']}{more} {'are' if more else 'is'} {over}, against {attrs['control']}; {best['name']} by"
    promise = f"; a share of {attrs['rate_level']:g} of what is found is wrong at most, on average"
    by, ends, *_ = rows[str(best["name"])]
    return what, rows, f"{found_so} {by} ({ends}){promise * (attrs['rate'] == 'fdr')}{alone}"
