"""A query made into kernels, whatever its language: source is generated, and compiled, when it is first needed.

A program is shared; what moves is in the progress objects of the engines. Code depends on which columns have NULLs, so
a program may have several kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from kleene.engine.compiled.jit import Kernels, load


class GeneratedCode(Protocol):
    @property
    def source(self) -> str: ...

    @property
    def signatures(self) -> dict[str, str]: ...


Generated = TypeVar("Generated", bound=GeneratedCode)


@dataclass(frozen=True, slots=True)
class Kernel(Generic[Generated]):
    generated: Generated
    functions: Kernels


class Program(Generic[Generated]):
    """`jit` False runs the source as plain Python."""

    def __init__(self, make: Callable[[frozenset[str]], Generated], jit: bool) -> None:
        self.jit = jit
        self._make = make
        self._generated: dict[frozenset[str], Generated] = {}
        self._kernels: dict[frozenset[str], Kernel[Generated]] = {}

    def generated(self, nullable: frozenset[str]) -> Generated:
        """The code for tables in which only these columns have NULLs."""
        if nullable not in self._generated:
            self._generated[nullable] = self._make(nullable)
        return self._generated[nullable]

    def kernel(self, nullable: frozenset[str]) -> Kernel[Generated]:
        if nullable not in self._kernels:
            generated = self.generated(nullable)
            self._kernels[nullable] = Kernel(generated, load(generated.source, generated.signatures, self.jit))
        return self._kernels[nullable]
