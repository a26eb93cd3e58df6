"""Good objects of the kinds that operators write, and ways to make one wrong in one place."""

import copy
from typing import Any

LABELS = {"app": "a"}
SELECTOR = {"matchLabels": LABELS}
CONTAINER = {"name": "c", "image": "i"}
POD = {"containers": [CONTAINER]}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": POD}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
GONE = object()


def bent(obj: dict[str, Any], **places: Any) -> dict[str, Any]:
    """Copy an object with values put at places, written as `spec__containers__0__image`; GONE takes one away."""
    made = copy.deepcopy(obj)
    for place, value in places.items():
        *way, last = (int(part) if part.isdecimal() else part for part in place.split("__"))
        holder: Any = made
        for step in way:
            if isinstance(holder, dict):
                holder = holder.setdefault(step, {})
            else:
                holder = holder[int(step)]
        if value is GONE:
            del holder[last]
        else:
            holder[last] = value
    return made


def named(spec: Any = None, **more: Any) -> dict[str, Any]:
    """Make an object with a name, a spec and what else it has."""
    return {"metadata": {"name": "x"}, **({} if spec is None else {"spec": spec}), **more}


POD_OBJECT = named(POD)
DEPLOYMENT = named({"selector": SELECTOR, "template": TEMPLATE})
STATEFUL_SET = named({"selector": SELECTOR, "template": TEMPLATE, "serviceName": "s"})
DAEMON_SET = named({"selector": SELECTOR, "template": TEMPLATE})
JOB = named({"template": {"spec": {**POD, "restartPolicy": "Never"}}})
CRON_JOB = named({"schedule": "* * * * *", "jobTemplate": {"spec": {"template": JOB["spec"]["template"]}}})
SERVICE = named({"selector": LABELS, "ports": [{"port": 80}]})
BACKEND = {"service": {"name": "s", "port": {"number": 80}}}
INGRESS = named(
    {"rules": [{"host": "a.b", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": BACKEND}]}}]}
)
INGRESS_CLASS = named({"controller": "ex.io/c", "parameters": {"kind": "K", "name": "n"}})
POLICY = named({"podSelector": {}, "policyTypes": ["Ingress"]})
PVC = named(CLAIM)
SCALER = named(
    {
        "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 5}},
            }
        ],
    }
)
BUDGET = named({"minAvailable": 1, "selector": SELECTOR})
QUOTA = named({"hard": {"pods": "1", "requests.cpu": "1"}})
LIMITS = named({"limits": [{"type": "Container", "max": {"cpu": "1"}}]})
STORAGE_CLASS = named(provisioner="ex.io/p")
HOOKS = named(
    webhooks=[
        {
            "name": "a.b.c",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"url": "https://a.b"},
        }
    ]
)
RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
ADMISSION_POLICY = named(
    {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "true"}]}
)
