"""Files that are damaged, or not what they should be: an error that names them, or all is right; never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest
from damage import a_model, check_evaluations, check_models, check_stored, model_is_right, outcome, own_models

import agents
from agents.models import cards


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """A saved model and its card."""
    pytest.importorskip("stable_baselines3")
    return a_model(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize("trials", [range(30), range(30, 120)], ids=["few", "many"])
def test_damaged_models(model: tuple[bytes, bytes], trials: range, tmp_path: Path) -> None:
    check_models(model, tmp_path, trials)


def test_damaged_zips(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    check_models(a_model(tmp_path, ".zip"), tmp_path, range(30), ".zip")


def test_other_files_in_the_place_of_a_model(model: tuple[bytes, bytes], tmp_path: Path) -> None:
    content, card = model
    path, beside = tmp_path / "m.safetensors", tmp_path / "m.json"
    right = model_is_right(path)
    for held, told in ((card, content), (content, content), (b"", card), (content, b""), (card, card)):
        path.write_bytes(held)
        beside.write_bytes(told)
        assert outcome(right, tmp_path, "swapped") == "refused"
    path.write_bytes(content)
    for told in (b"[]", b"5", b"null", b"\xff\xfe", b"[" * 100_000, b"1" * 10_000):
        beside.write_bytes(told)
        assert outcome(right, tmp_path, f"{told!r:.20}") == "refused"
    beside.unlink()
    beside.mkdir()
    assert outcome(right, tmp_path, "a folder for the card") == "refused"
    beside.rmdir()
    path.unlink()
    path.mkdir()
    for load in (right, lambda: agents.load(path)):
        assert outcome(load, tmp_path, "a folder") == "refused"


@pytest.mark.parametrize("name", ["evolved", "ppo"])
def test_damaged_models_of_the_package(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "ppo":
        pytest.importorskip("stable_baselines3")
    monkeypatch.setattr(cards, "FOLDER", own_models(tmp_path / "models"))
    check_stored(name, tmp_path / "models", range(60))


def test_damaged_evaluations(tmp_path: Path) -> None:
    check_evaluations(tmp_path, range(100))
