"""Numerical utilities that know nothing of machines: shapes, memory, loops, linear systems."""
