"""What admission does by itself: limits, quotas, Pod Security, defaults of new objects."""

from typing import Any

from conformance_exchange import Step

NAMESPACE = "admission"
N = f"/api/v1/namespaces/{NAMESPACE}"
MERGE = {"Content-Type": "application/merge-patch+json"}
SAFE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod(name: str, *containers: Any, **spec: Any) -> dict[str, Any]:
    found = [{"name": f"c{index}", "image": "i", **item} for index, item in enumerate(containers or ({},))]
    return {"metadata": {"name": name}, "spec": {"containers": found, **spec}}


def secured(name: str, **context: Any) -> dict[str, Any]:
    return pod(name, {"securityContext": {**SAFE, **context}})


def labels(enforce: str, **more: str) -> dict[str, str]:
    found = {"enforce": enforce, **more}
    return {f"pod-security.kubernetes.io/{key.replace('_', '-')}": value for key, value in found.items()}


def space(name: str, **more: Any) -> Step:
    body = {"metadata": {"name": f"{NAMESPACE}-{name}", **more}}
    return Step(f"namespace-{name}", "POST", "/api/v1/namespaces", body, compared=False)


def create(step: str, where: str, body: Any, kind: str = "pods") -> Step:
    group = "apis/apps/v1" if kind == "deployments" else "api/v1"
    return Step(step, "POST", f"/{group}/namespaces/{NAMESPACE}-{where}/{kind}", body)


BAD: dict[str, dict[str, Any]] = {
    "host": pod("host", hostNetwork=True, hostPID=True),
    "privileged": pod(
        "privileged", {"securityContext": {"privileged": True}}, {"securityContext": {"privileged": True}}
    ),
    "capabilities": pod(
        "capabilities", {"securityContext": {"capabilities": {"add": ["NET_ADMIN", "CHOWN", "BPF"]}}}
    ),
    "path": pod("path", volumes=[{"name": "v", "hostPath": {"path": "/"}}]),
    "ports": pod(
        "ports", {"ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 81}]}
    ),
    "seccomp": pod("seccomp", {"securityContext": {"seccompProfile": {"type": "Unconfined"}}}),
    "selinux": pod("selinux", securityContext={"seLinuxOptions": {"type": "spc_t", "user": "u"}}),
    "sysctls": pod("sysctls", securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
    "armor": pod("armor", {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}),
    "probe": pod("probe", {"livenessProbe": {"tcpSocket": {"port": 1, "host": "example.com"}}}),
    "many": pod("many", {"securityContext": {"privileged": True}}, hostNetwork=True),
}
RESERVED = {"name": "net.ipv4.ip_local_reserved_ports", "value": "1"}
STRICT: dict[str, dict[str, Any]] = {
    "plain": pod("plain"),
    "two": pod("two", {}, {}),
    "escalation": secured("escalation", allowPrivilegeEscalation=True),
    "adding": secured("adding", capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE", "CHOWN"]}),
    "root": secured("root", runAsNonRoot=False),
    "user": secured("user", runAsUser=0),
    "volume": {
        **secured("volume"),
        "spec": {
            **secured("volume")["spec"],
            "volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}}],
        },
    },
    "unconfined": secured("unconfined", seccompProfile={"type": "Unconfined"}),
    "host": pod("host", hostNetwork=True),
}
OLD: dict[str, tuple[str, dict[str, Any]]] = {
    "caps": ("restricted:v1.21", pod("caps")),
    "user": ("restricted:v1.22", secured("user", runAsUser=0)),
    "user-new": ("restricted:v1.23", secured("user", runAsUser=0)),
    "ancient": ("restricted:v1.7", pod("ancient", {"securityContext": {"capabilities": {"add": ["BPF"]}}})),
    "sysctl": ("baseline:v1.26", pod("sysctl", securityContext={"sysctls": [RESERVED]})),
    "sysctl-new": ("baseline:v1.27", pod("sysctl", securityContext={"sysctls": [RESERVED]})),
    "probe": ("baseline:v1.33", BAD["probe"]),
    "engine": (
        "baseline:v1.30",
        pod("engine", securityContext={"seLinuxOptions": {"type": "container_engine_t"}}),
    ),
    "windows": (
        "restricted:v1.24",
        pod("windows", os={"name": "windows"}, securityContext={"runAsNonRoot": True}),
    ),
    "windows-new": (
        "restricted:v1.25",
        pod("windows", os={"name": "windows"}, securityContext={"runAsNonRoot": True}),
    ),
    "users": ("restricted:v1.34", pod("users", hostUsers=False)),
    "users-new": ("restricted:latest", pod("users", hostUsers=False)),
    "future": ("baseline:v1.99", BAD["probe"]),
}
LIMITS = {
    "metadata": {"name": "limits"},
    "spec": {
        "limits": [
            {
                "type": "Container",
                "default": {"cpu": "500m", "memory": "64Mi"},
                "defaultRequest": {"cpu": "100m"},
                "min": {"cpu": "50m"},
                "max": {"cpu": "1"},
                "maxLimitRequestRatio": {"memory": "2"},
            },
            {"type": "Pod", "max": {"cpu": "1500m"}},
            {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "5Gi"}},
        ]
    },
}


def sized(name: str, **resources: Any) -> dict[str, Any]:
    return pod(name, {"resources": {"requests": {"memory": "64Mi"}, **resources}})


def claim(name: str, size: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": name}, "spec": spec}


QUOTA = {
    "metadata": {"name": "quota"},
    "spec": {"hard": {"pods": "2", "requests.cpu": "1", "configmaps": "2", "count/deployments.apps": "1"}},
}
USED = {
    "status": {
        "hard": QUOTA["spec"]["hard"],
        "used": {"pods": "0", "requests.cpu": "0", "configmaps": "1", "count/deployments.apps": "0"},
    }
}


def asking(name: str, cpu: str) -> dict[str, Any]:
    return pod(name, {"resources": {"requests": {"cpu": cpu}}})


def deployment(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }


QUOTAS = f"/api/v1/namespaces/{NAMESPACE}-quota/resourcequotas/quota"

STEPS = [
    space("baseline", labels=labels("baseline")),
    space("strict", labels=labels("restricted")),
    space("warned", labels=labels("privileged", warn="restricted", audit="baseline", warn_version="v1.30")),
    space("limits"),
    space("quota"),
    space("later"),
    *(create(f"baseline-{name}", "baseline", body) for name, body in BAD.items()),
    create("baseline-fine", "baseline", pod("fine")),
    *(
        step
        for name, (level, body) in OLD.items()
        for step in (
            space(f"old-{name}", labels=labels(level.split(":")[0], enforce_version=level.split(":")[1])),
            create(f"old-{name}", f"old-{name}", body),
        )
    ),
    *(create(f"strict-{name}", "strict", body) for name, body in STRICT.items()),
    create("strict-fine", "strict", secured("fine")),
    create("strict-generated", "strict", {**pod("x"), "metadata": {"generateName": "gen-"}}),
    create("strict-deployment", "strict", deployment("d"), "deployments"),
    create("warned-pod", "warned", pod("warned")),
    create("warned-deployment", "warned", deployment("d"), "deployments"),
    Step(
        "bad-level",
        "POST",
        "/api/v1/namespaces",
        {"metadata": {"name": "admission-bad", "labels": labels("strict")}},
    ),
    Step(
        "bad-version",
        "POST",
        "/api/v1/namespaces",
        {"metadata": {"name": "admission-bad", "labels": labels("baseline", enforce_version="1.2")}},
    ),
    create("later-pod", "later", pod("plain")),
    create("later-pod-two", "later", pod("plain-two")),
    # The real server looks at the Pods it has learned of, which it does in its own time.
    Step(
        "later-pods-known",
        "PATCH",
        "/api/v1/namespaces/admission-later?dryRun=All",
        {"metadata": {"labels": labels("restricted")}},
        MERGE,
        warned="(and 1 other pod)",
        compared=False,
    ),
    Step(
        "later-enforced",
        "PATCH",
        "/api/v1/namespaces/admission-later",
        {"metadata": {"labels": labels("restricted")}},
        MERGE,
    ),
    Step("limit-range", "POST", f"/api/v1/namespaces/{NAMESPACE}-limits/limitranges", LIMITS, compared=False),
    Step(
        "limits-active",
        "POST",
        f"/api/v1/namespaces/{NAMESPACE}-limits/pods?dryRun=All",
        sized("active"),
        until=lambda status, body: "annotations" in body.get("metadata", {}),
        compared=False,
    ),
    create("limits-defaults", "limits", sized("defaults")),
    create(
        "limits-two",
        "limits",
        pod(
            "two",
            {"resources": {"requests": {"memory": "64Mi"}}},
            {"resources": {"limits": {"cpu": "200m"}, "requests": {"memory": "64Mi"}}},
        ),
    ),
    create("limits-low", "limits", sized("low", requests={"cpu": "10m", "memory": "64Mi"})),
    create("limits-high", "limits", sized("high", limits={"cpu": "2", "memory": "64Mi"})),
    create("limits-ratio", "limits", sized("ratio", requests={"memory": "16Mi"}, limits={"memory": "64Mi"})),
    create(
        "limits-pod",
        "limits",
        pod("sum", *({"resources": {"requests": {"memory": "64Mi"}, "limits": {"cpu": "1"}}},) * 2),
    ),
    create("limits-claim", "limits", claim("small", "1Mi"), "persistentvolumeclaims"),
    create("limits-claim-big", "limits", claim("big", "10Gi"), "persistentvolumeclaims"),
    create("limits-claim-fine", "limits", claim("fine", "2Gi"), "persistentvolumeclaims"),
    Step("quota", "POST", f"/api/v1/namespaces/{NAMESPACE}-quota/resourcequotas", QUOTA, compared=False),
    Step("quota-status", "PATCH", f"{QUOTAS}/status", USED, MERGE, compared=False),
    Step(
        "quota-active",
        "POST",
        f"/api/v1/namespaces/{NAMESPACE}-quota/pods?dryRun=All",
        pod("active"),
        until=lambda status, body: status == 403,
        compared=False,
    ),
    create("quota-unspecified", "quota", pod("unspecified", {}, {})),
    create("quota-first", "quota", asking("first", "600m")),
    create("quota-exceeded", "quota", asking("second", "600m")),
    create("quota-second", "quota", asking("second", "100m")),
    create("quota-third", "quota", asking("third", "100m")),
    create("quota-config", "quota", {"metadata": {"name": "one"}}, "configmaps"),
    create("quota-config-exceeded", "quota", {"metadata": {"name": "two"}}, "configmaps"),
    create("quota-deployment", "quota", deployment("one"), "deployments"),
    create("quota-deployment-exceeded", "quota", deployment("two"), "deployments"),
    create("quota-secret", "quota", {"metadata": {"name": "free"}}, "secrets"),
    Step("quota-used", "GET", QUOTAS),
    Step(
        "runtime-missing",
        "POST",
        f"/api/v1/namespaces/{NAMESPACE}-later/pods",
        pod("runtime", runtimeClassName="none"),
    ),
    Step("node", "POST", "/api/v1/nodes", {"metadata": {"name": "admission-node"}}),
    Step("end-node", "DELETE", "/api/v1/nodes/admission-node", compared=False),
]
