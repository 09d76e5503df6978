"""A name means one thing."""

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
        ({"parameters": {"x": 0.0}}, "parameters: 'x' is in names as well"),
        ({"inputs": {"x": 0.0}}, "inputs: 'x' is in names as well"),
        ({"unknowns": {"x": 0.0}, "equations": lambda w: w}, "unknowns: 'x' is in names as well"),
        ({"states": {"s": 0.0}, "rate": rate, "parameters": {"s": 1.0}}, "parameters: 's' is in states"),
    ],
)
def test_names_of_two_kinds_are_refused(given, message):
    with pytest.raises(hn.ModelError, match=message):
        hn.System(1.0, force, names=["x"], **given)
