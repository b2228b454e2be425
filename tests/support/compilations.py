"""What is compiled in this process, and what is read from the disk."""

from __future__ import annotations

import logging

__all__ = ["Compilations"]


class Compilations(logging.Handler):
    """Counts from now on, by module and name: {kernel: [read, compiled]}."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.found: dict[str, list[int]] = {}
        logger = logging.getLogger("bandit_envs.kernels.compiled")
        logger.addHandler(self)
        logger.setLevel(logging.DEBUG)

    def emit(self, record: logging.LogRecord) -> None:
        verb, name = record.getMessage().split()
        self.found.setdefault(name, [0, 0])[verb == "compiling"] += 1

    def of(self, text: str) -> tuple[int, int]:
        """Read and compiled, of all kernels whose names end so."""
        found = [counts for name, counts in self.found.items() if name.endswith(text)]
        return sum(read for read, _ in found), sum(compiled for _, compiled in found)
