"""A rule for flaky tests of pytest: run a marked one until it is shown to pass often enough, or not to, at any time.

If `most` runs show neither, it is skipped, and says so. A `conftest.py` needs the hook alone.
"""

import random
import sys

import pytest

import agents


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Call a marked test again and again, with the same fixtures. Without a mark, pytest calls it."""
    if not (mark := pyfuncitem.get_closest_marker("passes")):
        return None

    def passes(_: int) -> bool:
        try:
            pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames})
        except (Exception, pytest.fail.Exception):
            return False
        return True

    found = agents.gate(map(passes, range(mark.kwargs["most"])), at_least=mark.kwargs["at_least"], delta=0.01)
    {"pass": print, "fail": pytest.fail, "open": pytest.skip}[found.verdict](str(found))
    return True


@pytest.mark.passes(at_least=0.99, most=2000)
@pytest.mark.parametrize("rate", [1.0, 0.95, 0.992])
def test_of_a_rate(rate: float) -> None:
    """It passes so often."""
    assert random.random() < rate


if __name__ == "__main__":
    random.seed(1)
    pytest.main(["-rs", "--tb=short", "-oaddopts=", "-omarkers=passes", __file__], plugins=[sys.modules[__name__]])
