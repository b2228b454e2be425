"""The floor: what Numba does not document and may rename in any version is named here, and nowhere else.

Numba makes machine code of every function, and optimises it with all that it calls, once at each level of calls. Here
that is done for kernels alone. A part, a function that kernels call, is compiled to code of LLVM, which is linked into
each kernel and optimised there.

Where this version of Numba is none that was tested, or lacks one of `NAMES`, or where BANDIT_ENVS_PLAIN=1 is set, the
package is in plain mode: all is compiled by what Numba documents, to the same numbers, but more slowly.
"""

from __future__ import annotations

import copy
import functools
import importlib
import os
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

from llvmlite.binding import get_default_triple, get_host_cpu_features, get_host_cpu_name  # type: ignore[import-untyped]

from . import ahead
from .kept import NUMBA, File, compiling

TESTED = ("0.61", "0.62", "0.63", "0.64", "0.65", "0.66", "0.67", "0.68")
NAMES = (
    "numba.core.base.BaseContext.make_array",
    "numba.core.codegen.JITCodeLibrary",
    "numba.core.codegen.JITCodeLibrary._final_module",
    "numba.core.codegen.JITCodeLibrary._finalize_specific",
    "numba.core.codegen.JITCodeLibrary._optimize_final_module",
    "numba.core.codegen.JITCodeLibrary.has_dynamic_globals",
    "numba.core.codegen.JITCodeLibrary.serialize_using_bitcode",
    "numba.core.codegen.JITCodeLibrary.serialize_using_object_code",
    "numba.core.codegen.JITCPUCodegen._add_module",
    "numba.core.codegen.JITCPUCodegen._library_class",
    "numba.core.codegen.JITCPUCodegen.set_env",
    "numba.core.compiler.Compiler",
    "numba.core.compiler.Compiler.compile_extra",
    "numba.core.compiler.CompileResult._rebuild",
    "numba.core.compiler.CompileResult._reduce",
    "numba.core.cpu.CPUContext.codegen",
    "numba.core.cpu.CPUContext.get_executable",
    "numba.core.cpu.CPUContext.insert_user_function",
    "numba.core.cpu.CPUTargetOptions._nrt",
    "numba.core.cpu.CPUTargetOptions.no_cfunc_wrapper",
    "numba.core.cpu.CPUTargetOptions.no_cpython_wrapper",
    "numba.core.dispatcher.Dispatcher._compile_for_args",
    "numba.core.dispatcher.Dispatcher.get_call_template",
    "numba.core.environment.Environment.env_name",
    "numba.core.typing.templates.AttributeTemplate",
)


def _found(name: str) -> Any:
    """What a dotted name of Numba stands for; True for an attribute that objects get when they are made; else None."""
    *_, module, kind, attribute = [*name.split("."), ""][:5]
    try:
        owner = getattr(importlib.import_module(f"numba.core.{module}"), kind)
    except (ImportError, AttributeError):
        return None
    if not attribute or hasattr(owner, attribute):
        return getattr(owner, attribute) if attribute else owner
    made = [vars(one).get("__init__") for one in owner.__mro__]
    return True if any(attribute in one.__code__.co_names for one in made if hasattr(one, "__code__")) else None


def _is_plain(found: dict[str, Any]) -> bool:
    """Whether Numba is used in the documented manner alone; where that was not asked for, a warning says why."""
    asked, version = os.environ.get("BANDIT_ENVS_PLAIN", ""), str(NUMBA.__version__)
    if asked not in ("", "0", "1"):
        raise ValueError(f"BANDIT_ENVS_PLAIN must be 1 (plain mode), or 0 or empty (not), got {asked!r}")
    missing, why = [name for name, value in found.items() if value is None], ""
    if ".".join(version.split(".")[:2]) not in TESTED:
        why = f"bandit_envs was not tested with Numba {version}, but with {TESTED[0]} to {TESTED[-1]}"
    elif missing:
        why = f"Numba {version} has no {missing[0]}, which bandit_envs uses"
    if why and asked != "1":
        text = f"{why}: it runs in plain mode, with the same results, but a slower first use of everything; "
        text += "BANDIT_ENVS_PLAIN=1 chooses that without this warning"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
    return bool(why) or asked == "1"


_FOUND = {name: _found(name) for name in NAMES}
PLAIN = _is_plain(_FOUND)
_Library: Any = object if PLAIN else _FOUND["numba.core.codegen.JITCodeLibrary"]
_Compiler: Any = object if PLAIN else _FOUND["numba.core.compiler.Compiler"]
Attributes: Any = object if PLAIN else _FOUND["numba.core.typing.templates.AttributeTemplate"]
_rebuild: Any = _FOUND["numba.core.compiler.CompileResult._rebuild"]


@functools.cache
def _processor() -> str:
    """The processor that code is made for: the one that runs it, or another one that the user names to Numba."""
    named = (NUMBA.config.CPU_NAME, NUMBA.config.CPU_FEATURES, NUMBA.config.ENABLE_AVX)
    return f"{get_default_triple()} {get_host_cpu_name()} {get_host_cpu_features().flatten()} {named}"


CHECKS_BOUNDS = bool(NUMBA.config.BOUNDSCHECK)  # whether compiled code looks whether an index is beyond an end
CHECKED = " within bounds" if CHECKS_BOUNDS else ""  # in the names of what is kept on disk


class KernelLibrary(_Library):
    """The code of a kernel, with all its parts, which nothing else can call."""

    def _optimize_final_module(self) -> None:
        module = self._final_module
        by_address = {one.name.partition("$")[2] for one in module.global_variables}  # those that call themselves
        for function in module.functions:
            if function.linkage.name == "linkonce_odr" and function.name not in by_address:
                function.linkage = "internal"
        super()._optimize_final_module()

    def serialize_using_object_code(self) -> Any:
        """What is kept on disk; None where the code holds addresses of this process."""
        return None if self.has_dynamic_globals else super().serialize_using_object_code()


class PartLibrary(_Library):
    """The code of a part, which is linked into that of kernels and other parts, and optimised there."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_specific(self) -> None:
        pass

    def serialize_using_object_code(self) -> Any:
        """What is kept on disk; None where the code holds addresses of this process."""
        return None if self.has_dynamic_globals else self.serialize_using_bitcode()


class InlinedLibrary(PartLibrary):
    """The code of a part that is compiled into whatever calls it."""

    def _optimize_final_module(self) -> None:
        for function in self._final_module.functions:
            if function.linkage.name == "external" and not function.is_declaration:  # and not of another part
                function.add_function_attribute("alwaysinline")


class KernelCompiler(_Compiler):
    """The compiler of kernels."""

    library: ClassVar[Any] = KernelLibrary
    is_kept: ClassVar[bool] = True  # on disk

    def __init__(
        self, typingctx: Any, targetctx: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any
    ) -> None:
        self.target, codegen = copy.copy(targetctx), copy.copy(targetctx.codegen())
        self.target.codegen, codegen._library_class = lambda: codegen, self.library
        if issubclass(self.library, PartLibrary):  # it has no machine code
            codegen._add_module = codegen.set_env = lambda *given: None
        self.kinds, self.how = (tuple(args), return_type), f"{flags!r} {_processor()}{CHECKED}"
        super().__init__(typingctx, self.target, library, args, return_type, flags, locals)

    def compile_extra(self, function: Callable[..., Any]) -> Any:
        """The compiled function, from the disk where it is there."""
        if not self.is_kept:
            return self._compiled(function)
        file = File(function, self.kinds, self.how)
        ahead.look_up(file.path)
        if (found := file.read(self._rebuilt)) is not None:
            return found
        with ahead.alone(file):
            return file.read(self._rebuilt) or self._compiled(function, file)

    def _compiled(self, function: Callable[..., Any], file: File | None = None) -> Any:
        """The function compiled, and kept in its file."""
        with compiling(function):
            result = super().compile_extra(function)
        if file is not None:
            code, *rest = result._reduce()
            for one in rest[-1]:  # the environments of a kernel and its parts, which may print
                self.target.codegen().set_env(one.env_name, one)
            if code is not None:
                file.write((code, *rest))
        return result

    def _rebuilt(self, reduced: Any) -> Any:
        """What was kept on disk, as Numba takes it."""
        target = copy.copy(self.target)

        def get_executable(library: Any, described: Any, environment: Any) -> Any:
            entry = self.target.get_executable(library, described, environment)
            target.insert_user_function(entry, described, [library])
            return entry

        target.get_executable = get_executable
        return _rebuild(target, *reduced)


class PartCompiler(KernelCompiler):
    """The compiler of parts."""

    library = PartLibrary


class InlinedCompiler(KernelCompiler):
    """The compiler of parts that are compiled into whatever calls them."""

    library, is_kept = InlinedLibrary, False


# Options of `numba.njit`. Code that allocates nothing needs no reference counts.
KERNEL: dict[str, Any] = {} if PLAIN else {"pipeline_class": KernelCompiler, "no_cfunc_wrapper": True}
LEAN: dict[str, Any] = {} if PLAIN else {**KERNEL, "_nrt": False}
PART: dict[str, Any] = {} if PLAIN else {**LEAN, "pipeline_class": PartCompiler, "no_cpython_wrapper": True}
INLINED: dict[str, Any] = {} if PLAIN else {**PART, "pipeline_class": InlinedCompiler}


def unliteral(compiled: Any) -> Any:
    """A compiled function of constants, which are then no types of their own."""
    if not PLAIN:
        template = compiled.get_call_template
        compiled.get_call_template = lambda args, kws: template(tuple(map(NUMBA.types.unliteral, args)), kws)
    return compiled


def machine_code(compiled: Any, given: tuple[Any, ...]) -> Callable[..., Any]:
    """The machine code of a compiled function for arguments of such types; in plain mode itself, which finds it."""
    return compiled if PLAIN else compiled._compile_for_args(*given)  # type: ignore[no-any-return]


def array_of(context: Any, builder: Any, kind: Any, value: Any = None) -> Any:
    """The parts of an array of this type, in code of LLVM; None: one without data."""
    return context.make_array(kind)(context, builder, value)
