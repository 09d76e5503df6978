"""The same mechanisms of rigid bodies and joints in other codes, and what they say of their motion."""
