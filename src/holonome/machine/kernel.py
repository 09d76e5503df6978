"""Expressions to machine code in memory, compiled by the LLVM that Numba carries or taken from the cache."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import cache

import casadi as ca
import llvmlite.binding as llvm

from holonome.equations.program import Program
from holonome.machine import cache as files
from holonome.machine.llvm import assembly

ARGUMENTS = ("t", "y", "z", "p")
"""Names of a kernel's inputs; ``p`` becomes the part of the context behind its header."""

OPTIMISED_UP_TO = 20_000
"""Instructions.  Optimising takes about 70 µs an instruction and makes code 1.7 times faster; beyond this
size it is skipped (7 µs an instruction).
"""

OPTIMISED_RESULTS = 500
"""Results.  For each the optimiser looks at all the others: 4500 of them take 5 s, without it 0.05 s."""

BLOCK = 1000
"""Lines after which code that is not optimised begins a new basic block: LLVM's time for one grows faster
than its length (74 000 instructions: 0.4 s instead of 5 s).
"""


class Kernel:
    """Machine code in memory; ``address`` is valid as long as the object lives."""

    def __init__(self, code: bytes, name: str, instructions: int = 0) -> None:
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(0))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self.address, self.instructions = self.address_of(name), instructions

    def address_of(self, name: str) -> int:
        """Address of one of its functions."""
        address = self._engine.get_function_address(name)
        if not address:
            raise ValueError(f"the compiled code holds no function {name}")
        return address


def kernel(
    expression: ca.SX,
    inputs: Sequence[ca.SX],
    *,
    margin: ca.SX | None = None,
    suppliers: Sequence[int] = (),
    optimised_up_to: int = OPTIMISED_UP_TO,
) -> Kernel:
    """Compile a column of expressions of (t, y, z, p), or take it from the cache."""
    outputs = [expression] + ([] if margin is None else [margin])
    program = Program.of(
        ca.Function(
            "kernel", list(inputs), outputs, list(ARGUMENTS), ["out", "margin"][: len(outputs)], {"cse": True}
        )
    )
    optimised = program.cost <= optimised_up_to and len(program.outputs[0].operations) <= OPTIMISED_RESULTS
    text = assembly(program, "kernel", suppliers, 0 if optimised else BLOCK)
    return compiled(text, "kernel", 2 if optimised else 0, program.cost)


def compiled(text: str, name: str, level: int = 2, instructions: int = 0, simplified: bool = False) -> Kernel:
    """Machine code of LLVM assembly, from the cache if it is there; ``simplified`` before, if it has loops
    and variables in memory.
    """
    how = f"{level}{'s' * simplified}"
    path = files.path_of([text, how, *host(), ".".join(map(str, llvm.llvm_version_info))])
    stored = files.read(path)
    if stored is not None:
        with contextlib.suppress(Exception):
            return Kernel(stored, name, instructions)
    code = _compile(text, level, simplified)
    files.write(path, code)
    return Kernel(code, name, instructions)


@cache
def host() -> tuple[str, str]:
    """The processor: its name and features."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _machine(level: int) -> llvm.TargetMachine:
    cpu, features = host()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=level, jit=True
    )


def simplify(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Put variables into registers, parts in line where they ask for it, and leave out what is not needed."""
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(2))
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_new_gvn_pass()
    passes.add_dead_store_elimination_pass()
    passes.add_aggressive_dce_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)


def _compile(text: str, level: int, simplified: bool) -> bytes:
    machine = _machine(level)
    module = llvm.parse_assembly(text)
    module.triple = llvm.get_process_triple()
    module.data_layout = str(machine.target_data)
    if simplified:
        simplify(module, machine)
    return machine.emit_object(module)
