"""Coefficients of the Radau IIA methods, computed from what defines them.

The nodes c of s stages are the zeros of d^{s−1}/dx^{s−1} (x^{s−1} (x − 1)^s), and the stages are those of
collocation: with polynomials p of degree s that vanish at 0,

    A⁻¹ p(c) = p′(c)

A⁻¹ has one real eigenvalue γ and (s − 1)/2 pairs α ± iβ.  With T of a real eigenvector and of real and
imaginary parts of the others, T⁻¹A⁻¹T has blocks γ and (α, β; −β, α), so that the Newton matrices of a step
are ∂F/∂Y + cj ∂F/∂Y′ with cj = γ/h and cj = (α − iβ)/h.

The error estimate compares with a formula that has the weight 1/γ at c = 0 as well, and is exact to degree
s − 1; with Z = Y − y_n its difference is

    (1/γ) (h y′_n + Σ e_i Z_i)

Nodes, A⁻¹ and e are computed with 50 digits; γ, α, β and T only steer an iteration.

References
----------
E. Hairer, G. Wanner, Stiff differential equations solved by Radau methods, J. Comput. Appl. Math. 111 (1999).
E. Hairer, G. Wanner, Solving Ordinary Differential Equations II, Springer 1996, section IV.8.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache
from math import comb

import numpy as np

STAGES = (3, 5, 7)
MOST = STAGES[-1]
_DIGITS = 50


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Of the method with s stages, order 2s − 1.

    Attributes
    ----------
    nodes
        c.
    inverse
        A⁻¹.
    transformation, back
        T and T⁻¹.
    eigenvalues
        γ, then α and β of each pair.
    error
        e.
    barycentric
        Weights of the nodes 0, c of the collocation polynomial.
    """

    nodes: np.ndarray
    inverse: np.ndarray
    transformation: np.ndarray
    back: np.ndarray
    eigenvalues: np.ndarray
    error: np.ndarray
    barycentric: np.ndarray

    @property
    def stages(self) -> int:
        return self.nodes.size


@cache
def coefficients(stages: int) -> Coefficients:
    """The method with so many stages, an odd number."""
    with localcontext() as context:
        context.prec = _DIGITS
        nodes = _nodes(stages)
        inverse = _differentiation(nodes)
        gamma, eigenvalues, transformation = _blocks(np.array(inverse, dtype=float))
        differences = _error_weights(nodes)
        error = [sum(w * row[j] for w, row in zip(differences, inverse, strict=True)) for j in range(stages)]
        every = [Decimal(0), *nodes]
        barycentric = [1 / _product([x - y for y in every if y != x]) for x in every]
    return Coefficients(
        np.array(nodes, dtype=float),
        np.array(inverse, dtype=float),
        transformation,
        np.linalg.inv(transformation),
        np.array([gamma, *eigenvalues]),
        np.array(error, dtype=float),
        np.array(barycentric, dtype=float),
    )


def _product(factors: list[Decimal]) -> Decimal:
    product = Decimal(1)
    for factor in factors:
        product *= factor
    return product


def _nodes(stages: int) -> list[Decimal]:
    """Zeros of Σ_k (−1)^k C(s, k) C(2s − 1 − k, s − k) x^{s−k}, by Newton's method from double precision."""
    s = stages
    polynomial = [Decimal((-1) ** k * comb(s, k) * comb(2 * s - 1 - k, s - k)) for k in range(s + 1)]
    nodes = []
    for start in np.sort(np.roots(np.array(polynomial, dtype=float)).real):
        x = Decimal(float(start))
        for _ in range(8):
            value = slope = Decimal(0)
            for factor in polynomial:
                value, slope = value * x + factor, slope * x + value
            x -= value / slope
        nodes.append(x)
    return nodes


def _differentiation(nodes: list[Decimal]) -> list[list[Decimal]]:
    """A⁻¹: derivatives at the nodes of the polynomials that are 1 at one of them and 0 at the others and
    at 0.
    """
    every = [Decimal(0), *nodes]
    weights = [1 / _product([x - y for y in every if y != x]) for x in every]
    matrix = []
    for i, x in enumerate(every[1:], start=1):
        row = [
            weights[j] / weights[i] / (x - y)
            if j != i
            else sum((1 / (x - z) for z in every if z != x), Decimal(0))
            for j, y in enumerate(every)
        ]
        matrix.append(row[1:])
    return matrix


def _error_weights(nodes: list[Decimal]) -> list[Decimal]:
    """Weights d with Σ d_i p(c_i) = −p(0) for all p of degree s − 1: extrapolation to 0."""
    return [-_product([y / (y - x) for y in nodes if y != x]) for x in nodes]


def _blocks(inverse: np.ndarray) -> tuple[float, list[float], np.ndarray]:
    """γ, the other eigenvalues as α, β, …, and T."""
    values, vectors = np.linalg.eig(inverse)
    real = int(np.argmin(np.abs(values.imag)))
    eigenvalues, columns = [], [vectors[:, real].real / vectors[-1, real].real]
    for i in np.argsort(values.imag):
        if values[i].imag > 0 and i != real:
            vector = vectors[:, i] / vectors[-1, i]
            eigenvalues += [values[i].real, values[i].imag]
            columns += [vector.real, vector.imag]
    return float(values[real].real), eigenvalues, np.column_stack(columns)
