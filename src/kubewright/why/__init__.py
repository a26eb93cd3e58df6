"""Why an object is as it is, and what its operator does about it: for `kubewright why` and other programs.

`endpoints` finds running operators, `sources` reads the records of reconciles from them or from a file, `cluster` reads the
object's children and Events, and `explanation` combines them (pure). The entry point is `explain`.
"""

from kubewright.why.cluster import RelatedObjects, read_related
from kubewright.why.endpoints import (
    EndpointSearch,
    JournalEndpoint,
    OperatorPod,
    cluster_endpoints,
    journal_file,
    local_endpoints,
    serving_pods,
)
from kubewright.why.explanation import (
    ChildState,
    ConditionState,
    ExplainedReconcile,
    Explanation,
    FieldManager,
    Owner,
    SeenEvent,
    explain,
    parsed_time,
    state_of,
)
from kubewright.why.sources import (
    FollowedLabels,
    JournalQuery,
    ObjectJournal,
    RecordedObject,
    ShardHolders,
    SourceError,
    ask,
    deployed_journals,
    read_record,
    running_journals,
)

__all__ = [
    "ChildState",
    "ConditionState",
    "EndpointSearch",
    "ExplainedReconcile",
    "Explanation",
    "FieldManager",
    "FollowedLabels",
    "JournalEndpoint",
    "JournalQuery",
    "ObjectJournal",
    "OperatorPod",
    "Owner",
    "RecordedObject",
    "RelatedObjects",
    "SeenEvent",
    "ShardHolders",
    "SourceError",
    "ask",
    "cluster_endpoints",
    "deployed_journals",
    "explain",
    "journal_file",
    "local_endpoints",
    "parsed_time",
    "read_record",
    "read_related",
    "running_journals",
    "serving_pods",
    "state_of",
]
