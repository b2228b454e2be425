"""Names and modules of earlier versions are found where they were, with a word on where they are now."""

import importlib
import subprocess
import sys

import pytest

import bandit_envs
from bandit_envs import moved


@pytest.mark.parametrize("name", sorted(moved.NAMES))
def test_a_name_that_has_moved_is_found_and_warned_of(name: str) -> None:
    home = importlib.import_module(f"bandit_envs.{moved.NAMES[name]}")
    assert name in home.__all__
    with pytest.warns(DeprecationWarning, match=rf"bandit_envs\.{name} is now bandit_envs\.\w+\.{name}"):
        assert getattr(bandit_envs, name) is getattr(home, name)


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
    assert len(bandit_envs.__all__) <= 45
