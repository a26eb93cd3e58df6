"""Shared by the benchmarks of the runtime: the real API server, its resources, the programs under test."""
