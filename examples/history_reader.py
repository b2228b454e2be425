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
DEPTH = WIDTH // HEADS


class Layer(nn.Module):
    """Attention to what came before, and a small network."""

    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.look, self.mix = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.think = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, kept=None, rows=None, places=None):
        """x (B, T, WIDTH), whole histories; or (B, 1, WIDTH), what comes next in the episodes `rows`, see `read`."""
        q, k, v = self.look(self.before(x)).unflatten(-1, (3, HEADS, DEPTH)).unbind(2)  # (B, T, HEADS, DEPTH) each
        visible = None
        if kept is not None:
            kept[0, rows, places], kept[1, rows, places] = k[:, 0], v[:, 0]
            end = int(places.max()) + 1
            k, v = kept[0, rows, :end], kept[1, rows, :end]
            visible = (torch.arange(end) <= places[:, None])[:, None, None]
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        seen = functional.scaled_dot_product_attention(q, k, v, attn_mask=visible, is_causal=kept is None)
        x = x + self.mix(seen.transpose(1, 2).flatten(-2))
        return x + self.think(self.after(x))


class Reader(nn.Module):
    """Tells `outputs` numbers of the first t samples of a history, for each t from 0 on.

    Args:
        arms: K. longest: samples that a history can have. outputs: numbers that it tells.
        placed: whether its tokens are `placed`, see `tokens_of`.
    """

    def __init__(self, arms, longest, outputs, placed=False):
        super().__init__()
        self.longest, self.placed = longest, placed
        self.embed, self.places = nn.Linear(2 * arms if placed else arms + 1, WIDTH), nn.Embedding(longest + 1, WIDTH)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.end, self.tell = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, outputs)

    def forward(self, tokens):
        """Whole histories: tokens (B, T + 1, C) to numbers (B, T + 1, outputs)."""
        x = self.embed(tokens) + self.places.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.tell(self.end(x))

    def room(self, episodes):
        """What `read` keeps of so many episodes: keys and values."""
        return torch.zeros(LAYERS, 2, episodes, self.longest + 1, HEADS, DEPTH)

    def read(self, tokens, kept, rows, places):
        """One token (n, C) more of the episodes `rows` (n,), each at its place (n,): the numbers (n, outputs)."""
        x = (self.embed(tokens) + self.places(places))[:, None]
        for layer, its in zip(self.layers, kept, strict=True):
            x = layer(x, its, rows, places)
        return self.tell(self.end(x))[:, 0]


def tokens_of(arms, samples, K, placed=False):
    """Tokens (..., K + 1) of arms and samples (...): a one in the place of the arm, and the sample.

    Or, `placed`, (..., 2 K): the sample, too, is in the place of its arm, so that sums of tokens tell sums of samples.
    """
    which, value = functional.one_hot(arms, K).float(), (2 * samples.float() - 1)[..., None]
    return torch.cat([which, which * value if placed else value], -1)


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

    def remember(self, observation):
        E = len(observation["length"])
        told = [np.zeros((E, reader.tell.out_features), np.float32) for reader in self.readers]
        return Reading(np.full(E, -1), [reader.room(E) for reader in self.readers], told)

    @torch.no_grad()
    def catch_up(self, observation, state):
        """Read what has not been read."""
        length = observation["length"][:, 0]
        state.place[length < state.place] = -1  # another episode
        while len(rows := np.flatnonzero(state.place < length)):
            place = state.place[rows] + 1
            arms, samples = (observation[name][rows, np.maximum(place - 1, 0)] for name in ("arms", "samples"))
            read = torch.from_numpy(np.maximum(arms, 0)), torch.from_numpy(samples)
            tokens = tokens_of(*read, self.task.K, self.readers[0].placed)
            tokens[place == 0] = 0.0
            at = torch.from_numpy(rows), torch.from_numpy(place)
            for reader, kept, told in zip(self.readers, state.kept, state.told, strict=True):
                told[rows] = reader.read(tokens, kept, *at).numpy()
            state.place[rows] = place

    def recommend(self, observation, state=None, slots=None):
        state = self.remember(observation) if state is None else state
        self.catch_up(observation, state)
        told = state.told[0] if slots is None else state.told[0][slots]
        return np.arange(self.task.K) == told.argmax(1)[:, None]
