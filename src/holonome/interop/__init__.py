"""Bridges to other packages. Each is imported only when it is used."""
