"""Tracing: the expression obtained from a function has the function's values, whatever NumPy it is written
in.
"""

import contextlib
import dataclasses
import functools
import importlib
import math
import pickle
import threading

import casadi as ca
import numba
import numpy as np
import pytest
from numpy import array, linalg, zeros
from numpy import sin as numpy_sin

from holonome.tracing import Namespace, Traced, TracedArray, Untraceable, argument_names, trace, traced

Q, V = ca.SX.sym("q", 3), ca.SX.sym("v", 3)

EXPRESSIONS = """
q + v
2 * q - v / 3
np.float64(2.0) * q[0]
q[0] * np.float64(2.0)
np.array([1.0, 2.0]) * q[0]
q[0] ** 2 + q[1] ** 3 + abs(q[2]) ** 0.5
2.0 ** q
q // 0.7
q % 0.7
3.0 % (q[0] + 10)
3.0 // (abs(q[0]) + 1)
divmod(q[0], 0.7)
np.divmod(q, 0.7)
-q
+q
abs(q)
(q > v) * 1.0
(q[0] < 0) * 3
q[::-1]
q[[2, 0]]
q[np.array([2, 0])]
[x * y for x, y in zip(q, v)]
np.outer(q, v).T
np.outer(q, v).reshape(-1)
q.reshape(3, 1) @ v.reshape(1, 3)
q.sum() + np.sum(v)
q.dot(v)
q @ v
np.outer(q, v) @ q
q @ np.outer(q, v)
np.arange(9.0).reshape(3, 3) @ q
q @ np.arange(9.0).reshape(3, 3)
np.asarray(q) + np.array(v) + np.asanyarray(q)
np.array([q[0], 0.0, v[1]])
np.array([[q[0], 0], [1, v[1]]])
np.array([q, v])
np.array([q[0], 1], dtype=float)
np.array([q[0], 1], dtype=np.float64)
np.atleast_1d(q[0])
np.atleast_2d(q)
np.concatenate([q, v, [1.0]])
np.concatenate((q, [v[0], 2.0]))
np.stack([q, v], axis=1)
np.stack([q[0], v[0]])
np.vstack([q, v])
np.vstack((q, [1.0, 2.0, 3.0]))
np.hstack([q, 1.0, v[0]])
np.hstack([q, v])
np.column_stack([q, v])
np.block([[np.outer(q, v), np.eye(3)], [np.zeros((3, 3)), np.diag(q)]])
np.block([[q[0], 1.0], [0.0, v[0]]])
np.append(q, 1.0)
np.append(q, v[0])
np.roll(q, 1)
np.diag(q)
np.diag(np.outer(q, v))
np.diag([q[0], 1.0])
np.eye(3) * q[0]
np.identity(3) @ q
np.ones(3) * q
np.full(3, q[0])
np.full((2, 2), 1.5) * q[0]
np.zeros_like(q)
np.ones_like(q) * v
np.full_like(q, v[0])
np.linspace(0, 1, 3) * q
np.arange(3) * q
np.linspace(0, q[0], 4)
np.inner(q, v)
np.dot(q, v)
np.dot(np.outer(q, v), q)
np.vdot(q, v)
np.matmul(np.outer(q, v), q)
np.kron(np.eye(2), np.outer(q, v))
np.einsum("i,i->", q, v)
np.einsum("i,j->ij", q, v)
np.einsum("ij,j", np.outer(q, v), q)
np.einsum("ii", np.outer(q, v))
np.cross(q, v)
np.cross([q[0], 0.0, 1.0], v)
np.cross(q, [0.0, 0.0, 1.0])
np.trace(np.outer(q, v))
np.outer(q, v).trace()
np.prod(q)
np.cumsum(q)
q.cumsum()
np.mean(q)
q.mean()
np.mean(np.outer(q, v), axis=0)
np.diff(q)
np.tensordot(np.outer(q, v), q, axes=1)
np.sum(np.outer(q, v))
np.sum(np.outer(q, v), axis=0)
np.sum(np.outer(q, v), axis=1, keepdims=True)
np.sum([q[0], 1.0, v[0]])
np.linalg.norm(q)
np.linalg.norm([q[0], v[0], 1.0])
np.linalg.norm(q - v, 1)
np.linalg.norm(q, np.inf)
np.linalg.norm(q, 3)
np.linalg.norm(np.outer(q, v), axis=1)
np.linalg.norm(np.outer(q, v), axis=0, keepdims=True)
np.linalg.norm(np.outer(q, v) + np.eye(3))
np.linalg.norm(np.outer(q, v), 1)
np.linalg.norm(np.outer(q, v), np.inf)
np.linalg.solve(np.outer(q, q) + np.eye(3), v)
np.linalg.solve(np.array([[0.0, 1.0], [2.0, 0.0]]), q[:2])
np.linalg.solve(np.outer(q, q) + np.eye(3), np.outer(v, q))
np.linalg.inv(np.outer(q, q) + np.eye(3))
np.linalg.det(np.outer(q, q) + np.eye(3))
np.linalg.inv(np.array([[np.cos(q[0]), -np.sin(q[0])], [np.sin(q[0]), np.cos(q[0])]]))
np.where(q > 0, q, v)
np.where(q[0] > 0, q[1], v[1])
np.where(np.array([True, False, True]), q, v)
np.where(q > 0, np.sqrt(abs(q)), 0.0)
np.where(q > v, 1, 0)
np.clip(q, -0.5, 0.5)
np.clip(q[0], -0.5, 0.5)
np.clip(q, None, 0.5)
q.clip(-0.1, 0.1)
np.maximum(q, 0)
np.minimum(q, v)
np.maximum(0.0, q[0])
np.max(q)
np.min(np.outer(q, v))
q.max() - q.min()
np.max(np.outer(q, v), axis=0)
np.abs(q)
np.sign(q)
np.sqrt(q ** 2 + 1)
np.exp(q) + np.expm1(v)
np.log(q ** 2 + 1) + np.log1p(q ** 2) + np.log2(q ** 2 + 1) + np.log10(q ** 2 + 1)
np.sin(q) + np.cos(q) + np.tan(q)
np.arcsin(np.tanh(q)) + np.arccos(np.tanh(q)) + np.arctan(q)
np.sinh(q) + np.cosh(q) + np.arcsinh(q) + np.arccosh(q ** 2 + 1.5) + np.arctanh(np.tanh(q))
np.arctan2(q, v)
np.hypot(q, v)
np.square(q) + np.cbrt(q)
np.power(q ** 2 + 1, v)
np.power(q, 3)
np.float_power(abs(q), 0.3)
np.deg2rad(q) + np.radians(q) + np.rad2deg(v) + np.degrees(v)
np.floor(q) + np.ceil(v) + np.trunc(q)
np.heaviside(q, 0.5)
np.fmod(q, 0.3)
np.mod(q, 0.3)
np.polyval([1.0, 2.0, 3.0], q)
np.polyval([1.0, 2.0, 3.0], q[0])
np.polyval([q[0], v[0]], 2.0)
np.interp(q, [-1.0, 0.0, 0.5, 1.0], [1.0, 2.0, -1.0, 4.0])
np.interp(q[0], np.linspace(-1, 1, 5), np.sin(np.linspace(-1, 1, 5)))
np.interp(q[0], [0.0, 0.2], [1.0, 2.0], left=-1.0, right=9.0)
np.sinc(q)
np.pi * q
np.real(q)
np.float64(q[0]) * 2
np.sin([q[0], 0.5])
np.add([q[0], 1.0], v[:2])
math.sin(q[0]) + math.sqrt(q[1] ** 2) + math.hypot(q[0], v[0]) + math.atan2(q[0], v[0]) + math.pi
math.copysign(1.5, q[0]) + math.fabs(q[1]) + math.pow(q[0], 2) + math.exp(q[0]) + math.degrees(q[1])
math.hypot(*q) + math.dist(q, v) + math.fsum(q) + math.prod(q)
math.log(q[0] ** 2 + 1) + math.log(q[0] ** 2 + 1, 2) + math.asin(math.tanh(q[0])) + math.erf(q[1])
math.floor(q[0]) + math.ceil(q[0])
sum(q) + sum(x * y for x, y in zip(q, v))
max(q[0], 0)
min(q)
max(q[0], v[0], 0.3)
max(abs(x) for x in q)
sum(i * x for i, x in enumerate(q)) + len(q)
q.shape[0] * q[0] + q.size
(q.T @ v) * q.copy()
q.ravel() + v.flatten()
q[0] if q[0] > 0 else v[0]
q if q[0] > 0 and v[0] > 0 else v
q if q[0] > 0 or not v[0] > 0 else v
np.ones(2)
1.0
[1, q[0]]
(q[0], v)[0]
np.array([[q[0], v[0]], [0, 1]]) @ np.array([[1, 2], [3, 4]])
np.array([2, 3]) @ np.array([q[0], v[0]])
np.all(q > 0) * 1.0
np.any(q > 0) * 1.0
(q > 0).any() * 1.0
((q > 0) & (v > 0)) * 1.0
(~(q > 0) | (v > 0)) * 1.0
np.logical_and(q > 0, v > 0) * q
np.select([q > 1, q > 0], [q, v], 0.5)
np.piecewise(q, [q > 0, q <= 0], [lambda x: x ** 2, lambda x: -x])
np.isclose(q, v) * 1.0
np.tile(q, 2)
np.repeat(q, 2)
np.trapezoid(q) if hasattr(np, "trapezoid") else np.trapz(q)
np.gradient(q)
np.flip(q)
np.triu(np.outer(q, v)) + np.tril(np.outer(q, v), -1)
np.swapaxes(np.outer(q, v), 0, 1)
np.transpose(np.outer(q, v))
np.squeeze(q[None, :])
np.expand_dims(q, 0)
np.broadcast_to(q, (2, 3))
np.split(q, 3)[0]
np.sort(q)
np.std(q)
np.var(q)
np.cumprod(q)
np.insert(q, 1, v[0])
np.delete(q, 1)
np.array(q[0]) * 2
np.asarray(q[0], dtype=float)
q.astype(float)
np.array([np.array([q[0], 1.0]), v[:2]])
np.r_[q, 1.0, v[0]]
np.c_[q, v]
np.linalg.matrix_power(np.outer(q, v), 2)
np.linalg.multi_dot([np.outer(q, v), np.eye(3), q])
np.add.reduce(q)
np.multiply.outer(q, v)
np.array([q[0]]).item()
np.vectorize(lambda x: x ** 2)(q)
np.array([q[0], v[0]])[..., None]
np.ndim(q[0]) + np.shape(q)[0] + np.size(q) + q[0]
np.dot(q[0], v)
np.dot(2.0, q)
np.meshgrid(q, v)[0]
np.argmax(q) * 1.0
np.round(2.4) * q
np.zeros((0, 3)) @ q
np.zeros(3) @ q
q[q > 0].sum()
np.nan_to_num(1.0) * q
np.average(q, weights=[1.0, 2.0, 3.0])
np.vander(q, 3)
np.apply_along_axis(lambda r: r @ v, 1, np.outer(q, v))
np.einsum("i,i->", q, v, optimize=True)
np.lib.stride_tricks.sliding_window_view(q, 2)
np.copysign(1.0, q)
np.moveaxis(np.outer(q, v), 0, 1)
np.allclose(q, q) * q
np.count_nonzero(q > 0) * 1.0
np.exp2(q) + np.reciprocal(v) + np.logaddexp(q, v)
np.ptp(q)
np.array_equal(q, v) * 1.0
np.isscalar(q[0]) * q[0]
np.linalg.norm(q, ord=2)
np.append(q, [v[0], 1.0])
q[0] + [1.0, 2.0]
np.einsum("i,i", [q[0], 1.0], [2.0, v[0]])
np.concatenate([[q[0]], [1.0], v])
np.isnan(q) * 1.0 + np.isfinite(v) + np.isinf(q)
np.nan_to_num(q) + np.where(np.isnan(v), 0.0, v)
np.round(q) + np.round(v, 2) + round(q[0]) + round(v[0], 1) + np.rint(q) + q.round(1)
np.searchsorted([-1.0, 0.0, 0.5, 1.0], q) + np.searchsorted([-1.0, 0.0, 0.5], v[0], side="right")
np.digitize(q, [-1.0, 0.0, 0.5, 1.0])
np.array([1.0, 4.0, 2.0, 7.0, 3.0])[np.searchsorted([-1.0, 0.0, 0.5, 1.0], q)]
np.array([1.0, 4.0, 2.0, 7.0])[np.clip(np.searchsorted([-1.0, 0.0, 0.5], q[0]) - 1, 0, 3)] * v
np.outer(v, [1.0, 2.0])[np.searchsorted([-0.5, 0.5], q[0]) - 1]
np.median(q) + np.median(np.outer(q, v), axis=1)
np.sort(np.outer(q, v), axis=0) + np.sort(np.outer(q, v))
np.nansum(q) + np.nanmax(v) + np.nanmin(q) + np.nanmean(v) + np.nanprod(q)
np.maximum.reduce([q[0], v[0], 0.1])
np.modf(q[0])[0] + math.modf(q[1])[1] + math.remainder(v[0], 0.3) + math.trunc(q[0]) + np.ldexp(q[0], 3)
np.logaddexp2(q, v)
np.interp(q, np.linspace(-1, 1, 300), np.sin(40 * np.linspace(-1, 1, 300)))
np.interp(q[0], [-1.0, 0.0, 0.0, 1.0], [1.0, 2.0, -1.0, 4.0])
np.interp(q, [0.3], [v[0]])
""".strip().splitlines()


def arguments(function):
    values = {"q": traced(Q, (3,)), "v": traced(V, (3,))}
    return {name: values[name] for name in argument_names(function)}


def assert_traces(function, points=6):
    """The traced expression and the function agree at random points, in shape and in value."""
    expression, shape = trace(function, arguments(function))
    assert expression.is_dense()
    assert expression.shape == (math.prod(shape), 1)
    compiled = ca.Function("f", [Q, V], [expression])
    rng = np.random.default_rng(1)
    for _ in range(points):
        values = dict(zip("qv", rng.normal(size=(2, 3)), strict=True))
        expected = np.asarray(
            function(**{name: values[name].copy() for name in argument_names(function)}), dtype=float
        )
        assert expected.shape == shape
        np.testing.assert_allclose(
            np.array(compiled(values["q"], values["v"])).ravel(), expected.ravel(), rtol=1e-9, atol=1e-12
        )


def refusal(function):
    with pytest.raises(Untraceable) as caught:
        trace(function, arguments(function))
    return str(caught.value)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression_traces(expression):
    assert_traces(eval(f"lambda q, v: {expression}", {"np": np, "math": math}))


def mass_by_assignment(q, v):
    M = np.zeros((3, 3))
    M[0, 0] = q[0]
    M[1] = v
    M[2, :2] = [q[1], 0.5]
    M[:, 2] += q
    M[1, 1] *= np.cos(q[2])
    return M


def from_imports(q):
    M = zeros((2, 2))
    M[0, 1] = numpy_sin(q[0])
    return M @ array([1.0, q[1]]) + linalg.norm(q)


def imports_inside(q):
    import math as m
    from math import cos

    import numpy as anything

    result = anything.zeros(2)
    result[0] = m.sin(q[0]) + cos(q[1])
    return result


def unpacking(q, v):
    x, y, z = q
    total = 0.0
    for i, (a, b) in enumerate(zip(q, v, strict=True)):
        total += i * a * b
    return x * y - z + total


def all_creation_functions(q):
    parts = [
        np.zeros(2),
        np.ones(2),
        np.empty(2),
        np.full(2, 3.0),
        np.zeros_like(q[:2]),
        np.ones_like(q[:2]),
        np.empty_like(q[:2]),
        np.full_like(q[:2], 2.0),
    ]
    parts += [
        np.array([1.0, 2.0]),
        np.asarray([1.0, 2.0]),
        np.eye(2)[0],
        np.identity(2)[1],
        np.diag([1.0, 2.0])[0],
        np.zeros(2, dtype=np.float64),
    ]
    for k, part in enumerate(parts):
        part[0] = k * q[0]
        part[1] = q[1]
    return np.concatenate(parts)


CONSTANT = np.array([1.0, 2.0, 3.0])


def constant_array(q):
    result = CONSTANT.copy()
    result[0] = q[0]
    return result * CONSTANT


def masks(q):
    result = q.copy()
    result[result < 0] = 0.0
    kept = CONSTANT[CONSTANT > 1.5]
    return np.concatenate([result, kept])


def integer_indices(q):
    order = np.zeros(3, dtype=int)
    order[0] = 2
    return q[order] + q[np.argsort(CONSTANT)]


def fills_in_place(q, v):
    M = np.zeros((3, 3))
    np.fill_diagonal(M, q)
    np.add.at(M, (0, 1), v[0])
    np.multiply(M, 2.0, out=M)
    M[1:, 1:] -= np.outer(q[:2], v[:2])
    M[0] = np.float64(1.5)
    return M


def singleton_element(q):
    M = np.zeros((2, 2))
    M[0, 0] = q[:1].sum()
    M[1, 1] = np.linalg.norm(q)
    return M


def real_matrix_functions(q):
    stiffness = np.array([[2.0, -1.0], [-1.0, 2.0]])
    return np.linalg.eigvalsh(stiffness) * q[:2] + np.linalg.solve(stiffness, np.ones(2))


def helper(angle):
    R = np.zeros((2, 2))
    R[0, 0] = R[1, 1] = math.cos(angle)
    R[1, 0] = math.sin(angle)
    R[0, 1] = -R[1, 0]
    return R


def with_helper(q):
    return helper(q[0]) @ q[1:]


def power(x, n):
    return 1.0 if n == 0 else x * power(x, n - 1)


def recursive(q):
    return power(q[0], 5)


def with_partial(q):
    return functools.partial(power, n=3)(q[0])


@functools.cache
def cached(x):
    return x**2


def with_cache(q):
    return cached(q[0])


@numba.njit
def compiled_helper(q):
    out = np.zeros(2)
    out[0] = math.sin(q[0])
    return out


def with_numba(q):
    return compiled_helper(q)


TERMS = {"a": [helper, lambda x: np.array([[x, 0.0], [1.0, x]])]}


def functions_in_containers(q):
    return sum(term(q[0]) for term in TERMS["a"])


def default_function(q, root=math.sqrt):
    return root(q[0] ** 2)


def nested_function(q):
    def inner(x):
        out = np.zeros(2)
        out[1] = x * q[0]
        return out

    return [inner(x) for x in q]


def generator(q):
    def squares():
        for x in q:
            yield x**2

    return sum(squares())


def views(q, v):
    M = np.zeros((3, 3))
    np.asarray(M)[0, 0] = q[0]
    M = M * 0.0
    np.ravel(M)[4] = q[1]
    K = np.zeros(6)
    first, second = np.split(K, 2)
    first[:] = q
    second[0] = v[0]
    return np.concatenate([M.ravel(), K])


def asks_for_type(q):
    if (
        isinstance(q[0], float)
        and isinstance(q, np.ndarray)
        and isinstance(q[0], np.float64)
        and not isinstance(q[0], (int, list))
    ):
        return q[0]
    return q[1]


CACHE = {}


def remembers(q):
    if not CACHE:
        CACHE["x"] = q[0] if q[0] > 0 else q[1]
    result = CACHE["x"]
    CACHE.clear()
    return result


@pytest.mark.parametrize(
    "function",
    [
        mass_by_assignment,
        from_imports,
        imports_inside,
        unpacking,
        all_creation_functions,
        constant_array,
        masks,
        integer_indices,
        fills_in_place,
        singleton_element,
        real_matrix_functions,
        with_helper,
        recursive,
        with_partial,
        with_cache,
        with_numba,
        compiled_helper,
        functions_in_containers,
        default_function,
        nested_function,
        generator,
        views,
        asks_for_type,
        remembers,
    ],
    ids=lambda function: function.__name__,
)
def test_function_traces(function):
    assert_traces(function)


class Base:
    announced = 0

    def __init_subclass__(cls):
        Base.announced += 1

    @classmethod
    def make(cls, mass):
        made = cls()
        made.mass = mass
        return made

    def inertia(self, q):
        M = np.zeros((2, 2))
        M[0, 0] = self.mass * q[0]
        return M


class Part:
    def __init__(self, scale):
        self.scale = scale

    def force(self, q):
        out = zeros(2)
        out[0] = self.scale * math.sin(q[0])
        return out


class Body(Base):
    def __init__(self, mass):
        self.mass = mass
        self.offset = np.array([1.0, 2.0])
        self.part = Part(3.0)
        self.compiled = compiled_helper
        self.last = None

    @property
    def weight(self):
        return self.mass * math.sqrt(9.0)

    @staticmethod
    def rotation(angle):
        R = zeros((2, 2))
        R[0, 0] = math.cos(angle)
        return R

    def inertia(self, q):
        return super().inertia(q) + self.rotation(q[1])

    def force(self, q):
        self.last = q
        offset = self.offset.copy()
        offset[1] = q[2] * self.weight
        return self.inertia(q) @ offset + self.part.force(q) + self.compiled(q)

    def __call__(self, q):
        return self.force(q) + self.weight


@dataclasses.dataclass(frozen=True, slots=True)
class Spring:
    stiffness: float

    def __call__(self, q, v):
        out = zeros(3)
        out[:2] = -self.stiffness * q[:2] + v[:2]
        return out


BODY = Body(2.0)


@pytest.mark.parametrize(
    "function",
    [
        BODY,
        BODY.force,
        lambda q: BODY.inertia(q),
        lambda q: Base.make(1.5).inertia(q),
        Spring(2.0),
        functools.partial(Spring(2.0), v=CONSTANT),
    ],
)
def test_methods_trace(function):
    assert_traces(function)


def test_user_objects_stay_as_they_are():
    body = Body(2.0)
    before, announced, constant = dict(vars(body)), Base.announced, CONSTANT.copy()
    trace(body.force, {"q": traced(Q, (3,))})
    trace(constant_array, {"q": traced(Q, (3,))})
    assert vars(body) == before
    assert Base.announced == announced
    assert CONSTANT.dtype == float
    np.testing.assert_array_equal(CONSTANT, constant)


def test_helpers_of_another_module(tmp_path, monkeypatch):
    source = """
from math import cos
from numpy import zeros
import numpy as np

OFFSET = np.array([1.0, 2.0])

def rotation(angle):
    R = zeros((2, 2))
    R[0, 0] = R[1, 1] = cos(angle)
    return R

def shift(x):
    y = OFFSET.copy()
    y[0] = x
    return y

class Law:
    gain = 2.0
    def __call__(self, q):
        return self.gain * cos(q[0])
"""
    (tmp_path / "holonome_helpers_for_test.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    helpers = importlib.import_module("holonome_helpers_for_test")
    rotation, law = helpers.rotation, helpers.Law()
    assert_traces(lambda q: helpers.rotation(q[0]) @ helpers.shift(q[1]) + rotation(q[2]) @ q[:2] + law(q))
    reason = refusal(lambda q: float(q[0]) + helpers.shift(q[0]))
    assert reason.startswith("it converts a traced value to float (line ")
    (tmp_path / "holonome_helpers_two.py").write_text("def bad(x):\n    return int(x)\n")
    bad = importlib.import_module("holonome_helpers_two").bad
    assert (
        refusal(lambda q: bad(q[0]))
        == "it converts a traced value to int (line 2 of holonome_helpers_two.py)"
    )


def contact(q, v):
    if q[0] > 0:
        if v[0] < 0:
            return np.array([q[0] ** 1.5 - v[0], 1.0])
        return np.array([q[0] ** 1.5, 2.0])
    elif q[1] > 0 and v[1] > 0:
        return np.array([q[1], 3.0])
    return np.zeros(2)


def staircase(q, v):
    total = 0.0
    for x in (*q, *v[:2]):
        if x > 0:
            total += np.sqrt(x)
        else:
            total -= x
    return total


def bounded_iteration(q):
    x = 1.0 + abs(q[0])
    for _ in range(20):
        step = (x * x - 2.0) / (2.0 * x)
        if abs(step) < 1e-6:
            break
        x = x - step
    return x


def same_question_often(q):
    return sum(q[0] if q[0] > 0 else q[1] for _ in range(40))


@pytest.mark.parametrize("function", [contact, staircase, bounded_iteration, same_question_often])
def test_branches_are_enumerated(function):
    assert_traces(function, points=40)


def test_paths_share_no_state():
    class Model:
        def __init__(self):
            self.stored = None

        def force(self, q):
            if self.stored is None:
                self.stored = q[0] if q[0] > 0 else -q[0]
            return self.stored

    model = Model()
    expression, _ = trace(model.force, {"q": traced(Q, (3,))})
    assert model.stored is None
    assert [float(ca.Function("f", [Q], [expression])([x, 0.0, 0.0])) for x in (-2.0, 3.0)] == [2.0, 3.0]


def test_untaken_branch_does_not_spoil_derivatives():
    def direction(q):
        length = np.linalg.norm(q)
        return q / length if length > 0 else np.zeros(3)

    expression, _ = trace(direction, {"q": traced(Q, (3,))})
    derivatives = [
        ca.jacobian(expression, Q),
        ca.jtimes(expression, Q, V),
        ca.jtimes(expression, Q, V, True),
        ca.gradient(ca.sum1(expression), Q),
    ]
    for value in ca.Function("d", [Q, V], derivatives)(0.0, 1.0):
        np.testing.assert_array_equal(np.array(value), 0.0)


def newton(q):
    x = q[0]
    while abs(x * x - 2.0) > 1e-10:
        x = x - (x * x - 2.0) / (2.0 * x)
    return x


def newton_with_break(q):
    x = q[0]
    while True:
        x = x - (x * x - 2.0) / (2.0 * x)
        if abs(x * x - 2.0) < 1e-10:
            return x


def many_branches(q, v):
    total = 0.0
    for k in range(7):
        total += q[0] if q[0] > k else v[0]
    return total + (1.0 if q[1] > v[2] else 2.0)


def guarded(q):
    if q[0] < 0:
        raise ValueError("negative length")
    return q[0]


def swallows(q):
    try:
        return float(q[0])
    except Exception:
        return 0.0


def writes_to_foreign_array(q):
    numbers = np.linspace(0.0, 1.0, 3)
    numbers += q
    return numbers


def scipy_function(q):
    from scipy.linalg import expm

    return expm(np.outer(q, q))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda q: float(q[0]), "converts a traced value to float (line "),
        (lambda q: int(q[0]), "converts a traced value to int"),
        (lambda q: complex(q[0]), "converts a traced value to complex"),
        (lambda q: CONSTANT[q[0]], "as an index"),
        (lambda q: q[q], "as an index"),
        (lambda q: [1.0] * q[0], "as an index or a count"),
        (lambda q: list(range(q[0])), "as an index or a count"),
        (lambda q: {q[0]: 1}, "dictionary key"),
        (lambda q: f"{q[0]:.3f}", "formats a traced value"),
        (lambda q: np.linalg.eigvalsh(np.outer(q, q)), "np.linalg.eigvalsh"),
        (lambda q: np.spacing(q), "np.spacing"),
        (lambda q: q * 1j, "complex"),
        (lambda q: 1j * q[0], "complex"),
        (lambda q: math.gamma(q[0]), "converts a traced value to float"),
        (lambda q: np.array([1, 2]).__setitem__(0, q[0]), "converts a traced value to int"),
        (lambda q: np.array(q, dtype=int), "int"),
        (lambda q: q.astype(int), "int"),
        (newton, "more than 64 decisions"),
        (newton_with_break, "more than 64 branches"),
        (many_branches, "more than 64 branches"),
        (guarded, "raises ValueError on one of its branches"),
        (swallows, "converts a traced value to float"),
        (lambda q: np.linalg.det(np.eye(8) * q[0]), "determinant"),
        (writes_to_foreign_array, "plain numbers"),
        (scipy_function, ""),
    ],
)
def test_untraceable_functions_say_why(function, reason):
    assert reason in refusal(function)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda q: None, "returned None"),
        (lambda q: "text", "type str"),
        (lambda q: 1j, "complex"),
        (lambda q: [q[0], [1.0, 2.0]], "ragged"),
        (lambda q: {"a": q}, "type dict"),
        (lambda q: [q[0], None], "None"),
        (lambda q: q if q[0] > 0 else 0.0, "shape"),
    ],
)
def test_wrong_results_are_type_errors(function, message):
    with pytest.raises(TypeError, match=message):
        trace(function, arguments(function))


def raises_type_error(q):
    raise TypeError("must be real number, not Traced")


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (lambda q: q[3], IndexError),
        (lambda q: q @ np.zeros(2), ValueError),
        (lambda q: q + undefined, NameError),  # noqa: F821
        (lambda q: None + q[0], TypeError),
        (lambda q: q[0].nonsense, AttributeError),
        (lambda q: len(q[0]), TypeError),
        (lambda q: helper(), TypeError),
        (lambda q: 1 / 0, ZeroDivisionError),
        (lambda q: np.array([q, [1.0]]), ValueError),
        (raises_type_error, TypeError),
    ],
)
def test_errors_of_the_user_propagate(function, kind):
    with pytest.raises(kind):
        trace(function, arguments(function))


@pytest.mark.parametrize("function", [lambda q: q[0], lambda q: float(q[0]), lambda q: q[7], newton])
def test_numpy_and_math_are_restored(function):
    modules = (np, np.linalg, math)
    before = [dict(vars(module)) for module in modules]
    with contextlib.suppress(Untraceable, IndexError):
        trace(function, {"q": traced(Q, (3,))})
    for module, names in zip(modules, before, strict=True):
        assert all(vars(module)[name] is value for name, value in names.items())


def test_other_threads_keep_their_numpy():
    kinds, tracing, done = [], threading.Event(), threading.Event()

    def elsewhere():
        tracing.wait(10.0)
        kinds.append((type(np.zeros(2)), type(math.sin(1.0)), np.array([1.0]).dtype))
        done.set()

    def function(q):
        tracing.set()
        assert done.wait(10.0)
        return np.zeros(2) + q[0]

    thread = threading.Thread(target=elsewhere)
    thread.start()
    trace(function, {"q": traced(Q, (3,))})
    thread.join()
    assert kinds == [(np.ndarray, float, np.dtype(float))]


def test_libraries_keep_their_numpy():
    from scipy.interpolate import CubicSpline

    class Inside:
        def slope(self):
            return float(CubicSpline([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])(0.5))

    assert_traces(lambda q: Inside().slope() * q[0])


def test_nested_traces():
    def outer(q):
        expression, shape = trace(lambda q: np.sin(q[0]), {"q": q})
        return traced(expression, shape) + np.zeros(2)

    _, shape = trace(outer, {"q": traced(Q, (3,))})
    assert shape == (2,)
    assert np.zeros(2).dtype == float


def test_traced_values_have_types_and_text():
    scalar, vector, matrix = traced(Q[0], ()), traced(Q, (3,)), traced(ca.SX.sym("a", 6), (2, 3))
    assert type(scalar) is Traced
    assert type(vector) is TracedArray
    assert str(matrix[1, 0]) == "a_3"
    assert type(np.float64(2.0) * scalar) is type(scalar * np.float64(2.0)) is Traced
    assert type(np.ones(2) * scalar) is type(scalar * np.ones(2)) is TracedArray
    assert f"{scalar}" == "q_0"
    assert "q_0" in repr(scalar)
    assert "q_0" in repr(vector)


def test_expressions_stay_lean():
    def sparse_product(q):
        R = np.eye(3)
        R[0, 0] = q[0]
        return R @ R @ R @ np.array([1.0, 0.0, 0.0])

    expression, _ = trace(sparse_product, {"q": traced(Q, (3,))})
    assert ca.Function("f", [Q], [expression]).n_nodes() <= 6
    assert str(trace(lambda q: q[0] ** 2, {"q": traced(Q, (3,))})[0]) == "sq(q_0)"
    assert str(trace(lambda q: q[0] ** 0.5, {"q": traced(Q, (3,))})[0]) == "sqrt(q_0)"
    assert str(trace(lambda q: np.linalg.norm([q[0], 0.0]), {"q": traced(Q, (3,))})[0]) == "fabs(q_0)"


def test_parameters_in_a_namespace():
    g, masses = ca.SX.sym("g"), ca.SX.sym("m", 2)
    p = Namespace(
        {"g": traced(g, ()), "m": traced(masses, (2,)), "length": 2.0, "table": np.array([1.0, 2.0])}
    )

    def energy(q, p):
        table = p.table.copy()
        table[0] = p.g
        return p["m"] @ table * p.length + q[0]

    expression, shape = trace(energy, {"q": traced(Q, (3,)), "p": p})
    value = ca.Function("f", [Q, g, masses], [expression])([1.0, 0.0, 0.0], 9.81, [2.0, 3.0])
    assert shape == ()
    assert float(value) == pytest.approx((2 * 9.81 + 3 * 2) * 2 + 1)


def test_namespace_behaves_like_named_values():
    p = Namespace({"g": 9.81, "m": 2.0})
    assert (p.g, p["m"], list(p), "g" in p, "k" in p, len(p)) == (9.81, 2.0, ["g", "m"], True, False, 2)
    with pytest.raises(AttributeError, match="no parameter 'k'; the parameters are: g, m"):
        p.k  # noqa: B018
    with pytest.raises(KeyError, match="no parameter 'k'"):
        p["k"]
    with pytest.raises(AttributeError, match="cannot be changed"):
        p.g = 1.0
    assert vars(pickle.loads(pickle.dumps(p))) == vars(p)


def test_only_parameters_that_are_read_are_made():
    made = []
    namespace = Namespace(dict.fromkeys("abcd", 2.0), lambda value: made.append(value) or value)
    trace(lambda q, p: p.b * q[0] * p["b"], {"q": traced(Q, (3,)), "p": namespace})
    assert made == [2.0]
    assert (list(namespace), len(namespace), "c" in namespace) == (list("abcd"), 4, True)
    assert pickle.loads(pickle.dumps(namespace)).d == 2.0


def test_an_unknown_parameter_is_the_users_error():
    with pytest.raises(AttributeError, match="no parameter 'k'"):
        trace(lambda q, p: p.k * q, {"q": traced(Q, (3,)), "p": Namespace({"g": 1.0})})


def positional_only(q, /, v):
    return q - v


def test_positional_only_arguments():
    assert argument_names(positional_only) == ("q", "v")
    expression, _ = trace(positional_only, arguments(positional_only))
    assert ca.is_equal(expression, Q - V, 3)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda t, q: q, ("t", "q")),
        (lambda q, v=None, scale=2.0: q, ("q", "v")),
        (lambda q, *, p: q, ("q", "p")),
        (functools.partial(lambda q, v, p: q, p=1.0), ("q", "v")),
        (functools.partial(lambda a, q: q, 1.0), ("q",)),
        (BODY.force, ("q",)),
        (BODY, ("q",)),
        (Spring(1.0), ("q", "v")),
        (compiled_helper, ("q",)),
    ],
)
def test_argument_names(function, names):
    assert argument_names(function) == names


@pytest.mark.parametrize("function", [lambda *args: 0.0, lambda q, **options: 0.0])
def test_argument_names_need_names(function):
    with pytest.raises(TypeError, match=r"takes \*"):
        argument_names(function)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.bool_, np.longdouble])
def test_captured_scalars_of_numpy(kind):
    """As a closure, in a container, as an attribute and as a default, on either side of a traced scalar."""
    two = kind(2)

    class Held:
        pass

    held = Held()
    held.value = two

    def function(q, default=two):
        return [two * q[0], q[0] / two, q[0] + [two][0], held.value - q[0], {"a": two}["a"] * q[1] * default]

    expression, _ = trace(function, {"q": traced(Q, (3,))})
    point = np.array([0.3, -1.2, 0.7])
    values = ca.Function("f", [Q], [expression])(point).full().ravel()
    np.testing.assert_allclose(values, np.array(function(point), dtype=float), rtol=1e-15)
