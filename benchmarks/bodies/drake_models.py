"""Drake: joint coordinates in a MultibodyPlant.

A tree without loops is a continuous plant, integrated by Drake's own Runge-Kutta method of order 3 with
constant steps. Loops exist in Drake only in a discrete plant (its solver SAP), as ball constraints, one or
two for a joint; its step is that of a semi-implicit Euler method, so the motion is of order 1, and
accelerations at a state are not to be had. Drives are forces on the joints: a constant actuation, the joint's
damping and a spring.
"""

from __future__ import annotations

import numpy as np
from pydrake.all import (
    BallRpyJoint,
    DiagramBuilder,
    FixedOffsetFrame,
    MultibodyPlant,
    PrismaticJoint,
    PrismaticSpring,
    ResetIntegratorFromFlags,
    RevoluteJoint,
    RigidTransform,
    RotationMatrix,
    Simulator,
    SpatialInertia,
    UnitInertia,
    UniversalJoint,
)

from bodies.models import GROUND, Model
from bodies.tree import pairs, quaternion, tree


def version() -> str:
    from importlib.metadata import version

    return version("drake")


class Built:
    def __init__(self, model: Model, step: float) -> None:
        """``step`` is that of the discrete plant of a model with loops; a tree does not need it."""
        self.model = model
        self.discrete = any(joint.loop for joint in model.joints)
        self.plant = plant = MultibodyPlant(time_step=step if self.discrete else 0.0)
        plant.mutable_gravity_field().set_gravity_vector(np.array(model.gravity))
        if self.discrete:
            plant.set_discrete_contact_approximation(plant.get_discrete_contact_approximation().kSap)
        self.bodies, center = {GROUND: plant.world_body()}, {GROUND: np.zeros(3)}
        for body in model.bodies:
            I = np.array(body.inertia)
            unit = UnitInertia(*(np.diag(I) / body.mass), *(I[[0, 0, 1], [1, 2, 2]] / body.mass))
            self.bodies[body.name] = plant.AddRigidBody(
                body.name, SpatialInertia(body.mass, np.zeros(3), unit)
            )
            center[body.name] = np.array(body.center)
        joints, actuated = [], []
        for branch in tree(model):
            body, joint = branch.body, branch.joint
            if joint is None:
                continue
            if joint.kind == "universal":
                # about x of the frame on the first body, then about y of that on the second
                x, y = np.array(joint.axis), np.array(joint.axis2)
                R = RotationMatrix(np.stack([x, y, np.cross(x, y)], axis=1))
            else:
                R = RotationMatrix()
            frames = [
                plant.AddFrame(
                    FixedOffsetFrame(
                        f"{joint.name} on {name}",
                        self.bodies[name].body_frame(),
                        RigidTransform(R, np.array(joint.point) - center[name]),
                    )
                )
                for name in (branch.before, body.name)
            ]
            damping = branch.drive.rate if branch.drive else 0.0
            if joint.kind == "revolute":
                added = RevoluteJoint(joint.name, *frames, np.array(joint.axis), damping)
            elif joint.kind == "prismatic":
                added = PrismaticJoint(joint.name, *frames, np.array(joint.axis), damping=damping)
            elif joint.kind == "universal":
                added = UniversalJoint(joint.name, *frames)
            else:
                added = BallRpyJoint(joint.name, *frames)
            added = plant.AddJoint(added)
            joints.append((added, branch))
            if branch.drive is not None:
                actuated.append(branch.drive.constant)
                plant.AddJointActuator(joint.name, added)
                if branch.drive.stiffness:
                    assert joint.kind == "prismatic"
                    plant.AddForceElement(PrismaticSpring(added, 0.0, branch.drive.stiffness))
        for pair in pairs(model):
            first, second = self.bodies[pair.first], self.bodies[pair.second]
            plant.AddBallConstraint(
                first, pair.point - center[pair.first], second, pair.point - center[pair.second]
            )
        plant.Finalize()
        builder = DiagramBuilder()
        builder.AddSystem(plant)
        self.diagram = builder.Build()
        self.context = self.diagram.CreateDefaultContext()
        self.own = plant.GetMyMutableContextFromRoot(self.context)
        if actuated:
            plant.get_actuation_input_port().FixValue(self.own, np.array(actuated))
        for body in model.bodies:
            if self.bodies[body.name].is_floating_base_body():
                plant.SetFloatingBaseBodyPoseInWorldFrame(
                    self.own, self.bodies[body.name], RigidTransform(np.array(body.center))
                )
        v = plant.GetVelocities(self.own).copy()
        for added, branch in joints:
            first = added.velocity_start()
            v[first : first + added.num_velocities()] = branch.rates(model)
        for body in model.bodies:
            drake = self.bodies[body.name]
            if drake.is_floating_base_body():
                first = drake.floating_velocities_start_in_v()
                v[first : first + 6] = [*body.angular_velocity, *body.velocity]
        plant.SetVelocities(self.own, v)

    def states(self) -> np.ndarray:
        """Per body: position, quaternion, velocity, angular velocity."""
        out = []
        for body in self.model.bodies:
            drake = self.bodies[body.name]
            pose = self.plant.EvalBodyPoseInWorld(self.own, drake)
            speed = self.plant.EvalBodySpatialVelocityInWorld(self.own, drake)
            out.append(
                np.concatenate(
                    [
                        pose.translation(),
                        quaternion(pose.rotation().matrix()),
                        speed.translational(),
                        speed.rotational(),
                    ]
                )
            )
        return np.array(out)


def accelerations(model: Model) -> np.ndarray:
    """Per body: acceleration of the centre and angular acceleration at the start, seen from the world."""
    built = Built(model, 1e-3)
    if built.discrete:
        raise NotImplementedError("a discrete plant has no accelerations at a state")
    out = []
    for body in model.bodies:
        a = built.plant.EvalBodySpatialAccelerationInWorld(built.own, built.bodies[body.name])
        out.append(np.concatenate([a.translational(), a.rotational()]))
    return np.array(out)


def motion(model: Model, times, step: float) -> np.ndarray:
    """States of the bodies at these times, which must be whole numbers of steps."""
    built = Built(model, step)
    simulator = Simulator(built.diagram, built.context)
    if not built.discrete:
        ResetIntegratorFromFlags(simulator, "runge_kutta3", step)
        integrator = simulator.get_mutable_integrator()
        integrator.set_fixed_step_mode(True)
        integrator.set_maximum_step_size(step)
    simulator.Initialize()
    states = []
    for end in times:
        simulator.AdvanceTo(end)
        states.append(built.states())
    return np.array(states)
