"""The learners of `examples` that read histories: trainings that repeat, and reading in turn."""

from __future__ import annotations

import functools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import agents

torch = pytest.importorskip("torch")


@pytest.fixture
def rivals(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The modules of the examples."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    import history_reader
    import learned_dpt
    import learned_icpe

    return SimpleNamespace(reader=history_reader, dpt=learned_dpt, icpe=learned_icpe)


def weights(*readers: Any) -> list[Any]:
    return [weight.detach().numpy().copy() for reader in readers for weight in reader.parameters()]


def test_trainings_repeat_bit_for_bit(rivals: Any) -> None:
    for train in (
        lambda seed: weights(rivals.dpt.train(seed, 4)),
        lambda seed: weights(*rivals.icpe.train(3, seed, 12)),  # at random, of its own choice, and once more
    ):
        first, again, other = train(0), train(0), train(1)
        assert all((a == b).all() for a, b in zip(first, again, strict=True))
        assert any((a != b).any() for a, b in zip(first, other, strict=True))


def test_calibrations_repeat_and_levels_tell_when_to_stop(rivals: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rivals.icpe, "HELD_OUT", 200)
    readers = rivals.icpe.train(3, 0, 6)
    levels = rivals.icpe.calibrated(3, 0, readers)
    assert levels == rivals.icpe.calibrated(3, 0, readers)
    kind = functools.partial(rivals.icpe.ICPE, readers=readers, level=-1e9)
    kwargs = {"instance": rivals.icpe.Ahead(3), "delta": 0.1, "max_pulls": 36}
    found = agents.evaluate(kind, "BestArm", episodes=20, env_kwargs=kwargs)
    assert found.episodes["total_pulls"].tolist() == [0] * 20


def some_tokens(rivals: Any) -> Any:
    """Five histories of six samples of three arms, (5, 7, 4)."""
    g = np.random.default_rng(0)
    arms, samples = torch.from_numpy(g.integers(3, size=(5, 6))), torch.from_numpy(g.random((5, 6)))
    tokens = torch.nn.functional.pad(rivals.reader.tokens_of(arms, samples, 3), (0, 0, 1, 0))
    which = np.arange(3) == arms[0, 0].item()
    np.testing.assert_allclose(tokens[0, 1], [*which, 2 * samples[0, 0].item() - 1], rtol=1e-6)
    return tokens


def test_a_reader_of_arms_treats_them_alike(rivals: Any) -> None:
    torch.manual_seed(0)
    tokens, order = some_tokens(rivals), [2, 0, 1]
    with torch.no_grad():
        for kind, alike in (
            (rivals.reader.ArmReader(3, 6), True),
            (rivals.reader.Reader(3, 6, 3), False),  # the test can fail
        ):
            told, relabelled = kind(tokens), kind(tokens[..., [*order, 3]])
            assert torch.allclose(relabelled, told[..., order], atol=1e-5) == alike


@pytest.mark.parametrize("kind", ["Reader", "ArmReader"])
def test_a_history_read_in_turn_is_the_history_read_at_once(rivals: Any, kind: str) -> None:
    torch.manual_seed(0)
    reader = rivals.reader.Reader(3, 6, 4) if kind == "Reader" else rivals.reader.ArmReader(3, 6)
    tokens = some_tokens(rivals)
    with torch.no_grad():
        whole, kept, told = reader(tokens), reader.cache(5), torch.zeros(5, 7, reader.outputs)
        order = [[0, 1, 2, 3, 4], [0, 2], [1, 2, 3, 4], [0, 2, 4]] + [[0, 1, 2, 3, 4]] * 6  # not all at the same place
        place = np.zeros(5, np.int64)
        for rows in order:
            if not (rows := [e for e in rows if place[e] < 7]):
                break
            at, where = torch.tensor(rows), torch.from_numpy(place[rows])
            told[at, where] = reader.read(tokens[at, where], kept, at, where)
            place[rows] += 1
    assert (place == 7).all()
    np.testing.assert_allclose(told.numpy(), whole.numpy(), atol=1e-5)


def test_episodes_do_not_depend_on_their_slots(rivals: Any) -> None:
    """Slots that are given one episode after another forget the last one."""
    kind = functools.partial(rivals.dpt.DPT, readers=[rivals.dpt.train(0, 4)])
    kwargs = {"instance": rivals.dpt.PRIOR, "budget": 12}
    runs = [agents.evaluate(kind, "BestArm", episodes=40, env_kwargs=kwargs, batch=batch) for batch in (7, 40)]
    scores = [found.episodes["score"].to_numpy() for found in runs]
    assert np.mean(scores[0] == scores[1]) > 0.9  # but for ties that rounding decides
