"""Prove an operator: run it with crashes and faults, in many message orders and with many specs, and check properties.

A *case* (`Case`) describes one run as data. The operator runs in a simulation (`kubewright.testing.simulation`), and the
result is compared with a run without faults. A failing case is reduced to the smallest one that fails in the same way.

Read in this order:

- `properties`: what is checked; `subject`: the operator and its samples; `cases`: a run and its faults as data;
- `continuous_checks`: what is checked after each write and reconcile; `case_run`: one run, and what is checked when the
  operator has settled; `end_states`: how two final states differ; `exits`: when the process may end by itself;
- `prover`: run a case, compare it, shrink it; `violations`: which failures are the same; `exploration`: which cases run;
- `orders`: the search over message orders; `operator_state`: a hash of the operator's memory, to prune that search;
- `values` and `sequences`: specs that a schema allows; `sequence_run`: one run of them; `advice`: the rule that a CRD lacks;
- `timeline`, `report` and `generated_test`: output; `clocks`: calls that make a run unrepeatable.

The entry points are `prove` (`decorator`) for tests and `explore`; the command `kubewright prove` uses `Prover` in
several processes.
"""

from kubewright.testing.proving.cases import (
    Case,
    CrashPoint,
    crash_pairs,
    leader_pauses,
    lost_responses,
    random_case,
    refused_requests,
    single_crashes,
    single_disturbances,
)
from kubewright.testing.proving.continuous_checks import Observed
from kubewright.testing.proving.decorator import prove
from kubewright.testing.proving.exploration import Effort, explore
from kubewright.testing.proving.fresh_modules import FreshModules, fresh_operator
from kubewright.testing.proving.properties import PROPERTIES, Property, PropertyFailed
from kubewright.testing.proving.prover import CaseResult, Prover
from kubewright.testing.proving.report import Report
from kubewright.testing.proving.sequences import ApplySpec, DeleteChild, EditChild, SpecSequence
from kubewright.testing.proving.subject import ProofError
from kubewright.testing.proving.violations import DistinctViolation, FoundViolation

__all__ = [
    "PROPERTIES",
    "ApplySpec",
    "Case",
    "CaseResult",
    "CrashPoint",
    "DeleteChild",
    "DistinctViolation",
    "EditChild",
    "Effort",
    "FoundViolation",
    "FreshModules",
    "Observed",
    "ProofError",
    "Property",
    "PropertyFailed",
    "Prover",
    "Report",
    "SpecSequence",
    "crash_pairs",
    "explore",
    "fresh_operator",
    "leader_pauses",
    "lost_responses",
    "prove",
    "random_case",
    "refused_requests",
    "single_crashes",
    "single_disturbances",
]
