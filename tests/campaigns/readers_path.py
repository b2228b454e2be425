"""How many lines must be read to understand what an algorithm decides: its file, and what the file calls, and so on.

    python tests/campaigns/readers_path.py agents/certified/top_two.py agents/top_k/lucb.py [--root CHECKOUT] [--list]

The path begins with all lines of the algorithm's file. It follows each imported name that the file uses to the
definition of the name, and from there each name that the definition uses, in any file of the two packages. A definition
counts with its decorators and docstring. Names of Python, NumPy and Numba end the path, and so do `Agent`, random
numbers, checks of input and the compiler (`bandit_envs.kernels`), environments and their simulation. What methods use,
such as constructors, is not followed: it does not decide. Of a base class in another file the head counts, its
docstring with the fields and compiled functions; of `Algorithm` what it puts together for compiled code, `Form`.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

PACKAGES = ("agents", "bandit_envs")
ENDS = ("bandit_envs.kernels", "bandit_envs.envs", "bandit_envs.simulation")


class Reader:
    """Of the checkout at `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.module = cache(self._module)

    def file(self, module: str) -> Path | None:
        """The file of a module."""
        place = self.root.joinpath(*module.split("."))
        return next((one for one in (place.with_suffix(".py"), place / "__init__.py") if one.exists()), None)

    def _module(self, name: str) -> tuple[dict[str, ast.stmt], dict[str, tuple[str, str]]]:
        """The definitions of a module by name, and {name: (module, name there)} of what it imports."""
        path = self.file(name)
        assert path is not None
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        defined, imported = dict[str, ast.stmt](), dict[str, tuple[str, str]]()
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom):
                base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
                source = ".".join([*base, *([node.module] if node.module else [])])
                for alias in node.names:
                    imported[alias.asname or alias.name] = (source, alias.name)
            elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                defined[node.name] = node
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for leaf in ast.walk(target):
                        if isinstance(leaf, ast.Name):
                            defined[leaf.id] = node
        return defined, imported

    def deciding(self, node: ast.AST) -> Iterator[ast.AST]:
        """The parts of a definition, but for the methods and the attributes of a class of agents."""
        if isinstance(node, ast.ClassDef):
            yield from (part for one in node.body if self.decides(one) for part in self.deciding(one))
            yield from (ast.Name(base.id) for base in node.bases if isinstance(base, ast.Name))
        else:
            yield node
            for one in ast.iter_child_nodes(node):
                yield from self.deciding(one)

    def decides(self, one: ast.stmt) -> bool:
        """Whether a statement of a class is a field, its own or of a struct, or a compiled function."""
        if isinstance(one, ast.FunctionDef):
            return [argument.arg for argument in one.args.args] == ["ep", "own"]
        declares = any(word in ast.unparse(one) for word in ("setting(", "per_", "parts_of(", "scratch("))
        return isinstance(one, ast.AnnAssign) or (isinstance(one, ast.Assign) and declares)

    def length(self, node: ast.stmt) -> int:
        """The lines of a definition that must be read."""
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        if not isinstance(node, ast.ClassDef) or any("Tuple" in ast.unparse(base) for base in node.bases):
            return (node.end_lineno or first) - first + 1
        body = (one for one in node.body if self.decides(one) or isinstance(one, ast.Expr))
        return node.lineno - first + 1 + sum((one.end_lineno or 0) - one.lineno + 1 for one in body)

    def uses(self, node: ast.AST) -> Iterator[tuple[str, ...]]:
        """The names that a definition uses, with the attribute where one is looked up."""
        for one in self.deciding(node):
            if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
                yield one.value.id, one.attr
            elif isinstance(one, ast.Name):
                yield (one.id,)

    def found(self, module: str, name: str) -> tuple[str, str, ast.stmt] | None:
        """Where a name of a module is defined."""
        if module.split(".")[0] not in PACKAGES or module.startswith(ENDS) or self.file(module) is None:
            return None
        defined, imported = self.module(module)
        if name in defined:
            return module, name, defined[name]
        return self.found(*imported[name]) if name in imported else None

    def path(self, file: str) -> dict[tuple[str, str], int]:
        """{(module, name): lines} beyond the file, which is the first entry."""
        start = file.removesuffix(".py").replace("/", ".")
        lines = {(start, ""): len((self.root / file).read_text().splitlines())}
        defined, _ = self.module(start)
        seen, waiting = set[tuple[str, str]](), [(start, node) for node in defined.values()]
        while waiting:
            module, node = waiting.pop()
            _, imported = self.module(module)
            uses = [*self.uses(node)]
            if getattr(node, "name", "") == "Algorithm":  # what calls the functions of its subclasses
                form: Any = self.module(module)[0]["Form"]
                kernel = next(one for one in form.body if getattr(one, "name", "") == "kernel")
                uses += [("_NEXT_ARM",), *self.uses(kernel)]
            for name, *attribute in uses:
                where = (module, name)
                if attribute and name in imported:  # of a module that is imported whole
                    whole = ".".join(imported[name])
                    where = (whole, attribute[0]) if self.file(whole) else where
                found = self.found(*where)
                if found is None or found[:2] in seen:
                    continue
                seen.add(found[:2])
                if found[0] == start or getattr(found[2], "name", "") == "Agent":
                    continue
                lines[found[:2]] = self.length(found[2])
                waiting.append((found[0], found[2]))
        return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[2])
    parser.add_argument("--list", action="store_true", help="every definition, longest first")
    given = parser.parse_args()
    for file in given.files:
        path = Reader(given.root).path(file)
        print(f"{file}: {sum(path.values())} lines, {len(path) - 1} definitions in other files")
        for (module, name), lines in sorted(path.items(), key=lambda item: -item[1]) if given.list else ():
            print(f"  {lines:5} {module} {name}")
