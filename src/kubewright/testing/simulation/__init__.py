"""Deterministic simulations of operators: one thread, virtual time, faults and crashes, everything from a seed.

Read in this order: `simulation` (the entry point, `simulate`), `loop` (processes and time), `network` (requests,
answers and watches), `determinism` (random numbers and clocks), `world` (the stored state, for invariants), `trace`.
"""
