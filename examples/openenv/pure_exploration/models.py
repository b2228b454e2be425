"""What goes over the wire: a reply of a language model, and the message that answers it."""

from openenv.core.env_server.types import Action, Observation
from pydantic import Field

LONGEST = 2**14  # characters, as `bandit_envs.text.LONGEST`; clients need no bandit_envs


class BanditAction(Action):
    """A reply: a command on a line of its own, as the first message says."""

    text: str = Field(max_length=LONGEST, description="A reply, as 'PULL teal 3' or 'ANSWER teal, red'")


class BanditObservation(Observation):
    """A message; `reward` and `done` are beside it. The first one says the task and how to reply."""

    message: str = Field(description="What a language model is shown")
