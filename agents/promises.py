"""The assumptions of each guarantee, and what voids it: the one source of the tables on the page on certificates.

Every agent that stops by itself stands in one row of `AGENTS`; tests see to that.
"""

from __future__ import annotations

from typing import NamedTuple


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


WRONG = "wrong with probability delta at most"
DELTA = f"{WRONG}, at all times at once"
ANY_RULE = "any, also of people and networks"
OWN_RULE = "its own alone"
COME_AND_GO = "may come and go in a session: all that there have ever been share delta"
FIXED = "must stay; after a change only the certificate counts"
IN_TIME = "each has the same mean whatever has come before"
SCALED = f"sub-Gaussian of scale `sigma`; {IN_TIME}"
WITH_C = "with `c=4` (the default); smaller `c`: nothing"


def _certificate(who: str, samples: str, void: str, arms: str = COME_AND_GO) -> Promise:
    return Promise((who,), DELTA, samples, ANY_RULE, arms, void)


def _certified(*who: str, but: str = "") -> Promise:
    """Agents that stop by a certificate."""
    own = "those of the certificate", ANY_RULE, COME_AND_GO, "what voids the certificate"
    return Promise(who, f"that of the certificate{but}", *own)


def _published(*who: str, level: str, samples: str = SCALED, void: str = "`sigma` too small") -> Promise:
    """Agents that stop by the rule of their paper, which holds for their own rule of pulls."""
    return Promise(who, level, samples, OWN_RULE, FIXED, void)


VOID = """What voids every certificate:

- `sigma`, the range, the arms, the threshold or delta are chosen by the same results.
- Results are undone, or not reported, because of their values.
- Open questions are undone, or asked again, because they are slow, where values decide how slow.
- Open questions are undone because of the results that wait behind them.
- Results are late because of their values, with `order='arrival'` or without a question (`paired` allows that)."""

CERTIFICATES = (
    _certificate(
        "`gaussian`",
        f"sub-Gaussian of scale `sigma` around their mean; {IN_TIME}. Half the range of bounded samples is such a "
        "scale; a standard deviation is one for Gaussian samples, not for others",
        "`sigma` too small",
    ),
    _certificate(
        "`gaussian`, Feasible",
        "the same of each coordinate. Coordinates that may depend on each other (rows of data, several numbers of one "
        "measurement in a session) are certified as such: a direction has the scale `sigma` times its 1-norm; where "
        "they are independent, times its 2-norm",
        "`independent=True` of coordinates that are not",
    ),
    _certificate(
        "`bounded`",
        f"in the known range; {IN_TIME}. Coordinates may depend on each other",
        "a range that samples leave: refused in sessions",
    ),
    _certificate(
        "`bernoulli`",
        f"in [0, 1]; {IN_TIME}. Of several coordinates: independent",
        "coordinates that may depend on each other: refused",
    ),
    _certificate(
        "`student`",
        "Gaussian, of any variances, independent. Of several coordinates: independent",
        "samples that are rounded, or nearly constant, or not Gaussian: nothing is promised. Refused where the "
        "distribution is known to be another, or coordinates may depend on each other; a session warns where a result "
        "repeats",
    ),
    _certificate(
        "`paired`",
        "the scores of the columns of one table, in the known range; its rows in random order",
        "an order of rows that somebody has chosen: sessions draw it",
        FIXED,
    ),
)

AGENTS = (
    _certified("evidence", "track-and-stop", "top-two", "paired-elimination", but="; `boundary='nominal'`: nothing"),
    _certified("any agent with stop='certificate'"),
    _published("st2", "fareast", "east", "uniform-elimination", level=f"{WRONG}, {WITH_C}"),
    _published("hdoc", "lucb", "ugape", "clucb", level=f"{WRONG}; `widths='lil'` of `lucb`: nothing"),
    _published(
        "kl-lucb",
        level=f"{WRONG}, with `threshold='2013'`; `'lil'`: nothing",
        samples=f"in the range that is known, else {SCALED}",
        void="samples outside of the range: refused in sessions",
    ),
    _published(
        "racing",
        level=f"{WRONG}, up to round `rounds`, by default 1",
        samples=f"in a range of width `width`; {IN_TIME}. Gaussian samples have none, and `width` = 6 `sigma` stands "
        "for it",
        void="`beyond=True` (the default), after these rounds",
    ),
    _published(
        *("direct", "incremental", "halving", "median-elimination", "adaptive-top-k", "improved-top-k"),
        level=f"{WRONG}, by the constants of their papers; `constants='practical'`: nothing",
        samples=f"sub-Gaussian of scale `sigma`, as rewards of width 2 `sigma`; {IN_TIME}",
    ),
    _published(
        *("adapt", "pi1", "pi2", "pi3"),
        level="nothing: `delta_c` holds at one time, and is compared with delta after each pull",
        samples="in a range of width `width`; Gaussian samples have none, and 6 `sigma` stands for it",
        void="",
    ),
    _published("lil-ucb", level="nothing at its delta: the theorem's failure probability is larger", void=""),
    _published("two-step", level=f"wrong with probability delta / 2 at most, {WITH_C}"),
)

HEADS = ("who", "the answer is", "samples", "rule of pulls", "arms", "void by")


def page() -> str:
    """What voids every certificate, and both tables, in Markdown."""
    parts = [VOID]
    for title, rows in (("certificate", CERTIFICATES), ("agents", AGENTS)):
        heads = (title, *HEADS[1:])
        lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
        for row in rows:
            who = ", ".join(name if "`" in name or " " in name else f"`{name}`" for name in row.who)
            lines.append(f"| {' | '.join((who, *row[1:]))} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"
