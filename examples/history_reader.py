"""A causal transformer that reads raw histories, and agents that hand them to it: see `learned_dpt`, `learned_icpe`.

A history is read as tokens, one for each sample: which arm, and what it yielded. Before the first there is a token of
zeros, from which a reader tells what it thinks of an episode that has just begun.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import agents

WIDTH, LAYERS, HEADS = 32, 2, 2
ARM_LAYERS, POOLS = 1, 2
DEPTH = WIDTH // HEADS


class Layer(nn.Module):
    """Attention to what came before, and a small network."""

    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.look, self.mix = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.think = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, visible=None, kept=None, rows=None, places=None):
        """x (B, T, WIDTH), whole histories; or (B, 1, WIDTH), what comes next in the episodes `rows`, see `read`.

        What can be seen is `visible` (B, 1, T or 1, places); without it, of whole histories, all that came before.
        """
        q, k, v = self.look(self.before(x)).unflatten(-1, (3, HEADS, DEPTH)).unbind(2)  # (B, T, HEADS, DEPTH) each
        if kept is not None:
            kept[0, rows, places], kept[1, rows, places] = k[:, 0], v[:, 0]
            k, v = kept[:, rows, : visible.shape[-1]]
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        seen = functional.scaled_dot_product_attention(q, k, v, attn_mask=visible, is_causal=visible is None)
        x = x + self.mix(seen.transpose(1, 2).flatten(-2))
        return x + self.think(self.after(x))


def until(places):
    """What can be seen from these places (n,): themselves and what came before, (n, 1, 1, places)."""
    return (torch.arange(int(places.max()) + 1) <= places[:, None])[:, None, None]


class Reader(nn.Module):
    """Tells `outputs` numbers of the first t samples of a history, for each t from 0 on.

    Args:
        arms: K. longest: samples that a history can have. outputs: numbers that it tells.
    """

    def __init__(self, arms, longest, outputs):
        super().__init__()
        self.longest, self.outputs = longest, outputs
        self.embed, self.places = nn.Linear(arms + 1, WIDTH), nn.Embedding(longest + 1, WIDTH)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.end, self.tell = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, outputs)

    def forward(self, tokens):
        """Whole histories: tokens (B, T + 1, K + 1) to numbers (B, T + 1, outputs)."""
        x = self.embed(tokens) + self.places.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.tell(self.end(x))

    def cache(self, episodes):
        """What `read` keeps of so many episodes: keys and values."""
        return torch.zeros(LAYERS, 2, episodes, self.longest + 1, HEADS, DEPTH)

    def read(self, tokens, kept, rows, places):
        """One token (n, K + 1) more of the episodes `rows` (n,), each at its place (n,): the numbers (n, outputs)."""
        x, visible = (self.embed(tokens) + self.places(places))[:, None], until(places)
        for layer, its in zip(self.layers, kept, strict=True):
            x = layer(x, visible, its, rows, places)
        return self.tell(self.end(x))[:, 0]


class Pool(nn.Module):
    """Each arm, told of itself and of the mean over the arms, thinks once more."""

    def __init__(self):
        super().__init__()
        self.before, self.own, self.all = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.after = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        """x (..., K, WIDTH)."""
        y = self.before(x)
        return x + self.after(functional.gelu(self.own(y) + self.all(y).mean(-2, keepdim=True)))


class ArmReader(nn.Module):
    """Tells a number of each arm, and treats arms alike: relabelled, they are told the same.

    A sample attends to the samples of its own arm and to the first token; then the last tokens of the arms are pooled.

    Args:
        arms: K. longest: samples that a history can have.
    """

    def __init__(self, arms, longest):
        super().__init__()
        self.longest, self.outputs = longest, arms
        self.embed, self.places = nn.Linear(2, WIDTH), nn.Embedding(longest + 1, WIDTH)
        self.layers = nn.ModuleList([Layer() for _ in range(ARM_LAYERS)])
        self.pools = nn.Sequential(*[Pool() for _ in range(POOLS)])
        self.end, self.tell = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 1)

    def pooled(self, x, places):
        """The last token of each arm x (..., K, WIDTH), at these places (...), to numbers (..., outputs)."""
        x = self.end(self.pools(x + self.places(places)[..., None, :]))
        return self.tell(x)[..., 0]

    def embedded(self, tokens):
        """Whether there is a sample, and the sample, without the arm: (..., WIDTH)."""
        return self.embed(torch.cat([tokens[..., :-1].sum(-1, keepdim=True), tokens[..., -1:]], -1))

    def forward(self, tokens):
        """Whole histories: tokens (B, T + 1, K + 1) to numbers (B, T + 1, outputs)."""
        which, places = tokens[..., :-1], torch.arange(tokens.shape[1])
        visible = which @ which.mT > 0
        visible[..., 0] = True
        x = self.embedded(tokens)
        for layer in self.layers:
            x = layer(x, visible.tril()[:, None])
        last = (which * places[:, None]).cummax(1).values.long()
        x = x.gather(1, last.flatten(1)[..., None].expand(-1, -1, WIDTH)).unflatten(1, last.shape[1:])
        return self.pooled(x, places)

    def cache(self, episodes):
        """What `read` keeps of so many episodes: arms, keys and values, and the last token of each arm."""
        return (
            torch.zeros(episodes, self.longest + 1, self.outputs),
            torch.zeros(ARM_LAYERS, 2, episodes, self.longest + 1, HEADS, DEPTH),
            torch.zeros(episodes, self.outputs, WIDTH),
        )

    def read(self, tokens, kept, rows, places):
        """One token (n, K + 1) more of the episodes `rows` (n,), each at its place (n,): the numbers (n, outputs)."""
        which, (pulled, seen, last) = tokens[..., :-1], kept
        pulled[rows, places] = which
        visible = until(places)
        same = (pulled[rows, : visible.shape[-1]] @ which[..., None])[..., 0] > 0
        same[:, 0] = True
        x, visible = self.embedded(tokens)[:, None], visible & same[:, None, None]
        for layer, its in zip(self.layers, seen, strict=True):
            x = layer(x, visible, its, rows, places)
        # the first token stands for every arm until it has been pulled
        last[rows] = torch.where((which > 0)[..., None] | (places == 0)[:, None, None], x, last[rows])
        return self.pooled(last[rows], places)


def tokens_of(arms, samples, K):
    """Tokens (..., K + 1) of arms and samples (...): a one in the place of the arm, and the sample."""
    return torch.cat([functional.one_hot(arms, K).float(), (2 * samples.float() - 1)[..., None]], -1)


def step(optimiser, loss, net, rate):
    """One step of the optimiser at this rate."""
    for group in optimiser.param_groups:
        group["lr"] = max(rate, 1e-5)
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimiser.step()


@dataclass
class Reading:
    """What has been read of E episodes: the place of the last token, what is kept for the next, what readers tell."""

    place: Any  # (E,), -1 before the first token
    kept: list
    told: list  # arrays (E, outputs)


class Historian(agents.Agent):
    """Reads each sample once, in turn; the first reader tells of each arm how probable it is that it is the best."""

    source, solves, observation = "see the example", ("BestArm",), "history"

    def __init__(self, task, readers):
        super().__init__(task)
        self.readers = readers

    def initial_state(self, observation):
        E = len(observation["length"])
        told = [np.zeros((E, reader.outputs), np.float32) for reader in self.readers]
        return Reading(np.full(E, -1), [reader.cache(E) for reader in self.readers], told)

    @torch.no_grad()
    def catch_up(self, observation, state):
        """Read what has not been read."""
        length = observation["length"][:, 0]
        state.place[length < state.place] = -1  # another episode
        while len(rows := np.flatnonzero(state.place < length)):
            place = state.place[rows] + 1
            arms, samples = (observation[name][rows, np.maximum(place - 1, 0)] for name in ("arms", "samples"))
            read = torch.from_numpy(np.maximum(arms, 0)), torch.from_numpy(samples)
            tokens = tokens_of(*read, self.task.K)
            tokens[place == 0] = 0.0
            at = torch.from_numpy(rows), torch.from_numpy(place)
            for reader, kept, told in zip(self.readers, state.kept, state.told, strict=True):
                told[rows] = reader.read(tokens, kept, *at).numpy()
            state.place[rows] = place

    def recommend(self, observation, state=None, slots=None):
        state = self.initial_state(observation) if state is None else state
        self.catch_up(observation, state)
        told = state.told[0] if slots is None else state.told[0][slots]
        return np.arange(self.task.K) == told.argmax(1)[:, None]
