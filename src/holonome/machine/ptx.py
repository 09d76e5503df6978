"""PTX, the assembly of NVIDIA's cards, written by the LLVM that Numba carries; the driver compiles it further
(:mod:`holonome.machine.cuda`).  No toolkit is needed.
"""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

from holonome.machine.kernel import simplify

TRIPLE = "nvptx64-nvidia-cuda"


@cache
def _target() -> llvm.Target:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TRIPLE)


def ptx(assembly: str, architecture: str = "sm_70") -> str:
    """The PTX of a module; ``architecture`` is the oldest generation of cards that it shall run on."""
    machine = _target().create_target_machine(cpu=architecture, opt=3)
    layout = f'target datalayout = "{machine.target_data}"\ntarget triple = "{TRIPLE}"\n'
    module = llvm.parse_assembly(layout + assembly)
    simplify(module, machine)
    return machine.emit_assembly(module)
