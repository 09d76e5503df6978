"""The loop that takes many trajectories from their starts to their ends, written for W lanes.

Every turn of the loop is one step of an explicit Runge–Kutta method in each lane, of its own trajectory, from
its own time with its own step size:

    k_i = F(t + c_i h, y + h Σ a_ij k_j),    ẑ = y + h Σ b_i k_i,    e = h Σ e_i k_i

ẑ returns to the manifold by Newton steps, and e is freed of its part normal to it, exactly as in
:mod:`holonome.integrators.runge_kutta_steps`.  A lane whose step fails tries a smaller one in the next turn.
Lanes do not see each other: what a lane computes depends on its own trajectory alone.

A lane begins a trajectory with a step of size 0, which evaluates the rates and brings the start onto the
manifold.  It ends steps at the times of output.  Where an event ends the run, or a passage or an extreme is
wanted, the step across it is repeated with other sizes until it is bracketed.  A lane that is done writes its
result and takes the next trajectory, whose number it gets from a counter that all threads share.

What this loop does not treat itself it hands over, by a status: stiffness, singular positions, inconsistent
starts, steps that become too small.
"""

from __future__ import annotations

from holonome.ensembles.lane import IDLE, RUNNING
from holonome.ensembles.lane_control import ControlInLanes
from holonome.machine.code import larger, select, smaller

ARGUMENTS = (
    "ptr noalias %table, ptr noalias %begin, ptr noalias %stride, i64 %members, ptr noalias %counter, "
    "ptr noalias %settings, ptr noalias %times, i64 %times_count, ptr noalias %out, ptr noalias %last"
)


class March(ControlInLanes):
    """Writes the loop; for its arguments see :class:`holonome.ensembles.lane.Lane`."""

    def write(self, head: str) -> str:
        """The whole function."""
        code = self.code
        self._begin()
        with code.loop() as loop:
            with code.when((self.status[0] > RUNNING + 0.5).any()):
                self._renew()
            loop.leave(code.lanes.all_true((self.status[0] > IDLE - 0.5).name))
            self._step()
        return code.function(head)

    def _step(self) -> None:
        """One step in every lane."""
        starting, searching, hinted = (self.starting[0] > 0.5, self.searching[0] > 0.5, self.hint[0] > 0.0)
        t, left = self.t[0], abs(self.t_next[0] - self.t[0])
        wish = select(searching, self.guess[0], smaller(self.h[0], self.largest))
        wish = select(starting, 0.0, select(hinted, self.hint[0], wish))
        reaches = wish >= left * (1 - 1e-10)
        halves = select(wish > 0.5 * left, 0.5 * left, wish)
        length = select(reaches, left, select(searching | hinted, wish, halves))
        step = self.direction[0] * length
        t_new = select(reaches, self.t_next[0], t + step)
        running = self.status[0] < RUNNING + 0.5
        self.tried[0] = self.tried[0] + 1.0
        good = self._stages(t, step)
        share = self._estimate(step)
        good = self._onto_manifold(t_new, step, running & good, starting, share) & good
        error = (self.square[0] * (1 / max(self.size, 1))).sqrt()
        total = self.square[0]
        if self.means:
            error = larger(error, self._mean_error(step))
        for c in range(self.slopes):
            total = total + self.rate[c]
        good = good & running & (self.failed[0] < 0.5)
        finite = total.is_finite()
        passed = good & finite & ((error <= 1.0) | starting)
        retry, end = self._search(t, t_new, step, passed, starting, searching)
        accept = passed & ~retry
        fixed = searching | hinted | retry
        self._control(length, error, good & finite, accept, retry, starting, fixed, reaches)
        self._watch(step, accept)
        self._watch_rank(t, t_new, step, accept, starting)
        self._add_up(step, accept)
        self._refuse(t, t_new, running, accept | retry, starting, good)
        self._accept(t_new, accept, starting)
        self._report(accept, accept & reaches, end)
