"""Regular expressions as the API server reads them: RE2 syntax, and matching in linear time.

`syntax` parses, `charset` knows the character classes, `automaton` matches, `pattern` is what the rest uses.
"""

from kubewright.schema.patterns.pattern import Pattern, compile_pattern
from kubewright.schema.patterns.syntax import PatternError

__all__ = ["Pattern", "PatternError", "compile_pattern"]
