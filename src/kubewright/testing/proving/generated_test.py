"""Write a pytest for each failing case; it passes when the bug is fixed."""

from collections import Counter
from collections.abc import Sequence

from kubewright.testing.proving.report import case_lines
from kubewright.testing.proving.violations import FoundViolation

_FILE = '''"""What `kubewright prove` found in {operator}: each test passes when its bug is fixed."""

{imports}

{setup}
{tests}'''
_TEST = '''

def test_{name}() -> None:
    """{title} must hold in this case.

{case}
    """
    Prover({make}, {samples}{further}).check(
        {call}
    )
'''


def source_of_tests(
    found: Sequence[FoundViolation],
    *,
    operator: str,
    imports: list[str],
    setup: str,
    make: str,
    samples: str,
    further: str = "",
) -> str:
    """Return the text of a file with a test for each violation; the arguments are Python source."""
    used: set[str] = set()
    names = {"Case", "FreshModules", "Prover"}
    tests: list[str] = []
    counts: Counter[str] = Counter()
    for violation in found:
        case = violation.case
        used |= {type(fault).__name__ for fault in case.all_faults}
        used |= {"Plan"} if case.all_faults else set()
        used |= {"Deviation"} if case.order else set()
        if case.sequence is not None:
            names |= {"SpecSequence", *(type(step).__name__ for step in case.sequence.steps)}
        name = f"{_identifier(operator)}_{_identifier(violation.property.id)}"
        counts[name] += 1
        tests.append(
            _TEST.format(
                name=name if counts[name] == 1 else f"{name}_{counts[name]}",
                title=violation.property.title,
                case="\n".join(f"    {line}" for line in _docstring(case_lines(case))),
                make=make,
                samples=samples,
                further=further,
                call=_source(violation),
            )
        )
    return _FILE.format(
        operator=operator,
        imports="\n".join(
            [
                *imports,
                *([f"from kubewright.testing import {', '.join(sorted(used))}"] if used else ()),
                f"from kubewright.testing.proving import {', '.join(sorted(names))}",
            ]
        ),
        setup=setup,
        tests="".join(tests),
    )


def _docstring(lines: Sequence[str]) -> list[str]:
    """Return lines escaped for a docstring: a spec may contain backslashes and quotes."""
    return [line.replace("\\", "\\\\").replace('"""', '\\"\\"\\"') for line in lines]


def _source(failure: FoundViolation) -> str:
    """Return the Python expression of the case, with the arguments that differ from their defaults."""
    case = failure.case
    parts = [f"seed={case.seed}"] if case.seed else []
    for name, plan in (("faults", case.faults), ("late_faults", case.late_faults)):
        if plan.faults:
            parts.append(f"{name}={plan!r}")
    if case.replicas != 1:
        parts.append(f"replicas={case.replicas}")
    if case.pauses is not None:
        parts.append(f"pauses={case.pauses!r}")
    if case.samples is not None:
        parts.append(f"samples={case.samples!r}")
    if not case.change:
        parts.append("change=False")
    if case.ending != "delete":
        parts.append(f"ending={case.ending!r}")
    if case.order is not None:
        parts.append(f"order={case.order!r}")
    if case.sequence is not None:
        parts.append(f"sequence={case.sequence!r}")
    return f"Case({', '.join(parts)})"


def _identifier(text: str) -> str:
    return "".join(each if each.isalnum() else "_" for each in text).lower()
