"""Singular positions, where rows of the constraints depend on each other for a moment: passed on the same
branch and told, or not passed with success.  IFToMM's benchmark of N four-bar linkages has one in every half
turn.
"""

import numpy as np
import pytest

import holonome as hn


def four_bars(loops: int, doubled: int = 0) -> tuple[hn.System, np.ndarray, np.ndarray]:
    """Upright cranks at (0, 0), (1, 0), … and couplers, of length 1; any number moves alike.  So many rows
    are redundant.
    """

    def constraint(q):
        ends = q.reshape(loops + 1, 2)
        cranks = ends - np.array([[float(i), 0.0] for i in range(loops + 1)])
        couplers = ends[1:] - ends[:-1]
        g = np.concatenate([(cranks * cranks).sum(axis=1), (couplers * couplers).sum(axis=1)]) - 1
        return np.concatenate([g, 2 * g[:doubled]])

    system = hn.System(
        np.eye(2 * loops + 2),
        np.tile([0.0, -9.81], loops + 1),
        constraint,
        names=[f"{c}{i}" for i in range(loops + 1) for c in "xy"],
        potential=lambda q: 9.81 * q[1::2].sum(),
    )
    q0 = np.array([[float(i), 1.0] for i in range(loops + 1)]).ravel()
    return system, q0, np.tile([1.0, 0.0], loops + 1)


def distance_from_branch(sol: hn.Solution) -> float:
    """All couplers stay parallel to the ground."""
    ends = sol.q.T.reshape(sol.t.size, -1, 2)
    return float(np.abs(np.diff(ends, axis=1) - [1.0, 0.0]).max())


@pytest.mark.parametrize("loops", [2, 24, 28])
@pytest.mark.parametrize("method", ["auto", "bdf"])
def test_passages_are_told_and_stay_on_the_branch(loops, method):
    """Up to 24 loops the elimination is emitted; 28 are treated as sparse."""
    system, q0, v0 = four_bars(loops)
    sol = hn.solve(system, (0, 4), q0, v0, method=method)
    assert sol.success, sol.message
    assert distance_from_branch(sol) < 1e-11
    np.testing.assert_allclose(sol.singular_times[:3], [0.7472, 1.3010, 2.7952], atol=1e-3)
    assert "rank of the constraints fell on the way" in sol.message


@pytest.mark.parametrize("method", ["auto", "dopri5", "bdf"])
@pytest.mark.parametrize("doubled", [1, 3])
def test_passages_are_told_beside_redundant_rows(doubled, method):
    """What falls is the rank that the constraints have elsewhere."""
    system, q0, v0 = four_bars(2, doubled)
    sol = hn.solve(system, (0, 4), q0, v0, method=method)
    assert sol.success, sol.message
    assert distance_from_branch(sol) < 1e-11
    np.testing.assert_allclose(sol.singular_times[:3], [0.7472, 1.3010, 2.7952], atol=1e-3)


@pytest.mark.parametrize("loops", [2, 28])
@pytest.mark.parametrize("method", ["index1", "index2", "ggl", "cs", "srm"])
def test_success_means_the_same_branch(loops, method):
    system, q0, v0 = four_bars(loops)
    sol = hn.solve(system, (0, 4), q0, v0, method=method, rtol=1e-5, atol=1e-8)
    assert not sol.success or distance_from_branch(sol) < 1e-4
    if not sol.success:
        assert "singular" in sol.message
