"""The language model of `examples/language_policy.py`: its pieces of text, its chances, and a training that repeats."""

from __future__ import annotations

import argparse
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from agents.evaluation.statistics import paired_difference
from bandit_envs.text import TextView

torch = pytest.importorskip("torch")

RULES = {"instance": "sampler(arms=4)", "budget": 16}
HELD_OUT = np.arange(400)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, environments, and a policy that is not trained."""
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    import language_policy as module

    envs = [TextView(gym.make("bandit_envs/BestArm-v0", actions="full", **RULES)) for _ in range(16)]
    words = module.vocabulary(envs[0])
    torch.manual_seed(0)
    return SimpleNamespace(module=module, envs=envs, words=words, policy=module.Policy(words, 8, 6))


def messages(env: Any, count: int) -> list[str]:
    """The messages of an episode."""
    return [env.reset(seed=5)[0], *(env.step(f"PULL {env.names[i % 4]} {1 + i % 3}")[0] for i in range(count - 1))]


def test_text_is_pieces_and_back(made: Any) -> None:
    words = made.words
    assert words.pieces("teal: 12, mean 0.7500\nLeft: 4.") == [
        *["teal", ": ", "1", "2", ", ", "mean", "0", ".", "7", "5", "0", "0", "\n", "Left", ": ", "4", "."]
    ]
    for text in [*messages(made.envs[0], 6), "PULL teal 12", "ANSWER red, blue"]:
        assert words.decode(words.encode(text)) == text
    for name in made.envs[0].narrator.story.names.split():
        assert len(words.encode(name)) == 1
        assert words.decode(words.encode(f"PULL {name} 3")) == f"PULL {name} 3"
    assert words.encode("zebra") == [made.module.UNKNOWN]


def test_the_last_lines_are_read_with_two_decimals(made: Any) -> None:
    text = "zebra\n\nteal: 3, mean 0.6667\nLeft: 9."
    read = made.words.read([text, "Left: 9."], 3)
    said = [made.words.decode([piece for piece in line if piece]) for line in read[0].tolist()]
    assert said == ["Left: 9.", "teal: 3, mean 0.66", "?"]  # an empty line is none; "zebra" is no word that it knows
    assert read[1, 0].tolist() == read[0, 0].tolist()
    assert not read[1, 1:].any()
    opening = messages(made.envs[0], 1)[0]
    lines = [
        made.words.decode([piece for piece in line if piece]) for line in made.words.read([opening], 8)[0].tolist()
    ]
    assert "".join(reversed(lines)).replace(" ", "").endswith(opening.splitlines()[-1].replace(" ", ""))


def some(made: Any, longest: int = 6) -> tuple[Any, Any]:
    """Lines of ten messages, and replies of random pieces."""
    pieces = torch.Generator().manual_seed(1)
    lines = made.words.read(messages(made.envs[0], 6), made.policy.lines)
    return lines, torch.randint(1, len(made.words.vocabulary), (len(lines), longest), generator=pieces)


def test_chances_sum_to_one_and_leave_out_what_is_no_piece(made: Any) -> None:
    lines, before = some(made)
    logs, _ = made.policy(lines, made.policy.read(lines), before)
    torch.testing.assert_close(logs.exp().sum(-1), torch.ones(6, 6), rtol=0, atol=1e-4)
    assert logs[..., made.module.NONE].exp().max() < 1e-6


def test_lines_that_are_not_there_change_nothing(made: Any) -> None:
    lines, before = some(made)
    lines[:, 5:] = made.module.NONE
    first, _ = made.policy(lines, made.policy.read(lines), before)
    with torch.no_grad():
        made.policy.line.weight[5:] += 1.0
    again, _ = made.policy(lines, made.policy.read(lines), before)
    torch.testing.assert_close(first, again)
    lines[:, 5] = lines[:, 4]
    other, _ = made.policy(lines, made.policy.read(lines), before)
    assert (first - other).abs().max() > 1e-3


def test_a_piece_does_not_see_those_after_it_and_is_copied_from_the_message(made: Any) -> None:
    lines, before = some(made)
    first, _ = made.policy(lines, made.policy.read(lines), before)
    before[:, 3:] = made.module.UNKNOWN
    again, _ = made.policy(lines, made.policy.read(lines), before)
    torch.testing.assert_close(first[:, :3], again[:, :3])
    assert (first[:, 3:] - again[:, 3:]).abs().max() > 1e-3
    with torch.no_grad():
        made.policy.copies.bias += 50.0  # copies alone
    logs, _ = made.policy(lines, made.policy.read(lines), before)
    for chances, message in zip(logs.exp(), lines, strict=True):
        assert chances[:, message.unique()[1:]].sum(-1).min() > 1 - 1e-4


def test_what_is_said_has_the_chances_that_training_finds(made: Any) -> None:
    """Piece by piece, with what is kept of those before, and all at once."""
    lines, _ = some(made)
    for generator in (None, torch.Generator().manual_seed(0)):
        said, chances = made.policy.speak(lines, generator)
        logs, _ = made.policy.chances(lines, said)
        there = said != made.module.NONE
        torch.testing.assert_close(logs[there], chances[there], rtol=0, atol=1e-5)
        assert there[:, 0].all()


def test_random_commands_can_be_read_and_are_of_the_message(made: Any) -> None:
    replies, words = made.module.random_replies(made.envs, 0), set()
    for _ in range(30):
        texts, commands = next(replies)
        assert not any("A reply has" in text or "There is no" in text for text in texts)
        words |= {command.split()[0] for command in commands}
    assert words == {"PULL", "ANSWER"}


def weights(made: Any, seed: int, iterations: int = 1) -> list[Any]:
    """Those of a policy after a few steps of both trainings."""
    torch.manual_seed(seed)
    policy = made.module.Policy(made.words, 8, 6)
    made.module.imitate(policy, made.envs, seed, 3)
    made.module.reinforce(policy, made.envs, seed, argparse.Namespace(iterations=iterations, seconds=0.0))
    return [one.detach().numpy().copy() for one in policy.parameters()]


def test_the_same_seed_trains_the_same_policy(made: Any, capsys: pytest.CaptureFixture[str]) -> None:
    first, again, other = weights(made, 1), weights(made, 1), weights(made, 2)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert any((a != b).any() for a, b in zip(first, other, strict=True))
    assert "16 episodes: score" in capsys.readouterr().out


def test_it_plays_the_episodes_of_the_others(made: Any) -> None:
    """Untrained it talks nonsense; episodes are the same whichever are played beside them."""
    scores, pulls, lines, said, _, unread, places = made.module.play(made.policy, made.envs, 2026, HELD_OUT[:20])
    assert scores.tolist() == pulls.tolist() == [0.0] * 20
    assert unread.all()
    assert len(said) == len(lines) == 60
    assert np.bincount(places).tolist() == [3] * 20
    alone = made.module.play(made.policy, made.envs[:1], 2026, HELD_OUT[7:8])
    assert (alone[2] == lines[places == 7]).all()


def test_it_learns_to_explore(made: Any) -> None:
    """Half a minute: ahead of itself untrained, and after the random commands, by more than chance explains."""
    module, policy = made.module, made.policy
    envs = [TextView(gym.make("bandit_envs/BestArm-v0", actions="full", **RULES)) for _ in range(256)]
    untrained = module.play(policy, envs, module.HELD_OUT, HELD_OUT)[0]
    module.imitate(policy, envs, 1, 60)
    speaks = module.play(policy, envs, module.HELD_OUT, HELD_OUT)[0]
    module.reinforce(policy, envs, 1, argparse.Namespace(iterations=25, seconds=0.0))
    trained = module.play(policy, envs, module.HELD_OUT, HELD_OUT)[0]
    assert untrained.mean() < 0.05
    assert paired_difference(trained, untrained, level=1 - 1e-6).low > 0.5
    assert paired_difference(trained, speaks, level=1 - 1e-6).low > 0.1
