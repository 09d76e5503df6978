"""Bodies, joints and forces by name, in the plane and in space, from which a System is made.

=================== ===============================================================================
`geometry`          vectors, rotations, quaternions and frames in symbols
`shapes`            volume, centre and inertia of simple shapes
`body`              rigid bodies and the points on them
`joint`             what joints offer; those that are given by their freedoms; screw, rod
`rope`              ropes over pulleys
`contact`           points on curves and surfaces, rolling
`tree`              the tree of links, and the joints that close loops
`kinematics`        where links and bodies are and how they move
`load`              forces, springs, bushings, friction
`coupling`          drives, gears, racks, belts
`law`               the user's functions of t, angle, rate, …
`equations`         M, f, g, h
`choice`            joint or absolute coordinates
`search`            Newton's method for closed positions
`assembly`          closed positions and their velocities
`starting_values`   what start and speed may be given
`motions`           what is known of one joint or body along a run
`named_results`     reactions, places, power by name
`body_system`       the System
`picture`           its drawing
`description`       what print says
`parts`             parts by name, and how arguments that mean parts are read
`adding_bodies`     methods that add bodies
`adding_joints`     methods that add joints, drives and gears
`adding_forces`     methods that add forces
`section`           cross-sections and materials of beams
`segments`          beams and cables by finite segments
`modes`             beams by modes, in a floating frame
`adding_beams`      methods that add beams and cables
`mechanism`         Mechanism, where all of it comes together
=================== ===============================================================================
"""

from holonome.bodies.load import Effort, Load, Scene, Wrench
from holonome.bodies.section import Section

__all__ = ["Effort", "Load", "Scene", "Section", "Wrench"]
