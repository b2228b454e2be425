"""Nothing that a caller hands to an agent ends the interpreter, hangs, or raises anything but clear errors."""

from __future__ import annotations

import contextlib
import copy

import numpy as np
import pytest
from fuzzing import check_case, names, set_up

AGENTS = names()
FEW = ("lsa", "sar", "evidence", "ugape", "st2", "dp-index", "uniform")  # of each kind: how decisions are made


@pytest.mark.filterwarnings("ignore")
def test_odd_input_to_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """One agent of each kind on one of its problems, in this process; all of them in the program."""
    monkeypatch.setattr("agents.thresholding.dp_index.HORIZON", 60)
    setups = [set_up(*next(one for one in reversed(AGENTS) if one[1] == name and one[0] < 5)) for name in FEW]
    with np.errstate(all="ignore"):
        found = {case: said for case in range(300) if (said := check_case(setups, case))}
    assert not found


@pytest.mark.parametrize(
    ("agent", "pulls"), [("look-ahead", -(2**31)), ("look-ahead", 2**40), ("opt-kg", 2**32), ("top-two", 2**63 - 1)]
)
def test_counts_that_no_episode_has(agent: str, pulls: int) -> None:
    """Places in tables and draws go by pulls: those of no table are computed, or refused; no draw goes on for ever."""
    setups = [made for one in AGENTS if one[1] == agent and (made := set_up(*one))]
    with np.errstate(all="ignore"):
        for setup in setups:
            for observation, state in setup.snapshots[3][1:]:
                odd = {**observation, "pulls": observation["pulls"].copy(), "total": observation["total"] * np.nan}
                odd["pulls"][:, 0] = pulls
                for one in (odd, {**odd, "total": observation["total"]}):
                    with contextlib.suppress(ValueError):
                        setup.agent.predict(one, copy.deepcopy(state))
    assert setups


def test_observations_of_wrong_shapes_are_refused_before_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part with axes and rows too many; without the look at shapes, the same calls come to the algorithm."""
    entered = list[str]()
    for name in ("uniform", "random", "sar", "lucb"):
        setup = next(made for one in AGENTS if one[1] == name and (made := set_up(*one)))
        kind, choose = type(setup.agent), type(setup.agent).choose
        monkeypatch.setattr(kind, "choose", lambda self, *given, of=choose: entered.append("") or of(self, *given))
        for observation, state in setup.snapshots[3][1:]:
            entered.clear()
            for part, array in observation.items():
                for odd in (array[None], array[..., None], np.concatenate([array, array]), array[:0], array[..., :0]):
                    with pytest.raises(ValueError, match=part if part != "pulls" else "pulls|shape"):
                        setup.agent.predict({**observation, part: odd}, copy.deepcopy(state))
                    assert not entered
            setup.agent.predict(observation, copy.deepcopy(state))
            assert entered
        entered.clear()
        with monkeypatch.context() as blind:
            blind.setattr("agents.core.agent.fitted", lambda name, task, observation: (observation, False))
            remaining = np.concatenate([observation["remaining"]] * 2)  # more rows than are read
            with contextlib.suppress(ValueError):
                setup.agent.predict({**observation, "remaining": remaining}, copy.deepcopy(state))
        assert entered
