"""The live page of `kubewright ui`, `dev --ui` and `run --ui`: objects, reconciles and operators in a browser.

Read in this order: `page` (the entry points), `state` (the data that pages are sent), `history` and `reconciles` (past
versions and reconciles, within memory limits), `summaries` (what is shown of an object, pure), the sources
(`cluster_source`, `operator_source`, `record_source`), then the HTTP side: `access` (which requests are allowed),
`handler`, `stream`, `actions`. `static` has the page itself, in plain JavaScript without a build step.
"""

from kubewright.ui.page import PageOptions, cluster_page, record_page

__all__ = ["PageOptions", "cluster_page", "record_page"]
