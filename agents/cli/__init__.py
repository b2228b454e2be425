"""The command `bandit-envs`: every subcommand calls functions of the package and prints what they return.

A subcommand is a dataclass in a file of its own: its fields are the options, its docstring is the help, and its method
`run` does the work.
"""

import sys

from bandit_envs.kernels import install_hint

try:
    import tyro  # noqa: F401  # all files of this package need it
except ImportError:
    print(f"bandit-envs: the command line needs tyro: {install_hint()}", file=sys.stderr)
    raise SystemExit(2) from None

from .parsing import COMMANDS, main, parse

__all__ = ["COMMANDS", "main", "parse"]
