"""Regular expressions as the API server reads them: RE2 syntax, and matching in linear time.

`compile_pattern` in `pattern` is the entry point. Read in this order: `charset` (sets of characters), `syntax` (the
parser), `automaton` (the linear-time matcher), `pattern` (the choice between it and the standard library's `re`).
"""

from kubewright.schema.patterns.pattern import Pattern, compile_pattern
from kubewright.schema.patterns.syntax import PatternError

__all__ = ["Pattern", "PatternError", "compile_pattern"]
