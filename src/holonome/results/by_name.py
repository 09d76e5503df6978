"""Results by the names of bodies, joints, forces and contacts."""

from __future__ import annotations

from typing import Any

import numpy as np

from holonome.locks import cached_property
from holonome.results import contact_motion
from holonome.results.frozen import Result


class NamedResult(Result):
    """What a run says about the parts of a mechanism."""

    @cached_property
    def _by_name(self) -> Any:
        return self.system.named_results(self)

    def joint(self, name: str) -> Any:
        """Coordinates and rates of a joint of a :class:`holonome.Mechanism`: ``.angle``, ``.displacement``,
        ``.rate``, ``.rotation``, or ``.values`` and ``.rates`` by name.
        """
        return self._by_name.joint(name)

    def body(self, name: str, frame: str | None = None) -> Any:
        """A body of a mechanism: ``.position``, ``.velocity``, ``.angle``, ``.rotation``, ``.point("P")``, in
        the axes of the ground or of another body, ``frame``.
        """
        return self._by_name.body(name, frame)

    def reaction(self, name: str, frame: str | None = None) -> Any:
        """What a joint does to its second body: ``.force`` and ``.moment``, at ``.place``."""
        return self._by_name.reaction(name, frame)

    def effort(self, name: str) -> np.ndarray:
        """What a force, spring or drive of a mechanism exerts, at each point: the torque of a motor or of a
        drive, the tension of a spring; a row for each direction where it has several.
        """
        return self._by_name.effort(name)

    def contact(self, name: str) -> Any:
        """A contact along the run: ``.gap``, ``.force``, ``.friction``, ``.slip``, ``.status``; its impacts
        are ``sol.impacts.of(name)``.
        """
        return contact_motion.contact_motion(self, name)

    def contact_power(self) -> np.ndarray:
        """The power that all contacts put in, friction and what is moved from outside, at each point."""
        return contact_motion.contact_power(self)

    @property
    def undetermined(self) -> list[str]:
        """Of a mechanism: the names of joints, drives and gears whose forces are one choice of many, as
        redundant rows leave open how they share what the motion needs.
        """
        return sorted(self._by_name.undetermined)

    def power(self, name: str) -> np.ndarray:
        """The power that a force, spring or drive of a mechanism puts in, at each point."""
        return self._by_name.power(name)

    def work(self, name: str) -> np.ndarray:
        """The work that a force, spring or drive of a mechanism has done since the first point."""
        return self._by_name.work(name)

    @property
    def energy_error(self) -> np.ndarray:
        """Of a mechanism: the change of its energy less the work of all motors, dampers and drives, which is
        the drift that matters where a motor works.
        """
        return self._by_name.energy_error
