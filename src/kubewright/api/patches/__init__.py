"""The patches of the API on wire values, and the differences that become patches."""

from kubewright.api.patches.difference import json_diff, typed_diff
from kubewright.api.patches.json import json_patch, same
from kubewright.api.patches.merge import merge_diff, merge_patch
from kubewright.api.patches.strategic import PatchSchema, merge_strategically, strategic_patch

__all__ = [
    "PatchSchema",
    "json_diff",
    "json_patch",
    "merge_diff",
    "merge_patch",
    "merge_strategically",
    "same",
    "strategic_patch",
    "typed_diff",
]
