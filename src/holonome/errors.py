"""Exceptions raised before a run starts, or when a file is read.  During a run of `solve` nothing raises: the
result says what happened.
"""


class HolonomeError(Exception):
    """Base class of the exceptions of this package.

    Examples
    --------
    >>> import holonome as hn
    >>> issubclass(hn.ModelError, hn.HolonomeError), issubclass(hn.ModelError, ValueError)
    (True, True)
    """


class ModelError(HolonomeError, ValueError):
    """A function or array of the system is wrong: its shape, its value, or it raised.

    Examples
    --------
    >>> import holonome as hn
    >>> try:
    ...     hn.System(mass=[1.0, 1.0], force=[0.0, -9.81, 0.0])
    ... except hn.ModelError as error:
    ...     print(error)
    force has shape (3,); expected (2,)
    """


class InconsistentStart(HolonomeError, ValueError):
    """The initial values violate the constraints by more than may be repaired silently.

    Examples
    --------
    >>> import holonome as hn
    >>> try:
    ...     hn.solve(hn.mechanisms.pendulum().system, (0, 1), [1.2, 0])
    ... except hn.InconsistentStart as error:
    ...     print(str(error).partition(";")[0])
    q0 violates the constraints: rod = 0.44
    """


class ContradictoryConstraints(HolonomeError, ValueError):
    """No position satisfies all constraints at once.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> two = hn.System(np.eye(2), [0.0, -9.81], lambda q: np.array([q @ q - 1, q @ q - 2]), names=["x", "y"])
    >>> try:
    ...     hn.solve(two, (0, 1), [1, 0], repair=True)
    ... except hn.ContradictoryConstraints as error:
    ...     print(str(error).partition(":")[0])
    the constraints contradict each other near q0
    """


class SingularSystem(HolonomeError, ValueError):
    """Mass matrix and constraints together do not determine the accelerations.

    Examples
    --------
    >>> import holonome as hn
    >>> try:
    ...     hn.solve(hn.System([1.0, 0.0], [0.0, 0.0], names=["x", "y"]), (0, 1), [0, 0])
    ... except hn.SingularSystem as error:
    ...     print(error)
    mass: singular for motions that the constraints allow, at t = 0: y can move without any inertia. Give it
    mass or a constraint
    """


class NoEquilibrium(HolonomeError, ValueError):
    """No equilibrium or steady motion was found, or what was found does not persist.

    Examples
    --------
    >>> import holonome as hn
    >>> falling = hn.System(1.0, -9.81, names=["y"])
    >>> try:
    ...     hn.equilibrium(falling, [0.0])
    ... except hn.NoEquilibrium as error:
    ...     print(str(error).partition(" in the best")[0])
    no equilibrium was found near the guess: nothing balances the force -9.81 along 'y'
    """


class StepFailed(HolonomeError, RuntimeError):
    """A :class:`holonome.Simulator` could not go on; its state is that before the step.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> sim = hn.Simulator(hn.System(1.0, lambda q: -1 / np.sqrt(q), names=["x"]), [1.0])
    >>> try:
    ...     sim.step(10.0)
    ... except hn.StepFailed as error:
    ...     print(str(error).partition(":")[0][:10], sim.t)
    stopped at 0.0
    """


class UnreadableFile(HolonomeError, ValueError):
    """A file is not a saved result, is damaged, or lacks its system.

    Examples
    --------
    >>> import pathlib, tempfile, holonome as hn
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "notes.npz"
    >>> size = file.write_text("nothing")
    >>> try:
    ...     hn.Solution.load(file)
    ... except hn.UnreadableFile as error:
    ...     print(str(error).partition("' ")[2].partition(" (")[0])
    is not a file of NumPy arrays, or it is damaged
    """
