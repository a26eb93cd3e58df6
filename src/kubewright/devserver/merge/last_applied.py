"""The last-applied annotation of client-side `kubectl apply`, used when kubectl changes to server-side apply."""

import json

from kubewright.devserver.merge.comparison import compare
from kubewright.devserver.merge.elements import go_json
from kubewright.devserver.merge.fieldsets import FieldSet, difference
from kubewright.devserver.merge.membership import fields_of
from kubewright.devserver.merge.schema import ApplyError, MergeSchema
from kubewright.devserver.merge.validation import check_fits
from kubewright.devserver.merge.values import metadata_of
from kubewright.devserver.objects import JsonObject, is_object

# The one manager whose earlier client-side applies count as its own.
KUBECTL = "kubectl"
ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_MAX_ANNOTATIONS = 256 * 1024


def may_be_taken(live: JsonObject, schema: MergeSchema, api_version: str) -> FieldSet:
    """Return the fields that kubectl applied on the client side and that are unchanged since."""
    last = _last_applied(live)
    if last is None or last.get("apiVersion") != api_version:
        return {}
    try:
        check_fits(last, schema)
        comparison = compare(last, live, schema)
        fields = fields_of(last, schema)
    except ApplyError:
        return {}
    for changed in (comparison.modified, comparison.added, comparison.removed):
        fields = difference(fields, changed)
    return fields


def with_annotation(value: JsonObject, config: JsonObject) -> JsonObject:
    """Keep the annotation of an object that has it in step with what was applied."""
    annotations = _annotations(value)
    if not annotations.get(ANNOTATION):
        return value
    annotations = {**annotations, ANNOTATION: go_json(_without_annotation(config)) + "\n"}
    if sum(len(key.encode()) + len(text.encode()) for key, text in annotations.items()) > _MAX_ANNOTATIONS:
        del annotations[ANNOTATION]
    return {**value, "metadata": {**metadata_of(value), "annotations": annotations}}


def _annotations(value: JsonObject) -> dict[str, str]:
    return metadata_of(value).get("annotations") or {}


def _last_applied(live: JsonObject) -> JsonObject | None:
    text = _annotations(live).get(ANNOTATION)
    try:
        value = json.loads(text) if text else None
    except ValueError:
        return None
    return value if is_object(value) else None


def _without_annotation(config: JsonObject) -> JsonObject:
    annotations = _annotations(config)
    if ANNOTATION not in annotations:
        return config
    kept = {key: text for key, text in annotations.items() if key != ANNOTATION}
    rest = {key: item for key, item in metadata_of(config).items() if key != "annotations"}
    return {**config, "metadata": {**rest, "annotations": kept} if kept else rest}
