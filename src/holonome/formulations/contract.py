"""What a formulation is: the equations that are solved, independent of the integrator.

A formulation is a frozen dataclass derived from `Formulation`.  It may live anywhere; nothing has to be
registered.

1.  ``offers`` names the forms in which an integrator may ask for its equations; each form has a method below.
2.  "rate": y′ = F(t, y) with y = (q, v, s), as machine code, `rate`.
3.  "residual": F(t, Y, Y′) = 0 as expressions, `residual`; Y begins with (q, v, s, λ).  Newton's matrix,
    its elimination and all machine code follow from it.
    "momentum": a step from positions and momenta, :mod:`holonome.formulations.hamiltonian`.
4.  "sequence": iterations of sequential regularization,
    :mod:`holonome.formulations.sequential_regularization`.
5.  "series": y′ and its margin as expressions, `motion`, from which Taylor coefficients follow.
6.  ``projects`` says whether steps end on the manifold; ``metric`` and ``relaxed`` how, and
    ``projects_error`` whether the error is projected before it is tested (Eich 1993).
7.  ``drifts`` says whether the constraints drift, in which case the solution between steps must not
    be projected either.
8.  `refuses` gives a reason, with a remedy, why a system cannot be treated; None if it can.
9.  ``for_bdf`` says whether its kernels look into the steps of BDF, so that no other family can use them.
10. `for_run` settles what depends on the run; `with_projection` adds or removes projection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from holonome.equations.model import Model
    from holonome.formulations.implicit import ImplicitKernels, Residual
    from holonome.problem.solved_variables import KernelExpressions


class Formulation:
    """Base class of all formulations; see :mod:`holonome.formulations.contract`.

    Examples
    --------
    A custom formulation that takes its equations from another:

    >>> from dataclasses import dataclass
    >>> import holonome as hn
    >>> @dataclass(frozen=True)
    ... class Mine(hn.Formulation):
    ...     offers = ("residual",)
    ...     def residual(self, model):
    ...         return hn.GGL(error_test="q").residual(model)
    >>> pendulum, method = hn.mechanisms.pendulum(), hn.Method(Mine(), hn.BDF())
    >>> hn.solve(pendulum.system, (0, 1), pendulum.q0, pendulum.v0, method=method).success
    True
    """

    offers: ClassVar[tuple[str, ...]] = ()
    drifts: bool = False
    projects: bool = False
    metric: str = "mass"
    relaxed: bool = False
    projects_error: bool = True
    damping: tuple[float, float] | None = None
    for_bdf: bool = False

    def refuses(self, system: Any) -> str | None:
        """Why this system cannot be treated, and what to do instead; None if it can."""
        return None

    def rate(self, system: Any) -> int:
        """Address of the kernel for y′."""
        raise NotImplementedError(f"{type(self).__name__} offers no rate")

    def motion(self, system: Any) -> KernelExpressions:
        """y′ as expressions: the symbols of a kernel, the column y′, and the margin of regularity."""
        raise NotImplementedError(f"{type(self).__name__} offers no series")

    def residual(self, model: Model) -> Residual:
        """The equations F(t, Y, Y′) = 0."""
        raise NotImplementedError(f"{type(self).__name__} offers no residual")

    def kernels(self, system: Any) -> ImplicitKernels:
        """Machine code for the residual and its matrix."""
        from holonome.formulations.implicit import ImplicitKernels

        return ImplicitKernels(system, repr(self), self.residual)

    def for_run(self, span: float, step: float) -> Formulation:
        """The same with everything fixed that depends on the run, on its signed length and constant step
        size.
        """
        return self

    def with_projection(self, wanted: bool) -> Formulation:
        """The same with or without projection."""
        if wanted and not self.projects:
            raise ValueError(f"projection: {type(self).__name__} has none; leave it out, or use method 'bdf'")
        return self
