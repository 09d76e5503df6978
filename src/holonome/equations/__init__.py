"""What a system says, as expressions: masses, forces, constraints and their derivatives."""
