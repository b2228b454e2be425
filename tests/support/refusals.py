"""Bad calls: the error that each must raise, and the names and numbers in its message, in whatever sentence.

with refused("delta", 2): evaluate("lucb", env, delta=2)

test_bad_calls = table({"delta above 1": (lambda: evaluate("lucb", env, delta=2), "delta", 2), ...})
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


def names(message: str, word: object) -> bool:
    """Whether a message names a word or a number: whole, not as a part of another."""
    return re.search(rf"(?<![\w]){re.escape(str(word))}(?![\w])", message) is not None


@contextmanager
def refused(*words: object, error: type[Exception] = ValueError) -> Iterator[None]:
    """What is called inside raises `error`, exactly this class, and its message names each of `words`."""
    assert words, "say what the message must name"
    with pytest.raises(error) as caught:
        yield
    message = str(caught.value)
    assert type(caught.value) is error, f"{type(caught.value).__name__} in place of {error.__name__}: {message}"
    missing = [word for word in words if not names(message, word)]
    assert not missing, f"the message does not name {missing}: {message}"


def table(rows: Mapping[str, tuple[Any, ...]]) -> Callable[..., None]:
    """A test of rows {title: (call, word, ...)}; an exception class among the words is the error, else ValueError.

    The calls are made in an empty folder, and must leave it empty.
    """

    @pytest.mark.parametrize("title", rows)
    def test(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        call, *words = rows[title]
        monkeypatch.chdir(tmp_path)
        errors = [word for word in words if isinstance(word, type)]
        with refused(*(word for word in words if word not in errors), error=errors[0] if errors else ValueError):
            call()
        assert list(tmp_path.iterdir()) == []

    return test
