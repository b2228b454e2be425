"""Real experiments: an agent names the next measurement, people make it, and the answer is updated with each result.

A session is an event log and a fold over it. `log` keeps the facts and the events in a database. `fold` adds the events
up to a state: the arms, questions and results, and the agent's own `course` through them. Users call `session`, whose
`run` is in `running`; `page` shows it in a browser, and `rehearsal` says how long it will take.
"""

from .ab_test import ab_test, ab_test_plan
from .rehearsal import Rehearsal, rehearse
from .session import Session

__all__ = ["Rehearsal", "Session", "ab_test", "ab_test_plan", "rehearse"]
