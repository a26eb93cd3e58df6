"""The Common Expression Language as the API server implements it: typed by schemas, with Kubernetes' functions and costs.

`environment` is the entry point. `parser` builds the tree of `ast`, `checker` finds the types of its nodes, `evaluator`
compiles them to closures and `costs` estimates their cost: each of the three is a visitor. `types` and `values` are what
they work with, `messages` the objects that expressions create, and `standard`, `extensions` and `kubernetes` the functions.
"""

from kubewright.schema.cel.environment import CALL_LIMIT, CelEnvironment, InstantiationFailed, Program
from kubewright.schema.cel.errors import CompileError, CostExceeded, EvaluationError
from kubewright.schema.cel.kubernetes import (
    AUTHORIZER,
    RESOURCE_CHECK,
    AuthorizationCheck,
    AuthorizationDecision,
    Authorizer,
    ResourceCheck,
    authorization_library,
)
from kubewright.schema.cel.messages import (
    JSON_PATCH,
    OBJECT,
    MessageType,
    misplaced,
    mutation_library,
    to_json,
)
from kubewright.schema.cel.parser import called_functions, is_identifier
from kubewright.schema.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    DeclaredType,
    Library,
    Type,
    declare,
    escape,
    list_of,
    map_of,
    opaque,
    struct,
)  # fmt: skip
from kubewright.schema.cel.values import CelMessage

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
    "AuthorizationCheck",
    "AuthorizationDecision",
    "Authorizer",
    "CelEnvironment",
    "CelMessage",
    "CompileError",
    "CostExceeded",
    "DeclaredType",
    "EvaluationError",
    "InstantiationFailed",
    "Library",
    "MessageType",
    "Program",
    "ResourceCheck",
    "Type",
    "authorization_library",
    "called_functions",
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
