"""Priors for choosing one of many prompts or language models, graded each by itself or all on the same questions."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..kernels import rng
from ..kernels.checks import Floats, flag, integer, number
from .arms import Form, Shared
from .instance import Sampler

FARTHEST = 700.0  # logits beyond are cut off: exp of more is no number
MOST_ROWS = 2**24
# Ability, spread, difficulty, discrimination and noise: of right and wrong, and of marks.
FITTED = {False: (-22.7, 16.8, 11.8, 0.84, 0.0), True: (-11.8, 7.6, 6.0, 0.42, 2.5)}


class PromptSelection(Sampler):
    """Fresh candidates in each episode: K prompts or models, graded right or wrong, whose accuracies are logit-normal.

    The logits of the accuracies are independent normal numbers. The defaults are fitted to the win rates of the 223
    models of the leaderboard AlpacaEval 2; accuracy .81 and spread 1.12 to the 102 of AlpacaEval 1.

    Args:
        K: candidates, 2 or more.
        accuracy: median of the accuracies, in (0, 1).
        spread: standard deviation of their logits, > 0.
    """

    name = "prompt-selection"
    positive = True

    def __init__(self, K: int = 30, accuracy: float = 0.16, spread: float = 1.26) -> None:
        K = integer("K", K, 2, rng.ARMS_LIMIT)
        self.accuracy = number("accuracy", accuracy, 0, 1, above=True, below=True)
        self.logit_spread = number("spread", spread, 0, 20, above=True)
        super().__init__("bernoulli", K)

    def draw(self, key: NDArray[np.uint64], episode: NDArray[np.uint64]) -> tuple[Floats, Floats]:
        u = rng.uniforms(key, episode, self.K, self.D, stream=rng.INSTANCE)
        logit = math.log(self.accuracy / (1 - self.accuracy)) + self.logit_spread * rng.normal_quantiles(u)
        means = 1.0 / (1.0 + np.exp(-logit))
        return means[..., 0], self.pack(means)

    def to_dict(self) -> Form:
        return {self.name: {"K": self.K, "accuracy": self.accuracy, "spread": self.logit_spread}}


class ScoreTables(Sampler):
    """A fresh table in each episode: K candidates, graded on the same N rows, right or wrong or by marks in [0, 1].

    The logit of candidate k in row n is s_n (a_k - d_n), with the ability a_k ~ N(ability, spread^2), the difficulty
    d_n ~ N(0, difficulty^2), and the discrimination s_n, whose logarithm is N(0, discrimination^2): the two-parameter
    logistic model (Birnbaum 1968). Right or wrong: a score is 1 with the probability of this logit, else 0. Marks: a
    score is 1 / (1 + exp(-logit)), after normal noise has been added to the logit.

    The defaults are fitted to the scores of 58 models on the 805 rows of AlpacaEval 2, which are mostly near 0 or near
    1, as they are and cut at .5: seven statistics, by their averages over 12 tables of that size. Means of 40 tables at
    the defaults, K=58 and N=805, in brackets their standard deviations, beside the data:

    |                                    | marks       | data | 0/1         | data |
    |------------------------------------|-------------|------|-------------|------|
    | mean of all scores                 | .122 (.023) | .128 | .132 (.027) | .137 |
    | standard deviation of column means | .170 (.027) | .179 | .202 (.030) | .213 |
    | share of the variance: columns     | .343 (.062) | .366 | .363 (.058) | .385 |
    | share of the variance: rows        | .219 (.035) | .201 | .173 (.029) | .164 |
    | share of the variance: within      | .437 (.036) | .433 | .464 (.038) | .452 |
    | mean correlation of two columns    | .366 (.034) | .361 | .319 (.043) | .311 |

    The means of columns are those of the table that was drawn, not of the model.

    Args:
        K: candidates, 2 or more.
        N: rows.
        marks: whether scores are marks in (0, 1), in place of 0 and 1.
        ability: mean of the abilities. spread: their standard deviation, > 0.
        difficulty: standard deviation of the difficulties, >= 0.
        discrimination: standard deviation of the logarithms of the discriminations, >= 0.
        noise: standard deviation of what is added to the logits of marks, >= 0. None, of all five: as fitted.
    """

    name = "score-tables"

    def __init__(
        self,
        K: int = 20,
        N: int = 500,
        marks: bool = False,
        ability: float | None = None,
        spread: float | None = None,
        difficulty: float | None = None,
        discrimination: float | None = None,
        noise: float | None = None,
    ) -> None:
        self.K, self.N, self.D = integer("K", K, 2, rng.ARMS_LIMIT), integer("N", N, 1, MOST_ROWS), 1
        self.marks = flag("marks", marks)
        if noise is not None and not self.marks:
            raise ValueError(f"noise is of marks: give marks=True, or leave out noise={noise!r:.200}")
        given = (ability, spread, difficulty, discrimination, noise)
        a, sd_a, sd_d, sd_s, sd_e = (
            fit if value is None else value for value, fit in zip(given, FITTED[self.marks], strict=True)
        )
        self.ability = number("ability", a, -1000, 1000)
        self.ability_spread = number("spread", sd_a, 0, 1000, above=True)
        self.difficulty = number("difficulty", sd_d, 0, 1000)
        self.discrimination = number("discrimination", sd_s, 0, 10)
        self.noise = number("noise", sd_e, 0, 1000)
        self.arms, self.distribution = Shared(np.full((self.N, self.K), 0.5)), Shared.distribution

    @property
    def positive(self) -> bool:
        return self.marks

    def draw(self, key: NDArray[np.uint64], episode: NDArray[np.uint64]) -> tuple[Floats, Floats]:
        u = rng.uniforms(key, episode, self.K, 1 + self.N, stream=rng.INSTANCE)
        of_rows = np.ones(len(episode), np.uint64)  # their uniforms are others than those of the candidates
        z = rng.normal_quantiles(rng.uniforms(key, episode, self.N, 2, stream=rng.INSTANCE, index=of_rows))
        a = self.ability + self.ability_spread * rng.normal_quantiles(u[:, :, :1])
        d, s = self.difficulty * z[:, None, :, 0], np.exp(self.discrimination * z[:, None, :, 1])
        logit, u = s * (a - d), np.ascontiguousarray(u[:, :, 1:])
        if self.noise > 0:
            logit += self.noise * rng.normal_quantiles(u)
        scores = 1.0 / (1.0 + np.exp(-np.clip(logit, -FARTHEST, FARTHEST)))
        if not self.marks:
            scores = (u < scores).astype(np.float64)
        return Shared.scored(scores)

    def to_dict(self) -> Form:
        form: Form = {"K": self.K, "N": self.N, "marks": self.marks, "ability": self.ability}
        form |= {"spread": self.ability_spread, "difficulty": self.difficulty, "discrimination": self.discrimination}
        return {self.name: form | ({"noise": self.noise} if self.marks else {})}
