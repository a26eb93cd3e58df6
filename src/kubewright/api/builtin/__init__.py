"""The kinds that every cluster has, one module for each group and version; import the module you need.

- `admissionregistration_v1`
- `apiextensions_v1`
- `apps_v1`
- `authentication_v1`
- `authorization_v1`
- `autoscaling_v1`
- `autoscaling_v2`
- `batch_v1`
- `certificates_v1`
- `coordination_v1`
- `core_v1`
- `discovery_v1`
- `events_v1`
- `meta_v1`
- `networking_v1`
- `policy_v1`
- `rbac_v1`
- `scheduling_v1`
- `storage_v1`
"""
