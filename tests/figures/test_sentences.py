"""Every sentence of the papers on their experiments has its answer."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import sentences

from agents import figures
from agents.figures.catalogue import PAPERS

QUOTES = {f"{figure.name}/{quote.name}": quote for figure in figures.FIGURES.values() for quote in figure.quotes}
CLAIMS = [row for row in sentences.rows() if row["kind"] == "claim"]


def test_the_table_is_complete() -> None:
    data = Path(os.environ.get("BANDIT_ENVS_DATA", "nowhere"))
    papers = data.parent / "papers"
    if not papers.is_dir():
        pytest.skip(f"no texts of the papers beside the data: {papers}")
    assert not sentences.missing(papers)


def test_every_sentence_has_an_answer() -> None:
    for row in sentences.rows():
        assert row["kind"] in ("claim", "not testable", "set-up"), row
        assert (row["answer"] == "") == (row["kind"] == "set-up"), row
        assert row["paper"] in PAPERS, row


def test_answers_are_quotations_of_the_figures() -> None:
    """Each claim by one at least that is not beside the paper, and each such quotation by a claim."""
    answers = {answer for row in CLAIMS for answer in row["answer"].split()}
    assert not answers - set(QUOTES)
    for row in CLAIMS:
        assert any(not QUOTES[answer].beside for answer in row["answer"].split()), row["sentence"]
    words = {quote.words for name, quote in QUOTES.items() if name in answers}
    left = [name for name, quote in QUOTES.items() if quote.words and not quote.beside and quote.words not in words]
    assert not left


def test_quotations_are_in_the_sentences_that_they_answer() -> None:
    """By a quarter of their words at least: the texts lack symbols, and one quotation answers two sentences."""
    for row in CLAIMS:
        said = set(re.findall(r"[a-z]{4,}", row["sentence"].lower()))
        for answer in row["answer"].split():
            words = re.findall(r"[a-z]{4,}", QUOTES[answer].words.lower())
            assert sum(word in said for word in words) >= len(words) / 4, (answer, row["sentence"])
