"""A language model from scratch that learns to explore: text in, text out, trained by GRPO on `TextView`.

A transformer of two layers reads the last lines of the newest message and says its reply piece by piece. It is given
text alone, and its replies are read as anybody's: three in a row that are no command end an episode with score 0. Names
of arms are drawn in each episode, so that it must read them to say them.

1. Untrained, it talks nonsense.
2. It imitates random commands for some seconds, `PULL` or `ANSWER` with names and numbers drawn: it learns to speak,
   and nothing of when to pull what, or to answer what. Without this step all is nonsense, and all scores are 0.
3. GRPO [Shao et al., DeepSeekMath, 2024]: groups of eight play the same episode, and each reply of an episode is made
   likelier by how much its score is above its group's mean, in standard deviations of all episodes. The reward is what
   the environment pays; a reply that cannot be read costs half a standard deviation.

It is no model of English, and none of its numbers is of large models. What helps it: a line is one position (its pieces
side by side, as patches of a picture are), a piece of a reply may be copied from the message, and of a piece that has
been said it is known in which lines it stands.

The problem is BestArm with 4 arms of 0 or 1 and 16 pulls, unless the options say otherwise. On 8,000 episodes of a root
seed that no training has, `uniform` scores .872 and `top-two` .893. Three seeds of it score 0 untrained; .547, .392 and
.431 after the random commands; .862, .889 and .856 in the end, 267, 251 and 263 s of one core in all. All are far ahead
of themselves, one is ahead of `uniform`, and two are behind. They had 23,000 to 33,000 episodes: others used the cores.
The likeliest pieces are judged; drawn ones, as in training, scored .882, not .864, with the first seed after 432 s.

    python examples/language_policy.py
    python examples/language_policy.py --problem Threshold --arms 3 --budget 12 --against uniform lsa
    python examples/language_policy.py --iterations 100  # the same numbers each time
"""

import argparse
import functools
import re
import time

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.nn import functional

import agents
from agents.evaluation.statistics import paired_difference
from bandit_envs.text import TextView

HELD_OUT = 2026  # the root seed of the judgement; trainings have 1, 2, ..
WIDTH, HEADS, LAYERS, SMALL = 64, 4, 2, 16  # SMALL: of the pieces of a line
COLUMNS = 12  # pieces of a line; a longer line is read as several
NONE, END, UNKNOWN = range(3)  # pieces that are no text
PIECE = re.compile(r"[A-Za-z]+|[0-9]|\n|[^A-Za-z0-9\n]+")


class Words:
    """Text as numbers of its pieces: words, digits, and what stands between. Spaces between words are left out."""

    def __init__(self, texts):
        self.vocabulary = ["", "", "?", *sorted({piece for text in texts for piece in self.pieces(text)} - {"?"})]
        self.number = {piece: i for i, piece in enumerate(self.vocabulary) if i >= UNKNOWN}
        self.rows = functools.lru_cache(maxsize=2**16)(self._rows)

    @staticmethod
    def pieces(text):
        """The pieces of a text."""
        return [piece for piece in PIECE.findall(text) if piece != " "]

    def encode(self, text):
        """The numbers of a text."""
        return [self.number.get(piece, UNKNOWN) for piece in self.pieces(text)]

    def decode(self, numbers):
        """The text of numbers."""
        said = ""
        for piece in (self.vocabulary[i] for i in numbers):
            apart = said[-1:].isalnum() and piece[:1].isalnum() and not (said[-1].isdigit() and piece.isdigit())
            said += " " * apart + piece
        return said

    def _rows(self, line):
        """A line in rows of `COLUMNS` numbers, the last one first; of decimals two are read."""
        numbers = self.encode(re.sub(r"(\.[0-9]{2})[0-9]+", r"\1", line))
        numbers += [NONE] * (-len(numbers) % COLUMNS)
        return np.array(numbers, np.int64).reshape(-1, COLUMNS)[::-1]

    def read(self, texts, count):
        """The last `count` rows of each text, the last one first, (n, count, COLUMNS)."""
        read = np.zeros((len(texts), count, COLUMNS), np.int64)
        for place, text in enumerate(texts):
            begin = 0
            for line in reversed(text.split("\n")):
                rows = self.rows(line)[: count - begin]
                read[place, begin : begin + len(rows)] = rows
                begin += len(rows)
        return torch.from_numpy(read)


class Layer(nn.Module):
    """A layer of a transformer."""

    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.split, self.join = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.think = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x, seen, kept=None):
        """x (n, new, WIDTH) after the layer; each sees of those kept and itself what `seen` (n, 1, new, all) says."""
        q, k, v = (y.unflatten(-1, (HEADS, -1)).transpose(1, 2) for y in self.split(self.before(x)).chunk(3, -1))
        if kept is not None:
            k, v = torch.cat([kept[0], k], 2), torch.cat([kept[1], v], 2)
        y = functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        x = x + self.join(y.transpose(1, 2).flatten(2))
        return x + self.think(self.between(x)), (k, v)


class Policy(nn.Module):
    """The chances of the next of at most `longest` pieces, by the last `lines` of a message and the pieces so far."""

    def __init__(self, words, lines, longest):
        super().__init__()
        self.words, self.lines, self.longest = words, lines, longest
        self.piece = nn.Embedding(len(words.vocabulary), SMALL, padding_idx=NONE)
        self.patch = nn.Linear(COLUMNS * SMALL, WIDTH)
        self.line, self.said, self.place = (nn.Embedding(n, WIDTH) for n in (lines, len(words.vocabulary), longest))
        for one in (self.line, self.said, self.place):
            nn.init.normal_(one.weight, std=WIDTH**-0.5)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.last, self.own = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(words.vocabulary))
        self.row, self.column, self.copies = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, COLUMNS), nn.Linear(WIDTH, 1)

    def read(self, lines):
        """What there is after both layers of lines (n, lines, COLUMNS), which lines there are, and keys and values."""
        there = (lines != NONE).any(-1)[:, None, None, :]
        x, kept = self.patch(self.piece(lines).flatten(2)) + self.line.weight, []
        for layer in self.layers:
            x, new = layer(x, there)
            kept.append(new)
        return x, there, kept

    def forward(self, lines, read, before, first=0):
        """Log-probabilities (n, m, vocabulary) of the pieces after `before` (n, m), which stand from `first` on."""
        rows, there, kept = read
        n, m = before.shape
        holds = (lines[:, None] == before[:, :, None, None]).any(-1) & (before != NONE)[..., None]  # (n, m, lines)
        x = self.said(before) + self.place.weight[first : first + m] + holds.float() @ self.line.weight
        earlier = torch.ones(m, first + m, dtype=torch.bool).tril(first).expand(n, 1, -1, -1)
        seen, after = torch.cat([there.expand(-1, -1, m, -1), earlier], -1), []
        for layer, old in zip(self.layers, kept, strict=True):
            x, new = layer(x, seen, old)
            after.append(new)
        x = self.last(x)
        own = self.own(x)
        own = own.masked_fill(torch.arange(own.shape[-1]) == NONE, -1e9).log_softmax(-1)
        points = (self.row(x) @ rows.transpose(1, 2) / WIDTH**0.5)[..., None] + self.column(x)[:, :, None]
        points = points.masked_fill((lines == NONE)[:, None], -1e9).flatten(2).softmax(-1)
        copied = torch.zeros_like(own).scatter_add(2, lines.flatten(1)[:, None].expand(-1, m, -1), points)
        copies = self.copies(x)
        copied = functional.logsigmoid(copies) + (copied + 1e-9).log()
        return torch.logaddexp(functional.logsigmoid(-copies) + own, copied), (rows, there, after)

    def chances(self, lines, said):
        """Log-probabilities of the pieces of replies, said (n, longest), and the entropies of what was possible."""
        logs, _ = self(lines, self.read(lines), functional.pad(said[:, :-1], (1, 0)))
        return logs.gather(2, said[..., None])[..., 0], -(logs.exp() * logs).sum(-1)

    @torch.no_grad()
    def speak(self, lines, generator=None):
        """Replies (n, longest) and log-probabilities of their pieces: drawn, or without a generator the likeliest."""
        read, n = self.read(lines), len(lines)
        said, chances = torch.full((n, self.longest), NONE), torch.zeros(n, self.longest)
        piece, going = said[:, 0], torch.ones(n, dtype=torch.bool)
        for j in range(self.longest):
            logs, read = self(lines, read, piece[:, None], j)
            logs = logs[:, 0]
            piece = (
                logs.argmax(-1) if generator is None else torch.multinomial(logs.exp(), 1, generator=generator)[:, 0]
            )
            said[going, j], chances[:, j] = piece[going], logs.gather(1, piece[:, None])[:, 0]
            going = going & (piece != END)
            if not going.any():
                break
        return said, chances

    def text(self, reply):
        """A reply in words."""
        return self.words.decode([piece for piece in reply.tolist() if piece > END])


def play(policy, envs, seed, episodes, generator=None):
    """Episodes by their numbers, those of all environments at the same time.

    Returns their scores and pulls, and of all replies lines, pieces, log-probabilities, whether they could not be read,
    and the places of their episodes.
    """
    scores, pulls, turns = np.zeros(len(episodes)), np.zeros(len(episodes)), []
    for start in range(0, len(episodes), len(envs)):
        going = [*zip(range(start, len(episodes)), envs, strict=False)]
        texts = [env.reset(seed=seed, options={"episode": int(episodes[place])})[0] for place, env in going]
        while going:
            lines = policy.words.read(texts, policy.lines)
            said, chances = policy.speak(lines, generator)
            places, unread = torch.tensor([place for place, _ in going]), torch.zeros(len(going))
            texts, left = [], []
            for i, (place, env) in enumerate(going):
                text, _, terminated, truncated, info = env.step(policy.text(said[i]))
                unread[i] = "unreadable" in info
                if terminated or truncated:
                    scores[place], pulls[place] = info["score"], info["total_pulls"]
                else:
                    texts.append(text)
                    left.append((place, env))
            turns.append((lines, said, chances, unread, places))
            going = left
    return scores, pulls, *(torch.cat(parts) for parts in zip(*turns, strict=True))


def random_command(env, text, rng):
    """A readable reply to a text, drawn: one in sixteen is an answer, and all when nothing is left."""
    names, size = env.names, env.narrator.problem.answer_size
    if rng.random() < 1 / 16 or "Nothing is left" in text:
        inside = rng.permutation(len(names)) < (rng.binomial(len(names), 0.5) if size is None else size)
        return "ANSWER " + (" ".join(name for name, one in zip(names, inside, strict=True) if one) or "none")
    return f"PULL {rng.choice(names)}{rng.choice(['', ' 2', ' 3', ' 4'])}"


def random_replies(envs, seed):
    """Texts and random commands in reply to them, of all environments, one turn after another."""
    rng, texts, number = np.random.default_rng(seed), [""] * len(envs), 2**20  # far from the episodes of GRPO
    while True:
        for i, env in enumerate(envs):
            if not texts[i]:
                texts[i], number = env.reset(seed=seed, options={"episode": number})[0], number + 1
        replies = [random_command(env, text, rng) for env, text in zip(envs, texts, strict=True)]
        yield texts, replies
        steps = [env.step(reply) for env, reply in zip(envs, replies, strict=True)]
        texts = ["" if terminated or truncated else text for text, _, terminated, truncated, _ in steps]


def vocabulary(env):
    """The pieces of 400 messages and random replies."""
    texts = ["0123456789", " ".join(env.narrator.story.names.split()), env.reset(seed=0)[0], env.step("?")[0]]
    replies = random_replies([env], 0)
    for _ in range(400):
        texts += [one for (one,) in next(replies)]
    return Words(texts)


def improve(optimiser, loss, rate):
    """One step of the optimiser at this rate."""
    optimiser.param_groups[0]["lr"] = rate
    optimiser.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(optimiser.param_groups[0]["params"], 1.0)
    optimiser.step()


def imitate(policy, envs, seed, steps, rate=3e-3, batch=64):
    """Learn to speak from random commands."""
    optimiser, replies = torch.optim.Adam(policy.parameters()), random_replies(envs, seed)
    for i in range(steps):
        texts, commands = next(replies)
        lines, said = policy.words.read(texts, policy.lines), torch.full((len(texts), policy.longest), NONE)
        for row, command in zip(said, commands, strict=True):
            numbers = [*policy.words.encode(command), END]
            row[: len(numbers)] = torch.tensor(numbers)
        for rows in torch.arange(len(said)).split(batch):
            logs, _ = policy.chances(lines[rows], said[rows])
            loss = -(logs * (said[rows] != NONE)).sum() / len(rows)
            improve(optimiser, loss, rate * max(1 - i / steps, 0.1))


def reinforce(policy, envs, seed, options, rate=1.5e-3, group=8, batch=256, epochs=2, clip=0.2, entropy=0.01, fine=0.5):
    """GRPO until the time, or the number of iterations, is over. A line of the curve every 20 s."""
    generator, optimiser = torch.Generator().manual_seed(seed), torch.optim.Adam(policy.parameters())
    began, shown, i, share, recent = time.process_time(), 0.0, 0, 0.0, []
    while share < 1:
        numbers = np.repeat(np.arange(len(envs) // group) + i * (len(envs) // group), group)
        scores, pulls, lines, said, old, unread, places = play(policy, envs, seed, numbers, generator)
        ahead = scores.reshape(-1, group) - scores.reshape(-1, group).mean(1, keepdims=True)
        ahead = torch.from_numpy(ahead.ravel() / (ahead.std() + 1e-3)).float()
        gains = (ahead[places] - fine * (unread - unread.mean()))[:, None]
        for rows in (
            rows for _ in range(epochs) for rows in torch.randperm(len(said), generator=generator).split(batch)
        ):
            there = said[rows] != NONE
            logs, possible = policy.chances(lines[rows], said[rows])
            ratio = ((logs - old[rows]) * there).exp()
            better = torch.min(ratio * gains[rows], ratio.clamp(1 - clip, 1 + clip) * gains[rows])
            loss = -((better + entropy * possible) * there).sum() / len(rows)
            improve(optimiser, loss, rate * max(1 - share, 0.05))
        spent, i, recent = time.process_time() - began, i + 1, [*recent, scores.mean()][-10:]
        share = i / options.iterations if options.iterations else spent / options.seconds
        if spent - shown > 20 or share >= 1:
            shown, example = spent, policy.text(said[torch.randint(len(said), (1,), generator=generator)[0]])
            how = f"{pulls.mean():4.1f} pulls in {len(said) / len(envs):4.1f} replies, {unread.mean():4.0%} unreadable"
            curve = f"{spent:4.0f} s, {i * len(envs):6,} episodes: score {np.mean(recent):.3f}, {how}"
            print(f"  {curve}, such as {example!r}", flush=True)


def row(name, scores, others):
    """A line of the table: a score, and the differences from others on the same episodes with 95 % intervals."""
    cells = [f"{scores.mean():.4f}"]
    for other in others:
        ahead = paired_difference(scores, other)
        cells.append(f"{ahead.difference:+.4f} [{ahead.low:+.4f}, {ahead.high:+.4f}]")
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main():
    """Train and judge each seed."""
    parser = argparse.ArgumentParser(formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--seconds", type=float, default=200, help="of processor time, of GRPO for one seed")
    parser.add_argument("--iterations", type=int, default=0, help="of GRPO, in place of the time")
    parser.add_argument("--speech", type=int, default=60, help="turns of random commands that are imitated")
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch")
    parser.add_argument("--problem", default="BestArm")
    parser.add_argument("--arms", type=int, default=4)
    parser.add_argument("--budget", type=int, default=16)
    parser.add_argument("--against", nargs="+", default=["uniform", "top-two"], help="agents")
    parser.add_argument("--episodes", type=int, default=8000, help="of the judgement")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rules = {"instance": f"sampler(arms={options.arms})", "budget": options.budget}
    envs = [TextView(gym.make(f"bandit_envs/{options.problem}-v0", actions="full", **rules)) for _ in range(256)]
    words, held_out = vocabulary(envs[0]), np.arange(options.episodes)
    against = options.against
    judged = agents.evaluate(against, options.problem, episodes=options.episodes, seed=HELD_OUT, env_kwargs=rules)
    rivals, every = [own["score"].to_numpy() for _, own in judged.episodes.groupby("agent", sort=False)], []
    for seed in range(1, options.seeds + 1):
        torch.manual_seed(seed)
        policy, began = Policy(words, options.arms + 4, options.arms + 2), time.process_time()
        untrained = play(policy, envs, HELD_OUT, held_out)[0]
        imitate(policy, envs, seed, options.speech)
        speaks = play(policy, envs, HELD_OUT, held_out)[0]
        print(f"seed {seed}: score {untrained.mean():.4f} untrained, {speaks.mean():.4f} after random commands")
        reinforce(policy, envs, seed, options)
        trained = play(policy, envs, HELD_OUT, held_out)[0]
        every.append((untrained, speaks, trained))
        print(f"  score {trained.mean():.4f}; {time.process_time() - began:.0f} s of processor time with the judgement")
    print(f"\n| | score | over untrained | over random commands | {' | '.join(f'over {name}' for name in against)} |")
    print("|---" * (4 + len(against)) + "|")
    for seed, (untrained, speaks, trained) in enumerate(every, 1):
        row(f"seed {seed}", trained, [untrained, speaks, *rivals])
    untrained, speaks, trained = np.mean(every, axis=0)
    row("mean of the seeds", trained, [untrained, speaks, *rivals])
    for name, scores in zip(against, rivals, strict=True):
        row(name, scores, [])


if __name__ == "__main__":
    main()
