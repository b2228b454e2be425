"""Real experiments: an agent names what to measure next, people measure it, and the answer moves as results come in.

Everything that has happened is a row of one append-only table, in `store`. `book` adds these rows up: which arms there
are, what has been asked and told. `run` is the agent's own course through what has been told. `session` is what a user
calls, and `page` shows it in a browser.
"""

from .session import Session

__all__ = ["Session"]
