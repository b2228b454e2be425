"""Every sentence of the papers on their experiments, and what answers it: docs/figures/sentences.csv against the texts.

    python tests/campaigns/sentences.py FOLDER     the folder of the papers' texts, one file for each paper

A sentence is a claim, which quotations of the figures answer; not testable, with the reason; or a part of the set-up.
The last ones are known by their first eight words. Sentences of other sections are added to the table by hand.
"""

from __future__ import annotations

import csv
import re
import sys
import unicodedata
from collections import Counter
from pathlib import Path

TABLE = Path(__file__).parents[2] / "docs" / "figures" / "sentences.csv"
WORDS = 8
SECTIONS = {  # the name of the file, where the section on experiments begins, and what follows it
    "tao2019": ("tao2019*", "In our experiments, we assume that each arm", "In this paper we introduce an algorithm"),
    "chen2017": (
        "chen2017*",
        "In this section we present the experimental",
        "In this paper, we proposed two algorithms",
    ),
    "kalyanakrishnan2010": ("kaly*", "In this section we compare various policies", "In the previous sections we have"),
    "mason2020": ("mason*", "We begin by comparing (ST)", "F1 is the harmonic mean"),
    "katz-samuels2018": (
        "katz*",
        "In this section, we conduct experiments on",
        "In this paper, we introduced the feasible",
    ),
}
ABBREVIATIONS = r"(et al|e\.g|i\.e|vs|Fig|cf|pp|p|No)\."


def rows() -> list[dict[str, str]]:
    """The table: paper, sentence, kind, answer."""
    with TABLE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def sentences(folder: Path, paper: str) -> list[str]:
    """The sentences of the section of a paper on its experiments."""
    name, first, last = SECTIONS[paper]
    text = unicodedata.normalize("NFKC", next(folder.glob(name)).read_text(encoding="utf-8"))
    text = re.sub(r"\s+", " ", re.sub(r"-\n(?=[a-z])", "", text))
    text = text[text.index(first) :]
    text = re.sub(ABBREVIATIONS, lambda found: found.group(0).replace(".", "\0"), text[: text.index(last)])
    parts = re.split(r"(?<=[.!?])\s+(?=[A-Z(“\"$\\•])", text)
    return [part.replace("\0", ".").strip() for part in parts]


def missing(folder: Path) -> list[tuple[str, str]]:
    """Sentences that the table does not have, each as often as it lacks."""
    found = []
    for paper in SECTIONS:
        known = Counter(_begins(row["sentence"]) for row in rows() if row["paper"] == paper)
        for sentence, n in Counter(map(_begins, sentences(folder, paper))).items():
            found += [(paper, sentence)] * max(0, n - known[sentence])
    return found


def _begins(sentence: str) -> str:
    return " ".join(sentence.split()[:WORDS])


if __name__ == "__main__":
    lacking = missing(Path(sys.argv[1]))
    counts = Counter((row["paper"], row["kind"]) for row in rows())
    for paper in SECTIONS:
        print(paper, *(f"{kind} {counts[paper, kind]}" for kind in ("claim", "not testable", "set-up")), sep=", ")
    print("\n".join(f"missing in {paper}: {sentence}" for paper, sentence in lacking) or "none is missing")
