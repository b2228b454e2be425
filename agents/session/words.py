"""What a session asks, in words of those who measure."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

from bandit_envs import Problem

if TYPE_CHECKING:
    from .session import Session

ENDINGS = {"s": "es", "x": "es", "ch": "es", "sh": "es"}  # of words that take more than an "s"

MOST = 20  # names of what is found, in a sentence
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
    """What a table of `Session.comparison` says: "lift", "odds" or "difference", the cells of each arm, and a sentence.

    The cells are the lift, odds or difference, its interval, p of "not better", or "not beyond" a margin, and the
    verdict.
    """
    attrs, unsaid, once = found.attrs, found.attrs.get("open", {}), "better_once" in found
    margin, averaged = "margin" in attrs["by"], attrs.get("averaged", False)
    known = {"lift": not once or found["lift_low"].notna().any() and not margin, "odds": not averaged}
    kinds = [one for one in known if known[one] and one in found and found[one].notna().any()]
    what = [*kinds, "difference"][0]
    shares = what != "difference"
    low, high = ("low", "high") if what == "difference" else (f"{what}_low", f"{what}_high")

    def shown(x: float) -> str:
        x = round(x - 1, 9) + 0.0 if what == "odds" else x
        return "-" if x != x else f"{100 * x:+.3g} %" if shares and math.isfinite(x) else f"{x:+.4g}"

    rows, over = dict[str, tuple[str, str, str, str]](), "better" if not attrs["by"] else f"beyond {attrs['by']}"
    for row in found.to_dict("records"):
        p, below = row["p"], f"not {over}" if attrs["by"] else "worse"
        said = over * row["better"] or f"{below} (p {row['p_worse']:.2g})" * row["worse"]
        said = _within(row, attrs, over, below) if once else said
        said = "control" if row["name"] == attrs["control"] else said
        said = f"open: {unsaid[row['name']]}" if row["name"] in unsaid else said
        ends = "-" if row[what] != row[what] else f"{shown(row[low])} .. {shown(row[high])}"
        rows[str(row["name"])] = shown(row[what]), ends, "-" if p != p else f"{p:.2g}", said
    sign = -1 if attrs["minimize"] else 1
    level, count = attrs["rate_level"], max(len(found) - 1, 1)
    mask = found[["better", *["better_once", "on_average"] * once]].any(axis=1)
    near = found[~mask & (found["p"] <= level) & ~found["name"].isin(list(unsaid))]
    small = [f"{row['name']} has p {row['p']:.2g}" for row in near.to_dict("records")]
    alone = f"; {', '.join(small[:3])}, for itself alone: among {count} a find takes {level / count:.2g}" * bool(small)
    better = found[mask].sort_values(what, ascending=sign < 0)
    if not len(better):
        return what, rows, f"none is found {over} yet, against {attrs['control']}{alone}"
    best, others = better.iloc[0], better["name"].tolist()[1:]
    more = f", {', '.join(others[:MOST])}" * bool(others) + f" and {len(others) - MOST} more" * (len(others) > MOST)
    if once:
        over += f" {attrs['at'] if best['better_once'] else 'on average'}"
    found_so = f"{best['name']}{more} {'are' if more else 'is'} {over}, against {attrs['control']}; {best['name']} by"
    promise = f"; a share of {attrs['rate_level']:g} of what is found is wrong at most, on average"
    by, ends, *_ = rows[str(best["name"])]
    by = f"odds {by}" if what == "odds" else by
    return what, rows, f"{found_so} {by} ({ends}){promise * (attrs['rate'] == 'fdr')}{alone}"


def _within(row: Any, attrs: Any, over: str, below: str) -> str:
    """The verdict on an arm that is compared within strata."""
    both = [word for word, side in ((over, "better"), (below, "worse")) if row[f"{side}_once"]]
    said = " and ".join(f"{word} {attrs['at']}" for word in both)
    if both and (row["better"] or row["worse"]):
        said += f"; {both[0]}, if the effect is the same every {attrs['noun']} (a test of that: p {row['same']:.2g})"
    elif both:
        said += f", {'but' if len(both) == 1 else 'as'} the effect changes by {attrs['noun']} (p {row['same']:.2g})"
    average = [word for word, side in ((over, "on_average"), (below, "worse_on_average")) if row[side]]
    return "; ".join([said] * bool(said) + [f"{word} on average" for word in average])


def shipped(found: Any, tables: Any, p: Any, why: Any) -> list[str]:
    """The verdict on each variant, by p (D, K, 2) that a metric is not good enough, and not too bad."""
    texts, attrs = list[str](), next(iter(tables.values())).attrs
    level = attrs["rate_level"] / max(len(found) - 1, 1)
    kinds = {one.attrs["averaged"]: None for one in tables.values() if "noun" in one.attrs}
    basis = " and ".join("on average" if kind else f"if effects are the same every {attrs['noun']}" for kind in kinds)
    for i, row in enumerate(found.to_dict("records")):
        harms, lacks, name = list[str](), list[str](), row["name"]
        for d, (metric, one) in enumerate(tables.items()):
            by = one.attrs["by"] and f"beyond {one.attrs['by']}"
            good = f"no worse by {one.attrs['allowed']}" if d else by or "better"
            harm = f"worse by more than {one.attrs['allowed']}" if d else by and f"not {by}" or "worse"
            if len(p) * p[d, i, 1] <= level:
                harms.append(f"{metric} {harm} (p {len(p) * p[d, i, 1]:.2g})")
            if name in why[d]:
                lacks.append(f"{metric}: {why[d][name]}")
            elif p[d, i, 0] > level:
                lacks.append(f"{metric} not yet shown to be {good} (p {p[d, i, 0]:.2g})")
        whys = {one.get(name) for one in why}
        lacks = lacks if len(whys) > 1 or None in whys else [*map(str, whys)]  # of the traffic, which all metrics have
        said = "ship" + f" ({basis})" * bool(basis) if row["ship"] else f"open: {'; '.join(lacks)}"
        said = f"do not ship: {'; '.join(harms)}" + f", {basis}" * bool(basis) if row["drop"] else said
        texts.append("control" if name == attrs["control"] else said)
    return texts
