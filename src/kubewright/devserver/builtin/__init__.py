"""Strategies of the built-in kinds: defaults, validation, printed columns, special subresources.

`strategy_for` is the entry point; `catalog` collects the `STRATEGIES` of all modules. Kinds that operators write are
code: `pods` and the workloads, `jobs`, `cron_jobs`, `services`, `configuration`, `rbac`, `admission_registration`,
`events`, `autoscaling`, `namespaces` (with quotas) and `budgets_and_leases`. The others are mostly rows for the
functions in `rules`: `storage`, `networking`, `flowcontrol`, `certificates` and `cluster`. All of them use
`field_checks`, `ip_checks`, `printing` and `writes`. `earlier_releases` changes strategies into those of earlier Kubernetes releases. To add a kind, add an entry to the `STRATEGIES` of a module.
"""

from kubewright.devserver.builtin.catalog import strategy_for
from kubewright.devserver.builtin.earlier_releases import strategy_in_release

__all__ = ["strategy_for", "strategy_in_release"]
