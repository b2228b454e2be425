"""Real experiments: an agent names what to measure next, people measure it, and the answer moves as results come in.

A session is an event log and a fold over it. `log` keeps the facts and the events in a database. `fold` adds the events
up to a state: the arms, what has been asked and told, and in `run` the agent's own course through it. `session` is what
a user calls, `page` shows it in a browser.
"""

from .session import Session

__all__ = ["Session"]
