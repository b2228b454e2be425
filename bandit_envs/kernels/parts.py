"""Functions that kernels call are compiled as far as a kernel needs them: to code of LLVM, not to machine code.

Numba makes machine code of every function, and optimises it with all that it calls, once at each level of calls. Here
that is done for kernels alone, with all the parts in them.
"""

from __future__ import annotations

from typing import Any, ClassVar

from llvmlite.binding import Linkage  # type: ignore[import-untyped]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult

__all__ = ["KernelCompiler", "PartCompiler", "rebuilt"]


class _NoEnvironments:
    """A code generator for libraries that have no machine code in which an environment could be set."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def set_env(self, name: str, environment: Any) -> None:
        """Nothing: a kernel sets the environments of its parts."""

    def unserialize_library(self, state: Any) -> PartLibrary:
        """A library that was kept on disk."""
        return PartLibrary._unserialize(self, state)  # type: ignore[no-any-return]

    def create_library(self, name: str) -> PartLibrary:
        """An empty library."""
        return PartLibrary(self._codegen, name)


class PartLibrary(JITCodeLibrary):
    """The code of a part, which is linked into that of kernels and other parts, and optimised there."""

    @property
    def codegen(self) -> Any:
        """The code generator."""
        return _NoEnvironments(self._codegen)

    def get_pointer_to_function(self, name: str) -> int:
        """None: there is no machine code."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        """What the cache on disk keeps."""
        return self.serialize_using_bitcode()  # type: ignore[no-any-return]

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class KernelLibrary(JITCodeLibrary):
    """The code of a kernel, with all its parts, which nothing else can call."""

    def _optimize_final_module(self) -> None:
        module, late = self._final_module, ".numba.unresolved$"  # before the names of functions that call themselves
        named = {one.name.removeprefix(late) for one in module.global_variables if one.name.startswith(late)}
        for function in module.functions:
            if function.linkage == Linkage.linkonce_odr and function.name not in named:
                function.linkage = Linkage.internal
        super()._optimize_final_module()  # type: ignore[no-untyped-call]


class KernelCompiler(Compiler):
    """The compiler of kernels."""

    library_of: ClassVar[type[JITCodeLibrary]] = KernelLibrary

    def __init__(
        self, typingctx: Any, targetctx: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any
    ) -> None:
        if library is None:
            library = self.library_of(targetctx.codegen(), "")
            library.enable_object_caching()
        super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)  # type: ignore[no-untyped-call]


class PartCompiler(KernelCompiler):
    """The compiler of parts."""

    library_of = PartLibrary


class _Target:
    """A target that makes `PartLibrary`s of what was kept on disk."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def codegen(self) -> Any:
        """The code generator."""
        return _NoEnvironments(self._target.codegen())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)


def rebuilt(target: Any, payload: Any) -> Any:
    """The part that was kept on disk."""
    return CompileResult._rebuild(_Target(target), *payload)  # type: ignore[no-untyped-call]
