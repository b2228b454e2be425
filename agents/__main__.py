"""`python -m agents` is `bandit-envs`."""

import sys

from .cli import main

sys.exit(main())
