"""Benchmarks; each module writes its section of RESULTS.md."""
