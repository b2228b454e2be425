"""The benchmark: one number for any agent, on a fixed set of tasks."""

from .run import Benchmark, benchmark

__all__ = ["Benchmark", "benchmark"]
