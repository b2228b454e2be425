"""Names and modules of earlier versions are found where they were, with a word on where they are now."""

import importlib
import subprocess
import sys

import pytest

import bandit_envs
from bandit_envs import moved

NAMES = """
    BERNOULLI BLOCK Certifier Deviation ENDED EPISODES_LIMIT FeatureTable GAUSSIAN Kernel LIVE Lookahead
    LookaheadModel MOST_TIMES Measure PULLS_LIMIT Playing Potential Quiet STUDENT Samples View Viewer
    agent_uniform arm_cost arm_penalty arm_value arms_that_matter assemble at_boundary bernoulli_value
    beta_below block_of_pulls boundary_of call_routine carray choice cutoff deviations divergence enough
    entries_of episode_kernel errors_of flag fleeting fresh_root image inlined install_hint integer integers
    interval jit kernel lean limits_of mask number numbers outline own_numbers pair_alternative pair_bounds
    pair_cost pair_value parse_call part player pointer pull pull_once relative_gains report_pair root_number
    routine slot_kernel spend tally unknown view
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_a_name_that_has_moved_is_found_and_warned_of(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"bandit_envs\.{name} is now bandit_envs\.\w+\.{name}") as said:
        found = getattr(bandit_envs, name)
    home = str(said[0].message).split(" is now ")[1].rpartition(".")[0]
    assert getattr(importlib.import_module(home), name) is found


def test_modules_that_have_moved_are_those_of_today() -> None:
    """In a process of its own: each module is imported under its old name, as a statement and as an attribute."""
    code = f"""if True:
        import importlib, warnings
        import bandit_envs
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for old, new in {moved.MODULES!r}.items():
                found = importlib.import_module("bandit_envs." + old)
                assert found is importlib.import_module("bandit_envs." + new), old
                assert any(f"bandit_envs.{{old}} is now bandit_envs.{{new}}" in str(one.message) for one in said), old
            from bandit_envs.arms import Bernoulli
            assert Bernoulli is bandit_envs.Bernoulli and bandit_envs.evidence.laws.GAUSSIAN == 0
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_there_is_no_other_name() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = bandit_envs.no_such_name
    assert len(bandit_envs.__all__) <= 46
