"""Nothing that a caller hands to an agent ends the interpreter, hangs, or raises anything but clear errors."""

from __future__ import annotations

import numpy as np
import pytest
from fuzzing import check_case, fuzz, names, set_up

AGENTS = names()
GROUPS = 12
FEW = ("lsa", "sar", "evidence", "ugape", "st2", "dp-index", "uniform")  # of each kind: how decisions are made


@pytest.mark.filterwarnings("ignore")
def test_odd_input_to_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    """One agent of each kind on one of its problems, in this process; all of them in the slow test."""
    monkeypatch.setattr("agents.thresholding.dp_index.HORIZON", 60)
    setups = [set_up(*next(one for one in reversed(AGENTS) if one[1] == name and one[0] < 5)) for name in FEW]
    with np.errstate(all="ignore"):
        found = {case: said for case in range(300) if (said := check_case(setups, case))}
    assert not found


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
def test_odd_input_to_every_agent_often(group: int) -> None:
    found = fuzz(AGENTS[group::GROUPS], 10**6 * (group + 1), 10**6 * (group + 1) + 9000)
    assert not found, "\n".join(f"{case}: {said}" for case, said in sorted(found.items())[:20])
