"""The present places of names and modules of earlier versions. The old ones still work, with a DeprecationWarning."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import Any

PACKAGES = ("envs", "kernels", "problems", "simulation", "stopping")  # names of theirs stood in `bandit_envs`
FILES = {
    "envs": "observations history views setting drawing episodes env vector catalogue",
    "instances": "registry arms tables datasets polyhedra prompts papers lookup",
    "kernels": "checks naming stamps compiled routines rng geometry belief",
    "problems": "task lookahead",
    "simulation": "sampling simulator playing",
}
STOPPING = """
    asking authors boundaries bounds certifier crossing game kinds levels nearest
    polyhedral scale statistics swaps values
"""
MODULES = {
    "evidence": "stopping",
    "rendering": "envs.views",
    **{f"evidence.{name}": f"stopping.{name}" for name in STOPPING.split()},
    "evidence.laws": "stopping.distributions",
    "evidence.game_ways": "stopping.game_alternatives",
    **{name: f"{package}.{name}" for package, names in FILES.items() for name in names.split()},
}
RENAMED = {
    "LAWS": ("instances", "DISTRIBUTIONS"),
    "LookaheadRoom": ("problems", "LookaheadScratch"),
    "nearest_way": ("stopping", "nearest_alternative"),
}


def follow(name: str) -> object:
    """What `bandit_envs.name` was before.

    Raises:
        AttributeError: where there was no such name.
    """
    for package, now in [RENAMED[name]] if name in RENAMED else [(package, name) for package in PACKAGES]:
        home = importlib.import_module(f"bandit_envs.{package}")
        if now in home.__all__:
            warnings.warn(f"bandit_envs.{name} is now bandit_envs.{package}.{now}", DeprecationWarning, stacklevel=2)
            return getattr(home, now)
    if name in MODULES:
        return importlib.import_module(f"bandit_envs.{name}")
    raise AttributeError(f"module 'bandit_envs' has no attribute {name!r}")


class _Moved(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules by the paths that they had before."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        package, _, name = fullname.partition(".")
        if package != "bandit_envs" or name not in MODULES:
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        """An empty module, in whose place comes the one of today."""

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        new = f"bandit_envs.{MODULES[old.partition('.')[2]]}"
        warnings.warn(f"the module {old} is now {new}", DeprecationWarning, stacklevel=2)
        sys.modules[old] = importlib.import_module(new)


sys.meta_path.insert(0, _Moved())  # before a folder that is left over from earlier
