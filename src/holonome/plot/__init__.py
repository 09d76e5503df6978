"""Pictures of solutions: motion, paths, phase plots, coordinates and forces over time, drift, energy, steps,
matrices, comparisons of methods, and ensembles.

Every function draws into the given axes, or into a new figure, and returns the axes. matplotlib is loaded on
first use. Figures are created without pyplot, so that no display is needed, unless pyplot or a notebook is in
use and could show them.
"""

from holonome.plot.ensembles import (
    plot_bands,
    plot_density,
    plot_parallel,
    plot_passage,
    plot_response,
)
from holonome.plot.matrix import plot_condition, plot_sparsity
from holonome.plot.motion import plot_motion, plot_path, plot_phase
from holonome.plot.over_time import (
    plot_drift,
    plot_energy,
    plot_inputs,
    plot_joint_forces,
    plot_joints,
    plot_multipliers,
    plot_positions,
    plot_reactions,
    plot_states,
    plot_velocities,
)
from holonome.plot.overview import plot_solution
from holonome.plot.steps import plot_steps
from holonome.plot.style import COLOURS, SMALLEST, house_style, new_figure, symbol, theme
from holonome.plot.work import plot_comparison, work_precision

__all__ = [
    "COLOURS",
    "SMALLEST",
    "house_style",
    "new_figure",
    "plot_bands",
    "plot_comparison",
    "plot_condition",
    "plot_density",
    "plot_drift",
    "plot_energy",
    "plot_inputs",
    "plot_joint_forces",
    "plot_joints",
    "plot_motion",
    "plot_multipliers",
    "plot_parallel",
    "plot_passage",
    "plot_path",
    "plot_phase",
    "plot_positions",
    "plot_reactions",
    "plot_response",
    "plot_solution",
    "plot_sparsity",
    "plot_states",
    "plot_steps",
    "plot_velocities",
    "symbol",
    "theme",
    "work_precision",
]
