"""What a system can be asked beside its motion: equilibria, linearisation, modes, response, kinematics."""
