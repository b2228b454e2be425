"""Decisions while results are still to come, of agents that know nothing of them: in environments and in sessions.

Environments with a `batch` or a `delay` show `pending`, how many results of each arm are still to come. An agent
decides twice. By what has been shown it may stop. Else it pulls what it would pull if the pending results had come,
each as the present mean of its arm (`imagined`). Where it would then stop, it waits for a result. What is imagined
never enters an answer or a certificate.

An agent that `resumes` is asked about imagined results without its state. One that goes by rounds has a state that
follows what it has asked for: where its plan is over (`Algorithm.plan_over`), it waits until all results have come.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Task
from bandit_envs.envs import tally
from bandit_envs.kernels import Bools, Floats, Ints, integers

Shown = dict[str, NDArray[Any]]  # an observation of a batch, without `pending`
PENDING = "pending"


@dataclass
class WaitingState:
    """State of E episodes whose results may be late."""

    pulls: Ints  # (E, ..) results that had been shown at the last call
    arm: Ints  # (E,) what the agent has decided by results that were shown, -1: nothing yet; and how often to pull it
    left: Ints
    state: Any = None  # of the agent; of one that goes by rounds, with all pulls that were asked for


def guesses(task: Task, pulls: Ints, mean: Floats, total: Floats) -> Floats:
    """What is expected of a result, as `mean` has it: the arm's mean, else that of all arms, else the middle."""
    each = pulls.reshape(*pulls.shape, *(1,) * (mean.ndim - pulls.ndim))
    across = tuple(range(1, each.ndim if task.pull == "coordinate" or task.D == 1 else 2))
    count = each.sum(axis=across, keepdims=True)
    middle = 0.0 if task.support is None else sum(task.support) / 2
    low, high = task.support or (-np.inf, np.inf)
    overall = (total.sum(axis=across, keepdims=True) / np.maximum(count, 1)).clip(low, high)
    return np.where(each > 0, mean, np.where(count > 0, overall, middle))


def imagined(task: Task, shown: Shown, pending: Ints) -> Shown:
    """An observation (E, ..) in which the pending results, (E, K) or as `pulls`, have come as their arms' means."""
    if "arms" in shown:
        return _longer(task, shown, pending)
    pulls, mean = shown["pulls"], shown["mean"]
    if "scores" in shown:  # the mean is of the rows that could be scored
        failed = np.isnan(shown["scores"]).sum(axis=2)
        pulls = pulls - (failed if task.D == 1 else failed[..., 0])
    guess = guesses(task, pulls, mean, shown["total"])
    over = (*pulls.shape, *(1,) * (mean.ndim - pulls.ndim))
    more, share = pending.reshape(over), (pulls / np.maximum(pulls + pending, 1)).reshape(over)
    found = shown | {"pulls": shown["pulls"] + pending, "total": shown["total"] + more * guess}
    found["mean"] = np.where(more > 0, guess, mean)
    found["variance"] = shown["variance"] * share
    if "moments" in shown:
        found["moments"] = shown["moments"] * share[..., None]
    if "scores" in shown:
        rows = np.arange(shown["scores"].shape[2])
        new = (rows >= shown["pulls"][..., None]) & (rows < found["pulls"][..., None])
        new = new if task.D == 1 else new[..., None]
        found["scores"] = np.where(new, np.expand_dims(guess, 2), shown["scores"])
    return found


def _longer(task: Task, shown: Shown, pending: Ints) -> Shown:
    """Histories with the pending results behind their ends, arm by arm."""
    pulls, means = tally(task, shown)
    D = task.D if task.pull == "arm" else 1
    values = np.nan_to_num(means).reshape(len(pulls), -1, D)
    counts = np.repeat(pulls.reshape(len(pulls), -1), values.shape[1] // pulls[0].size, axis=1)[..., None]
    total = (counts * values).reshape(means.shape)
    guess = guesses(task, pulls, np.nan_to_num(means), total).reshape(len(pulls), -1, D)
    found = {name: array.copy() for name, array in shown.items()}
    for e in np.flatnonzero(pending.reshape(len(pending), -1).any(axis=1)):
        arms = np.repeat(np.arange(pending[e].size), pending[e].ravel())
        first = int(shown["length"][e, 0])
        new = slice(first, first + len(arms))
        arms = arms[: found["arms"].shape[1] - first]
        found["arms"][e, new], found["times"][e, new] = arms, 1
        found["samples"][e, new] = guess[e, arms].reshape(found["samples"][e, new].shape)
        found["length"][e, 0] = first + len(arms)
    return found


def predicted(agent: Any, observation: Any, state: Any) -> tuple[Any, Any]:
    """`Agent.predict` of an observation with `pending`."""
    batch, single = agent._batched(observation)
    shown = {name: array for name, array in batch.items() if name != PENDING}
    task, E = agent.task, len(shown["remaining"])
    pending = integers(PENDING, batch[PENDING], (E, *task.shape))
    if pending.min(initial=0) < 0:
        raise ValueError(f"{PENDING} must be >= 0, got {pending.min()}")
    if state is None:
        state = WaitingState(np.zeros((E, *task.shape), np.int64), *np.full((2, E), -1))
    elif not isinstance(state, WaitingState) or len(state.arm) != E:
        text = "with results that are pending, state must be None or one that predict of"
        raise ValueError(f"{text} {agent.name} has returned for {E} episodes, got {state!r:.200}")
    waits: Any = pending.reshape(E, -1).any(axis=1)
    decide = _by_statistics if agent.resumes else _by_rounds
    action = decide(agent, shown, pending, waits, state)
    return first_of(action) if single else action, state


def first_of(action: Any) -> Any:
    """The action of an episode that is a batch alone, without the axis: an int, or a dict."""
    if not isinstance(action, dict):
        return int(action[0])
    return {"arm": int(action["arm"][0]), "times": int(action["times"][0]), "answer": action["answer"][0]}


def _by_statistics(agent: Any, shown: Shown, pending: Ints, waits: Bools, state: WaitingState) -> Any:
    """The actions of an agent that resumes."""
    task, remaining, E = agent.task, shown["remaining"], len(waits)
    full, answers = task.actions == "full", np.zeros((E, task.K), np.int8)
    due = _due(agent, shown, waits, remaining[:, 0] == 0, state)
    if due.any():
        asked = pending.reshape(E, -1).sum(axis=1, keepdims=True)  # of the budget, what is shown has spent
        own = shown | {"remaining": np.where(remaining < 0, remaining, remaining + asked)}
        before = None if due.all() else copy.deepcopy(state.state)
        action, state.state = agent.predict(own, state.state)
        if before is not None:
            put_rows(state.state, before, np.flatnonzero(~due), E)
        arms, times = (action["arm"], action["times"]) if full else (action, np.ones(E, np.int64))
        state.arm, state.left = np.where(due, arms, state.arm), np.where(due, times, state.left)
        answers = action["answer"] if full else answers
    ends = (state.arm == task.stop) | (remaining[:, 0] == 0)
    arms, held = state.arm, np.zeros(E, np.bool_)
    if not ends.all():
        dream = imagined(task, shown, pending)
        action, _ = agent.predict(dream, agent._made(dream))
        wanted = action["arm"] if full else action
        arms = np.where(ends | (wanted == task.stop), arms, wanted)
        held = full & waits & ~ends & (wanted == task.stop)  # with actions="arm" none waits
    return {"arm": np.where(held, 0, arms), "times": np.where(held, 0, 1), "answer": answers} if full else arms


def _due(agent: Any, shown: Shown, waits: Bools, spent: Bools, state: WaitingState) -> Bools:
    """The episodes, (E,), that decide by what is shown: as in a session, after a result that the agent did not want."""
    E, pulls = len(spent), shown["pulls"] if "pulls" in shown else tally(agent.task, shown)[0]
    new, state.pulls = (pulls - state.pulls).reshape(E, -1), pulls.copy()
    one = (new.sum(axis=1) == 1) & (new.min(axis=1) == 0) & (new.argmax(axis=1) == state.arm)
    state.left = state.left - one
    begins = ~waits & ~pulls.reshape(E, -1).any(axis=1)
    lost = new.any(axis=1) & ~one | begins | (state.arm < 0)
    if state.state is None:
        state.state = agent._made(shown)
    elif lost.any():
        put_rows(state.state, agent._made(shown), np.flatnonzero(lost), E)
    due: Bools = lost | one & (state.left == 0) | spent
    return due


def _by_rounds(agent: Any, shown: Shown, pending: Ints, waits: Bools, state: WaitingState) -> Any:
    """The actions of an agent that does not resume: it waits where its plan is over."""
    task, full = agent.task, agent.task.actions == "full"
    if not waits.any():
        action, state.state = agent.predict(shown, state.state)
        return action
    dream, before = imagined(task, shown, pending), copy.deepcopy(state.state)
    held = waits & plan_over(agent, state.state, dream)
    held |= waits & bool(task.items and agent.stops)  # a certificate of a table takes in rows for good
    action, state.state = agent.predict(dream, state.state)
    arms = action["arm"] if full else action
    held = waits & (held & full | (arms == task.stop))  # which it would do by what is imagined
    if not held.any():
        return action
    put_rows(state.state, before, np.flatnonzero(held), len(held))
    if not full:  # which has no action that waits
        return np.where(held, pending.reshape(len(held), -1).argmax(axis=1), arms)
    return action | {"arm": np.where(held, 0, arms), "times": np.where(held, 0, action["times"])}


def plan_over(agent: Any, state: Any, shown: Shown) -> Bools:
    """Whether the next decision of an agent that goes by rounds depends on results, (E,); False if it does not say."""
    over = getattr(agent, "plan_over", None)
    if over is None or state is None:
        return np.zeros(len(shown["remaining"]), np.bool_)
    found: Bools = over(state, shown["pulls"])
    return found


def put_rows(old: Any, new: Any, slots: Ints, E: int, alone: bool = False) -> None:
    """Put the episodes `slots` of another state into a state of E, in place: arrays and lists with a row for each.

    new: a state of all E episodes, or of these `alone`.
    """
    shape, other = (tuple(getattr(x, "shape", (len(x),) if isinstance(x, list) else ())) for x in (old, new))
    rows = len(slots) if alone else E
    axes = [a for a in range(len(shape)) if shape[a] == E and other == (*shape[:a], rows, *shape[a + 1 :])]
    if axes and isinstance(old, list):
        for i, e in enumerate(slots):
            old[e] = new[i if alone else e]
    elif axes:
        place = (slice(None),) * axes[0] + (slots,)
        (old := old.view()).flags.writeable = True  # those of a closed state are shown for reading alone
        old[place] = new if alone else new[place]
    elif old is not new:
        parts, others = _parts(old), _parts(new)
        for part in parts.keys() & others.keys() - {"bound", "kept"}:
            put_rows(parts[part], others[part], slots, E, alone)


def _parts(state: Any) -> Mapping[Any, Any]:
    """The parts of a state: the values of a dict, the members of a tuple or a list, the attributes of an object."""
    if isinstance(state, (list, tuple)):
        return dict(enumerate(state))
    names = getattr(state, "__dict__", getattr(state, "__slots__", ()))
    return state if isinstance(state, Mapping) else {name: getattr(state, name) for name in names}
