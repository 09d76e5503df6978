"""What can go wrong before a run starts.  During a run nothing raises: the result says what happened."""


class HolonomeError(Exception):
    """Base class of everything this package raises on purpose."""


class ModelError(HolonomeError, ValueError):
    """A function or array of the system is wrong: its shape, its value, or it raised."""


class InconsistentStart(HolonomeError, ValueError):
    """The initial values violate the constraints by more than may be repaired silently."""


class ContradictoryConstraints(HolonomeError, ValueError):
    """No position satisfies all constraints at once."""


class SingularSystem(HolonomeError, ValueError):
    """Mass matrix and constraints together do not determine the accelerations."""
