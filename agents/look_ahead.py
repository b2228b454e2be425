"""The look-ahead agent: pull the arm that raises most what the score will be if the rest goes to all arms equally.

A knowledge gradient, the one-step greedy rule on the expected value of the answer (Frazier, Powell & Dayanik, SIAM
Journal on Control and Optimization 2008, section 3), with one change: the value is that after a uniform rollout.

symbols     T the horizon, t pulls so far, R = (T - t - 1) / K pulls of each arm that are left after this one
            phi(R) the expected score of the answer after R more pulls of each arm (`bandit_envs.problems.potential`)
            gain of an arm: E phi(R) after it was pulled once more, less phi(R)
departures  D1 the paper takes phi(0), whose gain is nearly always exactly 0 where an answer is a set: one sample seldom
               changes it; phi(R) is phi(0) at the last pull
            D2 the prior is that of `bandit_envs.kernels.belief`, by the task alone, in place of one that is given
            D3 a pull is a larger share of the variance that is resolved, whatever its sample (AllGood: but for the last
               one): see `relative_gains`, and `bandit_envs.problems.sampled`
            D4 gains that agree to 1e-12 are ties, which go to the lowest index: the rest is rounding
            D5 of samples without a known range, each arm is pulled once first, in order: place and spread of their
               means come from the arms
            D6 the answer is that of the environment, by the empirical means
            D7 where by the samples so far fewer than `RARE` of each arm would lie at the rarer end of a known range,
               all arms get equal numbers: one such sample of an arm that is pulled oftener turns all answers
            D8 an arm never pulled is in no answer: where the prior of Threshold or Feasible has it in, it is pulled
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs import Simulation
from bandit_envs.kernels import episode_kernel, part
from bandit_envs.problems import Lookahead, LookaheadModel, LookaheadScratch, relative_gains
from bandit_envs.simulation import Playing, Quiet, player

from .core.agent import ALL_PROBLEMS, Agent, Floats, Ints, Observation

TIE = 1e-12  # D4
RARE = (1.0, 0.0, 1.6, 2.0)  # D7: of Threshold, TOP_K, ALL_GOOD, CONTROL


@part
def _few(model, made, sums):
    """Whether fewer than `RARE` samples of each arm would lie at the rarer end of their range."""
    t, prior, kind = float(made.sum()), model.prior, model.potential.kind
    share = ((sums.sum() - t * prior.low) / prior.scale + 1.0) / (t + 2.0)
    few = model.horizon * min(share, 1.0 - share) < RARE[kind] * len(made)
    return few and (kind > 0 or model.potential.exact)  # Feasible has a prior that knows of rare samples


@episode_kernel
def largest_gain(e: int, made, sums, ranged, model: LookaheadModel, scratch: LookaheadScratch):
    """The arm with the largest gain; pulls made (E, K), sums of samples (E, K D), whether samples have a range."""
    K, arm = made.shape[1], 0
    if not ranged:
        for i in range(K):
            if made[e, i] == 0:
                return i  # D5
    relative_gains(model, scratch, made[e], sums[e])  # D1, D2, D3
    if ranged and _few(model, made[e], sums[e]):
        for i in range(K):
            scratch.gains[i] = -float(made[e, i])  # D7
    for i in range(1, K):
        arm = i if scratch.gains[i] > scratch.gains[arm] else arm
    least = scratch.gains[arm] - TIE
    for i in range(K):
        if scratch.gains[i] >= least:
            return i  # D4
    return arm


class LookAhead(Agent):
    """The one-step greedy rule of the look-ahead potential.

    Args:
        task: a task or an environment, with a budget, or else with `max_pulls`, which is then the horizon.
    """

    name, source = "look-ahead", "this package, after Frazier, Powell & Dayanik, SICON 2008"
    solves = ALL_PROBLEMS
    anytime = False
    needs = "the budget, or max_pulls"

    def __init__(self, task: object) -> None:
        super().__init__(task)
        self.lookahead = self.task.lookahead(self.name)
        if math.isnan(self.lookahead.horizon):
            raise ValueError("look-ahead needs a budget, or else max_pulls, for its horizon; the task has neither")

    @property
    def plays(self) -> bool:
        return type(self.lookahead) is Lookahead

    def choose(self, observation: Observation, state: object) -> Ints:
        pulls = np.ascontiguousarray(observation["pulls"], np.int64)
        total = np.ascontiguousarray(observation["total"], np.float64)
        if not self.plays:
            first = (pulls == 0) & (self.task.support is None)  # D5
            gains = np.where(first, math.inf, self.lookahead.gains(pulls, total))
            return np.array(np.argmax(gains >= gains.max(axis=1, keepdims=True) - TIE, axis=1))  # D4
        return self._called(largest_gain.quick, pulls, total.reshape(len(pulls), -1))

    def played(self, simulation: Simulation, quiet: Quiet, observation: Observation, state: object) -> Ints:
        E, playing = len(observation["pulls"]), Playing(simulation, quiet)
        pulls, total = simulation.pulls.reshape(E, -1), simulation.total.reshape(E, -1)
        return self._called(player(largest_gain), pulls, total, playing)

    def _called(self, kernel: Any, pulls: Ints, total: Floats, *playing: Playing) -> Ints:
        out = np.empty(len(pulls), np.int64)
        kernel(pulls, total, self.task.support is not None, *self.lookahead.parts(), out, *playing)
        return out
