"""What a system can be asked in numbers: accelerations, multipliers, the way back to the manifold, a
consistent start.
"""
