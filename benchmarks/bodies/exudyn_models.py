"""Exudyn: absolute coordinates, its own bodies, joints, connectors and loads; constant steps.

Rigid bodies in space have Euler parameters, in planar mechanisms they are two-dimensional; joints are
ObjectJointGeneric, ObjectJointSpherical and, in the plane, ObjectJointRevolute2D and ObjectJointPrismatic2D.
Generalised-alpha on index 3 with spectral radius 0.9, and the trapezoidal rule on index 2; modified Newton
with relative tolerance 1e-10, dense matrices. Redundant rows in space need ignoreSingularJacobian with dense
matrices of Eigen; its own dense solver and the sparse one stop there. On Bennett's linkage index 3 runs so,
index 2 stops or goes astray with every linear solver.
"""

from __future__ import annotations

import exudyn as exu
import numpy as np
from exudyn import itemInterface as items

from bodies.models import GROUND, Joint, Model, normals
from bodies.tree import quaternion

exu.config.printToConsole = False
KINDS = {"index 3": "GeneralizedAlpha", "index 2": "TrapezoidalIndex2"}


def version() -> str:
    return exu.__version__


class Built:
    def __init__(self, model: Model) -> None:
        self.model = model
        self.container = exu.SystemContainer()
        self.mbs = self.container.AddSystem()
        self.ground = self.mbs.AddObject(items.ObjectGround())
        self.bodies = {body.name: self._body(body) for body in model.bodies}
        for joint in model.joints:
            self._joint(joint)
        for drive in model.drives:
            self._drive(model.joint(drive.joint), drive)
        self.mbs.Assemble()

    def _body(self, body) -> int:
        if self.model.planar:
            node = self.mbs.AddNode(
                items.NodeRigidBody2D(
                    referenceCoordinates=[body.center[0], body.center[1], 0.0],
                    initialVelocities=[*body.velocity[:2], body.angular_velocity[2]],
                )
            )
            number = self.mbs.AddObject(
                items.ObjectRigidBody2D(mass=body.mass, inertia=body.inertia[2][2], nodeNumber=node)
            )
        else:
            w = np.array(body.angular_velocity)
            node = self.mbs.AddNode(
                items.NodeRigidBodyEP(
                    referenceCoordinates=[*body.center, 1.0, 0.0, 0.0, 0.0],
                    initialVelocities=[*body.velocity, 0.0, *(w / 2)],
                )
            )
            I = np.array(body.inertia)
            number = self.mbs.AddObject(
                items.ObjectRigidBody(
                    physicsMass=body.mass,
                    physicsInertia=[I[0, 0], I[1, 1], I[2, 2], I[1, 2], I[0, 2], I[0, 1]],
                    nodeNumber=node,
                )
            )
        mass = self.mbs.AddMarker(items.MarkerBodyMass(bodyNumber=number))
        self.mbs.AddLoad(items.LoadMassProportional(markerNumber=mass, loadVector=list(self.model.gravity)))
        return number

    def _at(self, name: str, point, *, rigid: bool = True) -> int:
        kind = items.MarkerBodyRigid if rigid else items.MarkerBodyPosition
        if name == GROUND:
            return self.mbs.AddMarker(kind(bodyNumber=self.ground, localPosition=list(point)))
        local = np.subtract(point, self.model.body(name).center)
        return self.mbs.AddMarker(kind(bodyNumber=self.bodies[name], localPosition=list(local)))

    def _joint(self, joint: Joint) -> None:
        if joint.kind == "spherical":
            markers = [self._at(name, joint.point, rigid=False) for name in (joint.first, joint.second)]
            self.mbs.AddObject(items.ObjectJointSpherical(markerNumbers=markers))
            return
        markers = [self._at(name, joint.point) for name in (joint.first, joint.second)]
        if self.model.planar:
            if joint.kind == "revolute":
                self.mbs.AddObject(items.ObjectJointRevolute2D(markerNumbers=markers))
            else:
                # the axis belongs to the first marker, the normal to the second
                x, y, _ = joint.axis
                self.mbs.AddObject(
                    items.ObjectJointPrismatic2D(
                        markerNumbers=markers, axisMarker0=[x, y, 0.0], normalMarker1=[-y, x, 0.0]
                    )
                )
            return
        if joint.kind == "universal":
            # only the third rotation about the axes of Tait and Bryan is locked: z is normal to both axes
            R = np.stack([joint.axis, joint.axis2, np.cross(joint.axis, joint.axis2)], axis=1)
            axes = [1, 1, 1, 0, 0, 1]
        else:
            R = np.stack([*normals(joint.axis), joint.axis], axis=1)
            axes = [1, 1, 1, 1, 1, 0] if joint.kind == "revolute" else [1, 1, 0, 1, 1, 1]
        self.mbs.AddObject(
            items.ObjectJointGeneric(
                markerNumbers=markers, constrainedAxes=axes, rotationMarker0=R, rotationMarker1=R
            )
        )

    def _drive(self, joint: Joint, drive) -> None:
        markers = [self._at(name, joint.point) for name in (joint.first, joint.second)]
        R = np.stack([*normals(joint.axis), joint.axis], axis=1)
        if joint.kind == "revolute":
            self.mbs.AddObject(
                items.ObjectConnectorTorsionalSpringDamper(
                    markerNumbers=markers,
                    stiffness=drive.stiffness,
                    damping=drive.rate,
                    torque=-drive.constant,
                    rotationMarker0=R,
                    rotationMarker1=R,
                )
            )
        else:
            # along the axis alone; across it nothing moves
            stiffness, damping = np.zeros((6, 6)), np.zeros((6, 6))
            stiffness[2, 2], damping[2, 2] = drive.stiffness, drive.rate
            offset = np.zeros(6)
            if drive.stiffness:
                offset[2] = drive.constant / drive.stiffness
            else:
                assert drive.constant == 0
            self.mbs.AddObject(
                items.ObjectConnectorRigidBodySpringDamper(
                    markerNumbers=markers,
                    stiffness=stiffness,
                    damping=damping,
                    offset=offset,
                    rotationMarker0=R,
                    rotationMarker1=R,
                )
            )

    def settings(self, steps: int, end: float, kind: str) -> exu.SimulationSettings:
        settings = exu.SimulationSettings()
        settings.solution.file.write = False
        time = settings.timeIntegration
        time.numberOfSteps, time.endTime = steps, end
        time.minimumStepSize = 1e-3 * end / steps
        time.newton.relativeTolerance = 1e-10
        time.generalizedAlpha.spectralRadius = 0.9 if kind == "index 3" else 1.0
        time.generalizedAlpha.computeInitialAccelerations = True
        settings.linearSolverType = exu.LinearSolverType.EXUdense
        if self.model.redundant and not self.model.planar:
            settings.linearSolverType = exu.LinearSolverType.EigenDense
            settings.linearSolverSettings.ignoreSingularJacobian = True
        return settings

    def solve(self, steps: int, end: float, kind: str) -> None:
        good = self.mbs.SolveDynamic(
            self.settings(steps, end, kind),
            solverType=getattr(exu.DynamicSolverType, KINDS[kind]),
            showHints=False,
            showCausingItems=False,
        )
        if not good:
            raise RuntimeError("SolveDynamic returned False: Newton's method failed")

    def states(self) -> np.ndarray:
        """Per body: position, quaternion, velocity, angular velocity."""
        return np.array(
            [
                np.concatenate(
                    [
                        self._output(body, "Position"),
                        quaternion(self._output(body, "RotationMatrix").reshape(3, 3)),
                        self._output(body, "Velocity"),
                        self._angular(body, "AngularVelocity"),
                    ]
                )
                for body in self.bodies.values()
            ]
        )

    def accelerations(self) -> np.ndarray:
        return np.array(
            [
                np.concatenate(
                    [self._output(body, "Acceleration"), self._angular(body, "AngularAcceleration")]
                )
                for body in self.bodies.values()
            ]
        )

    def _output(self, body: int, name: str) -> np.ndarray:
        kind = getattr(exu.OutputVariableType, name)
        return np.asarray(self.mbs.GetObjectOutputBody(body, kind, [0.0, 0.0, 0.0]), dtype=float)

    def _angular(self, body: int, name: str) -> np.ndarray:
        value = self._output(body, name)
        return value if value.size == 3 else np.array([0.0, 0.0, float(value)])


def accelerations(model: Model) -> np.ndarray:
    """Per body: acceleration of the centre and angular acceleration at the start, seen from the world, as
    Exudyn finds them for its first step (computeInitialAccelerations; it differentiates the joints by
    differences).
    """
    built, found = Built(model), []

    def keep(mbs, t):
        found.append(built.accelerations())
        return True

    built.mbs.SetPostStepUserFunction(keep)
    try:
        built.solve(1, 1e-6, "index 2")
    finally:
        built.mbs.SetPostStepUserFunction(0)
    return found[0]


def motion(model: Model, times, step: float, kind: str = "index 2") -> np.ndarray:
    """States of the bodies at these times, which must be whole numbers of steps."""
    built = Built(model)
    counts = np.rint(np.array(times) / step).astype(int)
    if not np.allclose(counts * step, times, rtol=1e-12):
        raise ValueError("the times are not whole numbers of steps")
    wanted, states = set(counts), {}
    count = -1

    def keep(mbs, t):
        nonlocal count
        count += 1  # the first call is before the first step
        if count in wanted:
            states[count] = built.states()
        return True

    built.mbs.SetPostStepUserFunction(keep)
    try:
        built.solve(int(counts[-1]), float(times[-1]), kind)
    finally:
        built.mbs.SetPostStepUserFunction(0)
    return np.array([states[count] for count in counts])
