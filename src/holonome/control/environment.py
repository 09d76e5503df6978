"""An environment of Gymnasium: a system or mechanism that is controlled through its inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np

from holonome.arguments import checked, shown
from holonome.control.view import View
from holonome.errors import StepFailed
from holonome.problem.drawing import Drawing
from holonome.problem.event import Event
from holonome.solving.asking import Asking
from holonome.solving.moment import Moment
from holonome.solving.now import Now
from holonome.solving.simulator import Simulator

_OF_START = ("q0", "v0", "s0", "start", "speed", "t0", "parameters", "inputs")


class Environment(gymnasium.Env):
    """A :class:`gymnasium.Env`: an action sets the inputs, which are held for a while; then comes the next.

    Parameters
    ----------
    system
        A :class:`holonome.System` or :class:`holonome.Mechanism` with inputs, or a ready-made mechanism.
    every : float
        The time from one action to the next.
    actions : dict or list of dicts
        Inputs by name with their lower and upper bounds, ``{"torque": (-2, 2)}``, in the order of the entries
        of an action; or a few choices, ``[{"torque": -1.0}, {"torque": 1.0}]``, of which an action is the
        number.
    reward : callable
        A function of any of t, q, v, s, w, x, p, u, a, lam, of ``action`` and ``observation``; of a mechanism
        also of joint, body and reaction.
    start : dict or callable
        Where episodes begin: the arguments of :meth:`holonome.Simulator.reset`, such as ``{"q0": [0, 1]}`` or
        ``{"start": {"A": 0.1}}``; or a function of numpy's random generator that returns such a dict, with
        ``parameters`` too, if they shall vary.
    observation : sequence of names, or callable, optional
        What is observed.  Names of coordinates ("x"), velocities ("x'") and states; of a mechanism "A.angle",
        "A.rate", "tool.position", "tool.P".  Or a function as ``reward`` that returns numbers.  By default
        all coordinates, velocities and states.
    bounds : pair, optional
        Lower and upper bounds of observations: numbers, or arrays.
    terminated : callable or Event, optional
        When an episode ends: a function as ``reward`` that says so behind a step, or an event, at which the
        step stops.
    time_limit : float, optional
        Time after which an episode is truncated.
    drawing : Drawing, optional
        How it is drawn.
    render_mode : str, optional
        "rgb_array", or None.
    **options
        Further arguments of :class:`holonome.Simulator`, such as ``method`` and ``rtol``.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> cart = hn.System(1.0, lambda v, u: u.push - v, inputs={"push": 0.0}, names=["x"])
    >>> env = hn.control.Environment(
    ...     cart,
    ...     every=0.1,
    ...     actions={"push": (-1, 1)},
    ...     reward=lambda q: -abs(q[0] - 1),
    ...     start=lambda random: {"q0": random.uniform(-0.1, 0.1, 1)},
    ...     terminated=lambda q: abs(q[0]) > 2,
    ...     time_limit=5.0,
    ... )
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(np.array([1.0]))
    >>> observation.shape, terminated, truncated, info["t"]
    ((2,), False, False, 0.1)
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(
        self,
        system: Any,
        *,
        every: float,
        actions: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        reward: Callable,
        start: Mapping[str, Any] | Callable[[np.random.Generator], Mapping[str, Any]],
        observation: Sequence[str] | Callable | None = None,
        bounds: tuple[Any, Any] = (-math.inf, math.inf),
        terminated: Callable | Event | None = None,
        time_limit: float | None = None,
        drawing: Drawing | None = None,
        render_mode: str | None = None,
        **options: Any,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode: {shown(render_mode)}; give 'rgb_array' or None")
        if "events" in options:
            raise ValueError("events: give one that ends an episode as terminated=")
        self.every, self.render_mode = checked("every", every), render_mode
        self.time_limit = checked("time_limit", time_limit)
        self._start, self._drawing, self._view = start, drawing, None
        ending = terminated if isinstance(terminated, Event) else None
        if ending is not None:
            options["events"] = Event(ending.function, True, ending.direction)
        first = self._sampled(np.random.default_rng(0))
        self.simulator = Simulator(system, **first, **options)
        made = self.simulator.system
        self._set_actions(actions, made)
        self._reward = Asking(reward, "reward", made, ("action", "observation"))
        self._ends = None
        if terminated is not None and not isinstance(terminated, Event):
            self._ends = Asking(terminated, "terminated", made, ("action", "observation"))
        self._look = self._observer(observation, made)
        seen = self._observed(self._moment())
        low, high = (np.broadcast_to(np.asarray(bound, dtype=float), seen.shape) for bound in bounds)
        self.observation_space = gymnasium.spaces.Box(low.copy(), high.copy(), dtype=np.float64)

    def _set_actions(self, actions: Any, system: Any) -> None:
        choices = None if isinstance(actions, Mapping) else list(actions)
        for choice in [actions] if choices is None else choices:
            if not isinstance(choice, Mapping) or not choice:
                raise TypeError(f"actions: {shown(choice)}; give inputs by name, with their bounds")
            for name in choice:
                if name not in system.inputs:
                    there = ", ".join(system.inputs) or "none"
                    raise ValueError(f"actions: {name!r} is no input; this system has {there}")
        if choices is not None:
            if not choices:
                raise ValueError("actions: the list is empty; give at least one choice")
            self._choices: list[dict[str, Any]] | None = [dict(choice) for choice in choices]
            self.action_space = gymnasium.spaces.Discrete(len(choices))
            return
        self._choices, self._inputs = None, list(actions)
        try:
            low, high = np.array([actions[name] for name in self._inputs], dtype=float).T
        except (TypeError, ValueError):
            raise ValueError(f"actions: {shown(actions)}; give (lower, upper) for each input") from None
        if not np.all(low < high):
            raise ValueError("actions: each lower bound must lie below the upper one; exchange them")
        self.action_space = gymnasium.spaces.Box(low, high, dtype=np.float64)

    def _sampled(self, random: np.random.Generator, further: Mapping[str, Any] | None = None) -> dict:
        """Where an episode begins."""
        found = self._start(random) if callable(self._start) else self._start
        if not isinstance(found, Mapping):
            raise TypeError(f"start: {shown(found)}; give a dict, or a function that returns one")
        found = dict(found) | dict(further or {})
        unknown = [name for name in found if name not in _OF_START]
        if unknown:
            raise ValueError(f"start: {unknown[0]!r} is not known; give any of {', '.join(_OF_START)}")
        return found

    def _observer(self, observation: Any, system: Any) -> Callable[[Moment], Any]:
        if callable(observation):
            return Asking(observation, "observation", system)
        if observation is None:
            return lambda moment: moment.y
        if isinstance(observation, str):
            observation = [observation]
        parts = [_named(name, system) for name in observation]
        return lambda moment: np.concatenate([np.ravel(part(moment)) for part in parts])

    def _moment(self) -> Moment:
        sim = self.simulator
        return Moment(sim.system, sim.t, sim.y)

    def _observed(self, moment: Moment) -> np.ndarray:
        found = np.array(self._look(moment), dtype=np.float64)
        return found.reshape(-1) if found.ndim == 0 else found

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Begin an episode.

        Parameters
        ----------
        seed
            Of the random generator.
        options
            Arguments of :meth:`holonome.Simulator.reset` that replace those of the start.
        """
        super().reset(seed=seed)
        self.simulator.reset(**self._sampled(self.np_random, options))
        self._began = self.simulator.t
        return self._observed(self._moment()), {"t": self.simulator.t}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Set the inputs and go on for a while.

        A step that fails ends the episode; ``info["failure"]`` then says why.
        """
        sim, info = self.simulator, {}
        try:
            sim.step(self.every, **self._inputs_of(action))
        except StepFailed as error:
            info["failure"] = str(error)
        moment = self._moment()
        observation = self._observed(moment)
        told = {"action": action, "observation": observation}
        terminated = sim.terminated or "failure" in info
        if self._ends is not None and not terminated:
            terminated = bool(self._ends(moment, **told))
        truncated = self.time_limit is not None and sim.t - self._began >= self.time_limit * (1 - 1e-12)
        return observation, float(self._reward(moment, **told)), terminated, truncated, info | {"t": sim.t}

    def _inputs_of(self, action: Any) -> dict[str, Any]:
        if self._choices is not None:
            return self._choices[int(action)]
        space = self.action_space
        values = np.clip(np.asarray(action, dtype=float).reshape(space.shape), space.low, space.high)  # type: ignore[union-attr]
        return dict(zip(self._inputs, values.tolist(), strict=True))

    def render(self) -> np.ndarray | None:
        """The mechanism as it is now, red, green and blue of each pixel."""
        if self.render_mode is None:
            return None
        if self._view is None:
            self._view = View(self.simulator, self._drawing)
        return self._view.pixels()

    def close(self) -> None:
        self._view = None


def _named(name: str, system: Any) -> Callable[[Moment], Any]:
    """What a name says, at a moment."""
    n, states = system.n, list(system.states)
    places = {key: k for k, key in enumerate(system.names)} | {
        f"{key}'": n + k for k, key in enumerate(system.names)
    }
    places |= {key: 2 * n + k for k, key in enumerate(states)}
    if name in places:
        return lambda moment: moment.y[places[name]]
    part, _, what = name.partition(".")
    if what and part in getattr(system, "joints", {}):
        return lambda moment: _of_joint(Now(moment.system, moment.t, moment.state).joint(part), what)
    if what and part in getattr(system, "bodies", {}):
        return lambda moment: _of_body(Now(moment.system, moment.t, moment.state).body(part), what)
    raise ValueError(
        f"observation: {name!r} is not known; give names of coordinates, such as {', '.join([*places][:3])}, "
        "or of joints and bodies of a mechanism, such as 'A.angle'"
    )


def _of_joint(joint: Any, what: str) -> Any:
    return joint.values[what] if what in joint.values else getattr(joint, what)


def _of_body(body: Any, what: str) -> Any:
    return body.point(what) if what in body._points else getattr(body, what)
