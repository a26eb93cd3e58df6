"""What the benchmarks of the runtime share: the real API server, the resources on it, the programs under test."""
