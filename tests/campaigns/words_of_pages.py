"""Words of the pages: which pages are written by hand, which ones are made, and how long sentences are.

    python tests/campaigns/words_of_pages.py            the counts
    python tests/campaigns/words_of_pages.py --pages    a row for each page as well

A word is what `wc -w` counts: code, tables and their bars too. Sentences are those of paragraphs and lists, not of code
blocks, tables or headings.
"""

from __future__ import annotations

import fnmatch
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MADE = {  # pattern of pages that are made -> what makes them
    "docs/problems/*.md": "python docs/generate.py",
    "docs/front/*.md": "python docs/generate.py",
    "docs/api-algorithms.md": "python docs/generate.py",
    "docs/figures/claims.md": "bandit-envs reproduce --docs docs",
    "docs/figures/sentences.md": "bandit-envs reproduce --docs docs",
    "docs/figures/*/*.md": "bandit-envs reproduce --docs docs",
    "docs/which-agent/*.md": "python examples/which_agent.py",
    "docs/benchmark/*.md": "python tests/campaigns/benchmark_table.py",
    "docs/learned-results/*.md": "rows of python examples/learned_*.py",
    "docs/model-selection/*.md": "rows of python examples/model_selection.py and tests/campaigns/tables_budget.py",
    "docs/real-tables/*.md": "python tests/campaigns/real_tables.py",
}
LONGEST = 140  # characters of a line that could be broken
FENCE = re.compile(r"^(`{3,})[^\n]*\n.*?^\1\n", re.MULTILINE | re.DOTALL)


def pages() -> dict[str, str]:
    """The text of each page, by its path."""
    paths = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def maker(page: str) -> str:
    """What makes a page; "" where it is written by hand."""
    return next((command for pattern, command in MADE.items() if fnmatch.fnmatch(page, pattern)), "")


def sentences(text: str) -> list[str]:
    """The sentences of the paragraphs and the points of lists."""
    text = re.sub(r"^(\||#|<|!\[|\$ |    |\([\w-]+\)=).*$", "", FENCE.sub("\n", text), flags=re.MULTILINE)
    text = re.sub(r"^ *(?:[-*]|\d+\.) ", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"\b(et al|e\.g|i\.e|vs|Fig|cf|pp)\.", r"\1", text)
    blocks = [" ".join(block.split()) for block in re.split(r"\n\s*\n", text)]
    parts = [part for block in blocks for part in re.split(r"(?<=[.!?])[*)\"]* (?=\S)", block)]
    return [part for part in parts if re.search(r"\w", part)]


def long_lines(text: str) -> list[str]:
    """Lines longer than `LONGEST`: no rows of tables, no links or comments that cannot be broken, no code."""
    lines = FENCE.sub("\n", text).splitlines()
    return [line for line in lines if len(line) > LONGEST and not line.startswith(("|", "<!--", "    "))]


def main() -> None:
    """Print the counts."""
    by_hand = {page: text for page, text in pages().items() if not maker(page)}
    made = {page: text for page, text in pages().items() if maker(page)}
    if "--pages" in sys.argv[1:]:
        for page, text in by_hand.items():
            found = sentences(text)
            mean = sum(len(one.split()) for one in found) / max(len(found), 1)
            print(f"{len(text.split()):6} words, {mean:4.1f} a sentence, by hand  {page}")
        for page, text in made.items():
            print(f"{len(text.split()):6} words, made by {maker(page)}  {page}")
    own = sum(len(text.split()) for page, text in by_hand.items() if page.count("/") == 1)
    top = sum(len(text.split()) for page, text in pages().items() if page.count("/") == 1)
    found = [one for text in by_hand.values() for one in sentences(text)]
    print(f"by hand {sum(len(text.split()) for text in by_hand.values())} words in {len(by_hand)} pages")
    print(f"made {sum(len(text.split()) for text in made.values())} words in {len(made)} pages")
    print(f"docs/*.md {top} words, {own} of them by hand")
    print(f"mean sentence {sum(len(one.split()) for one in found) / len(found):.1f} words, of {len(found)} by hand")


if __name__ == "__main__":
    main()
