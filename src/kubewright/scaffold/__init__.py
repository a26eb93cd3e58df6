"""New projects and additions to them: pure functions from the user's options to the text of files.

`project` writes a project, `kinds` a kind or a version of one, `webhooks` its webhooks and conversions;
`source` edits the user's Python files by their syntax tree. `naming` derives and validates names,
`changes` lists what changed for existing projects, `texts` fills the templates. `external` writes classes of other
projects' kinds from their CRDs.
"""

from kubewright.scaffold.changes import changes_between, is_newer
from kubewright.scaffold.kinds import Addition, Declared, kind_files, version_files
from kubewright.scaffold.naming import (
    domain_problem,
    group_problem,
    kind_problem,
    module_name,
    package_name,
    plural_problem,
    project_problem,
    version_problem,
)
from kubewright.scaffold.project import LOCK, project_files, with_record
from kubewright.scaffold.source import Unclear, add_class_keyword, add_import, add_to_operator
from kubewright.scaffold.webhooks import admission_files, conversion_files

__all__ = [
    "LOCK",
    "Addition",
    "Declared",
    "Unclear",
    "add_class_keyword",
    "add_import",
    "add_to_operator",
    "admission_files",
    "changes_between",
    "conversion_files",
    "domain_problem",
    "group_problem",
    "is_newer",
    "kind_files",
    "kind_problem",
    "module_name",
    "package_name",
    "plural_problem",
    "project_files",
    "project_problem",
    "version_files",
    "version_problem",
    "with_record",
]
