"""Pods that are wrong in one place, by what is wrong with them."""

from typing import Any

from conformance_objects import SELECTOR

C = "spec__containers__0__"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
EMPTY = {"name": "v", "emptyDir": {}}


def volume(source: Any) -> dict[str, Any]:
    return {"spec__volumes": [{"name": "v", **source}]}


def affinity(part: str, **terms: Any) -> dict[str, Any]:
    return {"spec__affinity": {part: terms}}


PODS: dict[str, dict[str, Any]] = {
    "node-term-empty": affinity("nodeAffinity", **{REQUIRED: {"nodeSelectorTerms": []}}),
    "node-term-operators": affinity(
        "nodeAffinity",
        **{
            REQUIRED: {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "a", "operator": "In"}, {"key": "b", "operator": "Gt"}]},
                    {
                        "matchExpressions": [
                            {"key": "c d", "operator": "Exists", "values": ["x"]},
                            {"key": "e", "operator": "Near", "values": ["bad value!"]},
                        ]
                    },
                    {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "B_"]}]},
                    {"matchFields": [{"key": "spec.x", "operator": "Exists"}]},
                ]
            }
        },
    ),
    "node-preference": affinity(
        "nodeAffinity",
        **{
            PREFERRED: [
                {"weight": 101, "preference": {}},
                {
                    "weight": 1,
                    "preference": {
                        "matchExpressions": [{"key": "a", "operator": "In", "values": ["bad value!"]}]
                    },
                },
            ]
        },
    ),
    "node-preference-warned": affinity(
        "nodeAffinity",
        **{
            PREFERRED: [
                {
                    "weight": 1,
                    "preference": {
                        "matchExpressions": [{"key": "a", "operator": "In", "values": ["bad value!"]}]
                    },
                }
            ]
        },
    ),
    "pod-term": affinity(
        "podAffinity",
        **{
            REQUIRED: [
                {"namespaces": ["Bad_"], "matchLabelKeys": ["a"]},
                {
                    "topologyKey": "a/b/c",
                    "labelSelector": {"matchLabels": {"k": "v"}, "matchExpressions": [{"key": "k"}]},
                    "matchLabelKeys": ["k", "m"],
                    "mismatchLabelKeys": ["m"],
                },
            ]
        },
    ),
    "pod-term-weight": affinity("podAntiAffinity", **{PREFERRED: [{"weight": 0, "podAffinityTerm": {}}]}),
    "pod-term-warned": affinity(
        "podAntiAffinity", **{PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": "host"}}]}
    ),
    "spread": {
        "spec__topologySpreadConstraints": [
            {
                "maxSkew": 0,
                "minDomains": 0,
                "whenUnsatisfiable": "ScheduleAnyway",
                "nodeAffinityPolicy": "Maybe",
                "matchLabelKeys": ["x"],
            },
            {"maxSkew": 1, "whenUnsatisfiable": "Never", "topologyKey": "zone"},
        ]
    },
    "spread-twice": {
        "spec__topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule",
                "topologyKey": "zone",
                "labelSelector": SELECTOR,
            }
        ]
        * 2
    },
    "tolerations": {
        "spec__tolerations": [
            {"key": "k", "operator": "Gt", "value": "1"},
            {"key": "k", "operator": "Near"},
            {"operator": "Exists", "value": "v", "effect": "Sometimes", "tolerationSeconds": 1},
        ]
    },
    "users": {
        "spec__securityContext": {
            "runAsUser": -1,
            "fsGroup": 2**31,
            "supplementalGroups": [1, -5],
            "fsGroupChangePolicy": "Often",
            "supplementalGroupsPolicy": "Lax",
            "seLinuxChangePolicy": "Other",
        }
    },
    "profiles": {
        "spec__securityContext": {
            "seccompProfile": {"type": "Localhost"},
            "appArmorProfile": {"type": "RuntimeDefault", "localhostProfile": "x"},
        },
        f"{C}securityContext": {
            "seccompProfile": {"type": "Unconfined", "localhostProfile": "../x"},
            "appArmorProfile": {"type": "Localhost", "localhostProfile": " x "},
            "procMount": "Unmasked",
        },
    },
    "profile-types": {
        "spec__securityContext": {"seccompProfile": {}, "appArmorProfile": {}},
        f"{C}securityContext": {
            "seccompProfile": {"type": "Nice"},
            "appArmorProfile": {"type": "Nice"},
            "procMount": "Nice",
        },
    },
    "privileged": {
        f"{C}securityContext": {
            "privileged": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["CAP_SYS_ADMIN"], "drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        }
    },
    "sysctls": {
        "spec__hostNetwork": True,
        "spec__hostIPC": True,
        "spec__securityContext": {
            "sysctls": [
                {"name": "", "value": "1"},
                {"name": "Bad!", "value": "1"},
                {"name": "net.a", "value": "1"},
                {"name": "net.a", "value": "1"},
                {"name": "kernel.shm_rmid_forced", "value": "1"},
            ]
        },
    },
    "host-users": {
        "spec__hostUsers": False,
        "spec__hostNetwork": True,
        "spec__hostPID": True,
        "spec__hostIPC": True,
    },
    "shared-processes": {"spec__hostPID": True, "spec__shareProcessNamespace": True},
    "os": {"spec__os": {"name": "plan9"}},
    "os-empty": {"spec__os": {"name": ""}},
    "windows": {
        "spec__os": {"name": "windows"},
        "spec__hostPID": True,
        "spec__securityContext": {"runAsUser": 1, "fsGroup": 1},
        f"{C}securityContext": {"privileged": False, "capabilities": {"drop": ["ALL"]}},
    },
    "linux": {"spec__os": {"name": "linux"}, "spec__securityContext": {"windowsOptions": {}}},
    "dns": {
        "spec__dnsConfig": {
            "nameservers": ["1.1.1.1", "2.2.2.2", "x", "3.3.3.3"],
            "searches": ["a_b.c", "bad domain", "."],
            "options": [{}],
        }
    },
    "host-aliases": {"spec__hostAliases": [{"ip": "x", "hostnames": ["Bad_"]}]},
    "address-warned": {"spec__hostAliases": [{"ip": "2001:DB8::1", "hostnames": ["a"]}]},
    "preemption": {"spec__preemptionPolicy": "Sometimes"},
    "mounts": {
        "spec__volumes": [EMPTY],
        f"{C}volumeMounts": [
            {"name": "v", "mountPath": "/a", "mountPropagation": "Bidirectional"},
            {"name": "v", "mountPath": "/b", "mountPropagation": "Sideways"},
            {"name": "v", "mountPath": "/c", "recursiveReadOnly": "Enabled"},
            {"name": "v", "mountPath": "/d", "recursiveReadOnly": "Deeply"},
        ],
    },
    "devices": {
        "spec__volumes": [EMPTY, {"name": "p", "persistentVolumeClaim": {"claimName": "p"}}],
        f"{C}volumeMounts": [{"name": "p", "mountPath": "/dev/a"}],
        f"{C}volumeDevices": [
            {"name": "v", "devicePath": "/dev/a"},
            {"name": "p", "devicePath": "/dev/../b"},
            {"name": "p", "devicePath": ""},
            {"name": "none", "devicePath": "/dev/c"},
            {"name": "", "devicePath": "/dev/c"},
        ],
    },
    "resize-policy": {
        "spec__restartPolicy": "Never",
        f"{C}resizePolicy": [
            {"resourceName": "cpu", "restartPolicy": "RestartContainer"},
            {"resourceName": "cpu", "restartPolicy": "NotRequired"},
            {"resourceName": "disk", "restartPolicy": "Maybe"},
        ],
    },
    "resources": {
        f"{C}resources": {
            "limits": {"UP/er": "1", "zzz": "1", "hugepages-2Mi": "2Mi"},
            "requests": {"ex.io/gpu": "1"},
        }
    },
    "pod-resources": {
        "spec__resources": {"limits": {"cpu": "1", "ex.io/gpu": "1"}, "requests": {"cpu": "2"}}
    },
    "env": {
        f"{C}env": [
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "Bad_", "key": "a b"}}},
            {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a/b/c']"}}},
            {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "spec.restartPolicy"}}},
            {"name": "D", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "5"}}},
            {"name": "E", "valueFrom": {"resourceFieldRef": {"resource": "limits.disk"}}},
        ],
        f"{C}envFrom": [{"configMapRef": {"name": "Bad_"}}],
    },
    "hooks": {
        f"{C}lifecycle": {"preStop": {"sleep": {"seconds": 31}}, "stopSignal": "SIGTERM"},
        f"{C}readinessProbe": {"httpGet": {"port": 1, "path": "/"}, "terminationGracePeriodSeconds": 0},
    },
    "container-restart-policy": {f"{C}restartPolicy": "Maybe"},
    "init-resize": {
        "spec__initContainers": [
            {
                "name": "i",
                "image": "i",
                "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}],
            }
        ]
    },
    "image-of-no-name": {f"{C}image": "Not/A:Name"},
    "image-with-digest": {f"{C}image": f"a@sha256:{'0' * 64}"},
    "image-of-a-host": {f"{C}image": "Registry:5000/a"},
    "token-of-nobody": volume({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}),
    "projected": volume(
        {
            "projected": {
                "defaultMode": 9999,
                "sources": [
                    {"serviceAccountToken": {"path": "../t", "expirationSeconds": 5}},
                    {"configMap": {"items": [{"key": "k", "path": "p"}]}},
                    {"secret": {"name": "s", "items": [{"key": "k", "path": "p"}]}},
                    {
                        "downwardAPI": {"items": [{"path": "..x"}]},
                        "secret": {"name": "s"},
                    },
                ],
            }
        }
    ),
    "downward": volume(
        {
            "downwardAPI": {
                "items": [
                    {"path": "a", "fieldRef": {"fieldPath": "spec.nodeName"}},
                    {"path": "b", "resourceFieldRef": {"resource": "limits.cpu"}},
                    {"path": "/c", "mode": 999},
                ]
            }
        }
    ),
    "ephemeral": volume({"ephemeral": {}}),
    "ephemeral-claim": volume({"ephemeral": {"volumeClaimTemplate": {"metadata": {"name": "n"}}}}),
    "host-path": volume({"hostPath": {"path": "/a/../b", "type": "Folder"}}),
    "nfs": volume({"nfs": {"server": "s", "path": "x"}}),
    "csi": volume({"csi": {"driver": "Bad_", "nodePublishSecretRef": {}}}),
    "image-volume": volume({"image": {"pullPolicy": "Sometimes"}}),
    "iscsi": volume({"iscsi": {"targetPortal": "p", "iqn": "x", "lun": 256, "chapAuthSession": True}}),
    "fibre-channel": volume({"fc": {"targetWWNs": ["a"], "wwids": ["b"]}}),
    "empty-dir": volume({"emptyDir": {"sizeLimit": "-1"}}),
    "git": volume({"gitRepo": {"repository": "", "directory": "/a"}}),
}
