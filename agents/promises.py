"""The assumptions of each guarantee, and what voids it: the one source of the tables on the page on certificates.

Every agent that stops by itself stands in one row of `AGENTS`; tests see to that.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["AGENTS", "CERTIFICATES", "Promise", "page"]


class Promise(NamedTuple):
    """A row: who promises, and what must hold for it.

    Attributes:
        who: names of agents, or certificates.
        level: what is promised.
        samples: what must be true of the samples.
        pulls: by which rule arms may be pulled.
        arms: what may happen to the arms meanwhile.
        void: what takes the promise away, and what is done about it.
    """

    who: tuple[str, ...]
    level: str
    samples: str
    pulls: str
    arms: str
    void: str


DELTA = "wrong with probability delta at most, at all times at once"
ANY_RULE = "any, also of people and networks"
OWN_RULE = "its own alone"
COME_AND_GO = "may come and go in a session: all that there have ever been share delta"
FIXED = "must stay; after a change only the certificate counts"
IN_TIME = "each has the same mean whatever has come before"

CERTIFICATES = (
    Promise(
        ("`gaussian`",),
        DELTA,
        f"sub-Gaussian of scale `sigma` around their mean; {IN_TIME}. Half the range of bounded samples is such a "
        "scale; a standard deviation is one for Gaussian samples, not for others",
        ANY_RULE,
        COME_AND_GO,
        "`sigma`, arms, threshold or delta chosen by the same results; results undone, or not reported, because of "
        "their values: all must be decided before",
    ),
    Promise(
        ("`gaussian`, Feasible",),
        DELTA,
        "the same of each coordinate. Coordinates that may depend on each other (rows of data, several numbers of one "
        "measurement in a session) are certified as such: a direction `a` has the scale `sigma |a|_1`; independent "
        "ones have `sigma |a|_2`",
        ANY_RULE,
        COME_AND_GO,
        "`independent=True` of coordinates that are not",
    ),
    Promise(
        ("`bounded`",),
        DELTA,
        f"in the known range; {IN_TIME}. Coordinates may depend on each other",
        ANY_RULE,
        COME_AND_GO,
        "a range that samples leave: refused in sessions",
    ),
    Promise(
        ("`bernoulli`",),
        DELTA,
        f"in [0, 1]; {IN_TIME}. Of several coordinates: independent",
        ANY_RULE,
        COME_AND_GO,
        "coordinates that may depend on each other: refused",
    ),
    Promise(
        ("`student`",),
        DELTA,
        "Gaussian, of any variances, independent. Of several coordinates: independent",
        ANY_RULE,
        COME_AND_GO,
        "samples that are rounded, or nearly constant, or not Gaussian: nothing is promised. Refused where the "
        "distribution is known to be another, or coordinates may depend on each other; a session warns where a result "
        "repeats",
    ),
    Promise(
        ("`paired`",),
        DELTA,
        "the scores of the columns of one table, in the known range; its rows in random order",
        ANY_RULE,
        FIXED,
        "an order of rows that somebody has chosen: sessions draw it",
    ),
)

AGENTS = (
    Promise(
        ("evidence", "track-and-stop", "top-two", "paired-elimination"),
        "that of the certificate; `boundary='nominal'`: nothing",
        "those of the certificate",
        ANY_RULE,
        COME_AND_GO,
        "what voids the certificate",
    ),
    Promise(
        ("any agent with stop='certificate'",),
        "that of the certificate",
        "those of the certificate",
        ANY_RULE,
        COME_AND_GO,
        "what voids the certificate",
    ),
    Promise(
        ("st2", "fareast", "east", "uniform-elimination"),
        "wrong with probability delta at most, with `c=4` (the default); smaller `c`: nothing",
        f"sub-Gaussian of scale `sigma`; {IN_TIME}",
        OWN_RULE,
        FIXED,
        "`sigma` too small",
    ),
    Promise(
        ("hdoc", "lucb", "ugape", "clucb"),
        "wrong with probability delta at most; `widths='lil'` of `lucb`: nothing",
        f"sub-Gaussian of scale `sigma`; {IN_TIME}",
        OWN_RULE,
        FIXED,
        "`sigma` too small",
    ),
    Promise(
        ("kl-lucb",),
        "wrong with probability delta at most, with `threshold='2013'`; `'lil'`: nothing",
        f"in the range that is known, else sub-Gaussian of scale `sigma`; {IN_TIME}",
        OWN_RULE,
        FIXED,
        "samples outside of the range: refused in sessions",
    ),
    Promise(
        ("racing",),
        "wrong with probability delta at most, up to its planned number of rounds",
        f"in a range of width `width`; {IN_TIME}. Gaussian samples have none, and `width` = 6 `sigma` stands for it",
        OWN_RULE,
        FIXED,
        "`beyond=True`, after the planned rounds",
    ),
    Promise(
        ("direct", "incremental", "halving", "median-elimination", "adaptive-top-k", "improved-top-k"),
        "wrong with probability delta at most, by the constants of their papers; `constants='practical'`: nothing",
        f"sub-Gaussian of scale `sigma`, as rewards of width 2 `sigma`; {IN_TIME}",
        OWN_RULE,
        FIXED,
        "`sigma` too small",
    ),
    Promise(
        ("adapt", "pi1", "pi2", "pi3"),
        "nominal: `delta_c` is looked at after every pull, without a union over time",
        "in a range of width `width`; Gaussian samples have none, and 6 `sigma` stands for it",
        OWN_RULE,
        FIXED,
        "",
    ),
    Promise(
        ("lil-ucb",),
        "nothing at its delta: the theorem's failure probability is larger",
        f"sub-Gaussian of scale `sigma`; {IN_TIME}",
        OWN_RULE,
        FIXED,
        "",
    ),
    Promise(
        ("two-step",),
        "wrong with probability delta / 2 at most, with `c=4` (the default); smaller `c`: nothing",
        f"sub-Gaussian of scale `sigma`; {IN_TIME}",
        OWN_RULE,
        FIXED,
        "`sigma` too small",
    ),
)

HEADS = ("who", "the answer is", "samples", "rule of pulls", "arms", "void by")


def page() -> str:
    """Both tables, in Markdown."""
    parts = []
    for title, rows in (("certificate", CERTIFICATES), ("agents", AGENTS)):
        heads = (title, *HEADS[1:])
        lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
        for row in rows:
            who = ", ".join(name if "`" in name or " " in name else f"`{name}`" for name in row.who)
            lines.append(f"| {' | '.join((who, *row[1:]))} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"
