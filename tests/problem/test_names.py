"""A name means one thing among results; what goes in may be called like what comes out."""

import numpy as np
import pytest

import holonome as hn


def force(q):
    return -q


def rate(s):
    return -s


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"states": {"x": 0.0}, "rate": rate}, "states: 'x' is in names as well"),
        ({"unknowns": {"x": 0.0}, "equations": lambda w: w}, "unknowns: 'x' is in names as well"),
        (
            {"states": {"s": 0.0}, "rate": rate, "unknowns": {"s": 0.0}, "equations": lambda w: w},
            "unknowns: 's' is in states",
        ),
    ],
)
def test_names_of_two_kinds_are_refused(given, message):
    with pytest.raises(hn.ModelError, match=message):
        hn.System(1.0, force, names=["x"], **given)


def test_an_input_may_have_the_name_of_a_coordinate():
    system = hn.System(1.0, lambda q, u: u.x - q, names=["x"], inputs={"x": 2.0})
    sol = hn.solve(system, (0, 1), [0.0], [0.0], rtol=1e-10)
    assert sol.q[0, -1] == pytest.approx(2 * (1 - np.cos(1.0)), abs=1e-8)
