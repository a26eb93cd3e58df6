"""The Common Expression Language as the API server speaks it: typed by schemas, with Kubernetes' functions and costs.

`lexer`, `parser` and `macros` read an expression, `checker` finds its types, `evaluator` makes closures of it, `charges`
and `estimates` say what it costs, `standard` and the modules beside it hold the functions, `messages` the objects that expressions make, `declarations` turns schemas
into types, `environment` is what the rest uses.
"""

from kubewright.schema.cel.authorization import (
    AUTHORIZER,
    RESOURCE_CHECK,
    Authorizer,
    Decision,
    Question,
    ResourceCheck,
    authorization_library,
)
from kubewright.schema.cel.declarations import declare, escape
from kubewright.schema.cel.environment import CALL_LIMIT, Environment, Program
from kubewright.schema.cel.errors import CompileError, CostExceeded, EvaluationError
from kubewright.schema.cel.lexer import is_identifier
from kubewright.schema.cel.messages import (
    JSON_PATCH,
    OBJECT,
    MessageType,
    misplaced,
    mutation_library,
    to_json,
)
from kubewright.schema.cel.overloads import Library
from kubewright.schema.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Declared,
    Type,
    list_of,
    map_of,
    opaque,
    struct,
)  # fmt: skip
from kubewright.schema.cel.values import Message

__all__ = [
    "AUTHORIZER",
    "BOOL",
    "BYTES",
    "CALL_LIMIT",
    "DOUBLE",
    "DURATION",
    "DYN",
    "INT",
    "JSON_PATCH",
    "OBJECT",
    "RESOURCE_CHECK",
    "STRING",
    "TIMESTAMP",
    "Authorizer",
    "CompileError",
    "CostExceeded",
    "Decision",
    "Declared",
    "Environment",
    "EvaluationError",
    "Library",
    "Message",
    "MessageType",
    "Program",
    "Question",
    "ResourceCheck",
    "Type",
    "authorization_library",
    "declare",
    "escape",
    "is_identifier",
    "list_of",
    "map_of",
    "misplaced",
    "mutation_library",
    "opaque",
    "struct",
    "to_json",
]
