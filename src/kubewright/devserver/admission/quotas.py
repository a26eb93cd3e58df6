"""ResourceQuotas: writes that would use more than a namespace may."""

from kubewright.api import Quantity
from kubewright.devserver.admission.quota_usage import Usage, in_scope, is_counted, unmet_demands, usage_of
from kubewright.devserver.builtin.pods.resources import ResourceList, add_resources, quantities
from kubewright.devserver.objects import JsonObject, meta, section
from kubewright.devserver.objects.clock import Clock
from kubewright.devserver.request.admission import AdmissionAttributes, AdmissionPlugin
from kubewright.devserver.strategy.access import Access

_ZERO = Quantity("0")


class ResourceQuotas(AdmissionPlugin):
    """Charge the ResourceQuotas of a namespace for a write, or reject it."""

    def __init__(self, api: Access, clock: Clock) -> None:
        self._api = api
        self._clock = clock

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Check all quotas, then charge them."""
        if not is_counted(attributes):
            return
        quotas = self._api.list("", "resourcequotas", attributes.namespace)
        charged = [quota for quota in quotas if self._charge(quota, attributes) is not None]
        if attributes.dry_run:
            return
        for quota in charged:
            await self._api.update(
                "",
                "resourcequotas",
                attributes.namespace,
                meta(quota)["name"],
                lambda fresh: self._write(fresh, attributes),
                subresource="status",
            )

    def _write(self, quota: JsonObject, attributes: AdmissionAttributes) -> None:
        used = self._charge(quota, attributes)
        if used is not None:
            section(quota, "status")["used"] = {name: str(value) for name, value in used.items()}

    def _charge(self, quota: JsonObject, attributes: AdmissionAttributes) -> Usage | None:
        """Return the usage after the write, or None if the quota does not apply; raise if the quota is exceeded."""
        group, _, plural = attributes.resource
        obj, old = attributes.object or {}, attributes.old_object
        if not in_scope(quota, group, plural, obj):
            return None
        hard = quantities(section(quota, "status").get("hard"))
        used = quantities(section(quota, "status").get("used"))
        usage = usage_of(group, plural, obj, self._clock.seconds())
        limited = hard.keys() & {*usage, *_possible(group, plural, hard)}
        name = meta(quota)["name"]
        if (group, plural) == ("", "pods") and (why := unmet_demands(obj, set(limited))):
            raise attributes.forbidden(f"failed quota: {name}: {why}")
        if not limited <= used.keys():
            raise attributes.forbidden(
                f"status unknown for quota: {name}, resources: {','.join(sorted(limited))}"
            )
        if old is not None and in_scope(quota, group, plural, old):
            before = usage_of(group, plural, old, self._clock.seconds())
            usage = {key: max(value - before.get(key, _ZERO), _ZERO) for key, value in usage.items()}
        asked = {key: value for key, value in usage.items() if key in hard and value}
        if not asked:
            return None
        total = add_resources(used, asked)
        exceeded = sorted(key for key in asked if total[key] > hard[key])
        if exceeded:
            requested, present, limits = (_shown(part, exceeded) for part in (asked, used, hard))
            raise attributes.forbidden(
                f"exceeded quota: {name}, requested: {requested}, used: {present}, limited: {limits}",
            )
        return total


def _possible(group: str, plural: str, hard: ResourceList) -> set[str]:
    """Return the names by which a quota may limit this kind, though the object at hand does not use them."""
    if (group, plural) != ("", "pods"):
        return set()
    return {
        name for name in hard if name.startswith(("limits.", "requests.")) and name != "requests.storage"
    } | (hard.keys() & {"cpu", "memory", "ephemeral-storage"})


def _shown(part: ResourceList, names: list[str]) -> str:
    return ",".join(f"{name}={part[name]}" for name in names if name in part)
