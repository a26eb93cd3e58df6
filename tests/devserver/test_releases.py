"""Servers of earlier Kubernetes releases."""

import hashlib
from typing import Any

import pytest
from devserver_http import Http

from kubewright.devserver import KubernetesRelease, Server, UnknownReleaseError

RELEASES = KubernetesRelease.known()
PODS = "/api/v1/namespaces/default/pods"


def pod(**fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a"}], **fields}}


def api_server(version: str = "") -> Server:
    """Return a server that accepts Pods without controllers."""
    return Server(kubernetes=version, disable_admission_plugins=("ServiceAccount",))


@pytest.mark.parametrize("version", RELEASES)
async def test_a_server_shows_the_release_that_it_serves(version: str) -> None:
    async with Server(kubernetes=version) as server, Http(server) as http:
        shown = await http.get("/version")
        assert shown["gitVersion"] == f"v{server.kubernetes}+kubewright"
        assert f"1.{shown['minor']}" == version
        assert ("emulationMinor" in shown) == (int(shown["minor"]) >= 33)


@pytest.mark.parametrize("version", RELEASES)
async def test_openapi_documents_of_each_release_have_the_hashes_of_the_index(version: str) -> None:
    async with Server(kubernetes=version) as server, Http(server) as http:
        for path, entry in (await http.get("/openapi/v3"))["paths"].items():
            reply = await http.request("GET", entry["serverRelativeURL"])
            assert reply.status == 200, path
            digest = hashlib.sha256(reply.body).hexdigest().upper()
            assert entry["serverRelativeURL"].endswith(f"?hash={digest}"), path
            assert reply.json()["info"]["version"] in ("unversioned", f"v{server.kubernetes}")
        swagger = await http.get("/openapi/v2")
        assert swagger["info"]["version"] == f"v{server.kubernetes}"


async def test_kinds_are_absent_before_the_release_that_serves_them() -> None:
    served = {
        "/apis/flowcontrol.apiserver.k8s.io/v1beta3/flowschemas": range(31, 32),
        "/apis/networking.k8s.io/v1/servicecidrs": range(33, 38),
        "/apis/resource.k8s.io/v1/deviceclasses": range(34, 38),
        "/apis/storage.k8s.io/v1/volumeattributesclasses": range(34, 38),
        "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies": range(36, 38),
    }
    for version in RELEASES:
        async with Server(kubernetes=version) as server, Http(server) as http:
            minor = int(version.split(".")[1])
            for path, minors in served.items():
                reply = await http.request("GET", path)
                assert (reply.status == 200) == (minor in minors), (version, path)


async def test_flow_schemas_of_a_beta_version_are_those_of_the_stable_version() -> None:
    async with Server(kubernetes="1.31") as server, Http(server) as http:
        group = "/apis/flowcontrol.apiserver.k8s.io"
        beta = await http.get(f"{group}/v1beta3/flowschemas/exempt")
        stable = await http.get(f"{group}/v1/flowschemas/exempt")
        assert beta.pop("apiVersion") == "flowcontrol.apiserver.k8s.io/v1beta3"
        assert stable.pop("apiVersion") == "flowcontrol.apiserver.k8s.io/v1"
        assert beta == stable


async def test_subresources_are_absent_while_their_feature_gate_is_off() -> None:
    for version, present in (("1.31", False), ("1.32", False), ("1.33", True)):
        async with Server(kubernetes=version) as server, Http(server) as http:
            names = [item["name"] for item in (await http.get("/api/v1"))["resources"]]
            assert ("pods/resize" in names) == present, version


async def test_a_field_of_a_later_release_is_unknown() -> None:
    body = pod(hostnameOverride="other")
    async with api_server("1.33") as server, Http(server) as http:
        reply = await http.request("POST", f"{PODS}?dryRun=All&fieldValidation=Strict", body)
        assert reply.status == 400
        assert 'unknown field "spec.hostnameOverride"' in reply.json()["message"]
        reply = await http.request("POST", f"{PODS}?dryRun=All&fieldValidation=Warn", body)
        assert reply.status == 201
        assert 'unknown field "spec.hostnameOverride"' in reply.headers["warning"].replace("\\", "")
        assert "hostnameOverride" not in reply.json()["spec"]
    async with api_server() as server, Http(server) as http:
        reply = await http.request("POST", f"{PODS}?dryRun=All&fieldValidation=Strict", body)
        assert reply.json()["spec"]["hostnameOverride"] == "other"


async def test_roles_are_those_of_the_release() -> None:
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    found: dict[str, set[str]] = {}
    for version in RELEASES:
        async with Server(kubernetes=version) as server, Http(server) as http:
            found[version] = {item["metadata"]["name"] for item in (await http.get(roles))["items"]}
    assert "system:controller:service-cidrs-controller" not in found["1.32"]
    assert "system:controller:service-cidrs-controller" in found["1.33"]
    assert all("cluster-admin" in names for names in found.values())


async def test_flow_schemas_are_those_of_the_release() -> None:
    for version, present in (("1.33", True), ("1.34", False)):
        async with Server(kubernetes=version) as server, Http(server) as http:
            found = await http.get("/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas")
            names = {item["metadata"]["name"] for item in found["items"]}
            assert ({"endpoint-controller", "workload-leader-election"} <= names) == present, version
            assert "system-leader-election" in names


async def test_beta_versions_have_an_api_service_with_a_lower_priority() -> None:
    async with Server(kubernetes="1.31") as server, Http(server) as http:
        services = "/apis/apiregistration.k8s.io/v1/apiservices"
        found = {
            version: (await http.get(f"{services}/{version}.flowcontrol.apiserver.k8s.io"))["spec"]
            for version in ("v1", "v1beta3")
        }
        assert [found[version]["versionPriority"] for version in ("v1", "v1beta3")] == [21, 18]


async def test_users_of_certificates_have_its_fingerprint_from_the_release_that_shows_it() -> None:
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    for version, present in (("1.31", False), ("1.32", True)):
        async with Server(kubernetes=version) as server, Http(server) as http:
            user = (await http.create(path, {}))["status"]["userInfo"]
            assert ("extra" in user) == present, version


async def test_servers_of_several_releases_run_side_by_side() -> None:
    async with (
        Server(kubernetes="1.31") as old,
        Server() as new,
        Http(old) as old_http,
        Http(new) as new_http,
    ):
        path = "/apis/networking.k8s.io/v1/servicecidrs"
        assert (await old_http.request("GET", path)).status == 404
        assert (await new_http.request("GET", path)).status == 200


def test_a_release_is_found_by_its_minor_and_its_full_version() -> None:
    release = KubernetesRelease.find("1.33")
    assert release.minor == 33
    assert KubernetesRelease.find(release.version) is release
    assert KubernetesRelease.find(f"v{release.version}") is release
    assert KubernetesRelease.find().minor_version == RELEASES[-1]


@pytest.mark.parametrize("version", ["1.30", "1.99", "1.33.999", "latest"])
def test_an_unknown_release_is_refused_with_the_known_ones(version: str) -> None:
    with pytest.raises(UnknownReleaseError) as caught:
        KubernetesRelease.find(version)
    assert (
        str(caught.value) == f"unknown Kubernetes version {version!r}: known versions are "
        "1.31, 1.32, 1.33, 1.34, 1.35, 1.36, 1.37"
    )


def test_feature_gates_have_the_defaults_of_the_release() -> None:
    by_gate = {
        gate: [version for version in RELEASES if KubernetesRelease.find(version).enabled(gate)]
        for gate in ("InPlacePodVerticalScaling", "WatchList", "JobManagedBy", "CRDValidationRatcheting")
    }
    assert by_gate["InPlacePodVerticalScaling"] == ["1.33", "1.34", "1.35", "1.36", "1.37"]
    # Off again in one release.
    assert by_gate["WatchList"] == ["1.32", "1.34", "1.35", "1.36", "1.37"]
    assert by_gate["JobManagedBy"] == ["1.32", "1.33", "1.34", "1.35", "1.36", "1.37"]
    assert by_gate["CRDValidationRatcheting"] == list(RELEASES)
    with pytest.raises(KeyError):
        KubernetesRelease.find().enabled("NoSuchGate")


async def test_fields_are_dropped_while_their_feature_gate_is_off() -> None:
    deployment = {
        "metadata": {"name": "a"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": pod(hostUsers=False, hostnameOverride="other")["spec"],
            },
        },
    }
    path = "/apis/apps/v1/namespaces/default/deployments"
    for version, users, name in (("1.32", False, False), ("1.34", True, False), ("1.35", True, True)):
        async with api_server(version) as server, Http(server) as http:
            made = await http.create(path, deployment)
            template = made["spec"]["template"]["spec"]
            assert ("hostUsers" in template) == users, version
            assert ("hostnameOverride" in template) == name, version


async def test_pods_have_a_generation_from_the_release_that_counts_it() -> None:
    for version, counted in (("1.32", False), ("1.33", True)):
        async with api_server(version) as server, Http(server) as http:
            assert ("generation" in (await http.create(PODS, pod()))["metadata"]) == counted, version


async def test_endpoints_are_deprecated_from_the_release_that_says_so() -> None:
    for version, deprecated in (("1.32", False), ("1.33", True)):
        async with Server(kubernetes=version) as server, Http(server) as http:
            reply = await http.request("GET", "/api/v1/endpoints")
            assert ("warning" in reply.headers) == deprecated, version


async def test_a_beta_version_is_served_with_a_warning() -> None:
    async with Server(kubernetes="1.31") as server, Http(server) as http:
        reply = await http.request("GET", "/apis/flowcontrol.apiserver.k8s.io/v1beta3/flowschemas")
        assert "is deprecated in v1.29+, unavailable in v1.32+; use" in reply.headers["warning"]


SERVICES = "/api/v1/namespaces/default/services"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"


def container(**fields: Any) -> dict[str, Any]:
    return pod(containers=[{"name": "a", "image": "a", **fields}])


def service(name: str = "a", **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **fields}}


def autoscaler(least: int) -> dict[str, Any]:
    metric = {
        "type": "External",
        "external": {"metric": {"name": "m"}, "target": {"type": "Value", "value": "1"}},
    }
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
    spec = {"minReplicas": least, "maxReplicas": 3, "scaleTargetRef": target, "metrics": [metric]}
    return {"metadata": {"name": "a"}, "spec": spec}


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


QUOTAS = "/api/v1/namespaces/default/resourcequotas"
STATEFUL_SETS = "/apis/apps/v1/namespaces/default/statefulsets"
CRON_JOBS = "/apis/batch/v1/namespaces/default/cronjobs"


def cron_job(**rule: Any) -> dict[str, Any]:
    spec = {
        "podFailurePolicy": {"rules": [{"action": "Ignore", **rule}]},
        "template": {"spec": pod(restartPolicy="Never")["spec"]},
    }
    return {"metadata": {"name": "a"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": spec}}}


def definition(rule: str, **fields: Any) -> dict[str, Any]:
    item = fields or {"maxLength": 9}
    texts = {"type": "array", "maxItems": 3, "items": {"type": "string", **item}}
    spec = {"type": "object", "properties": {"names": texts}, "x-kubernetes-validations": [{"rule": rule}]}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "things", "kind": "Thing"}
    spec = {"group": "ex.io", "names": names, "scope": "Namespaced", "versions": [version]}
    return {"metadata": {"name": "things.ex.io"}, "spec": spec}


# What a release accepts since its feature gate is on: the path, the object, the last release that refuses it, and the
# first that accepts it.
RELAXED = {
    "environment": (PODS, container(env=[{"name": "1 a", "value": "b"}]), "1.31", "1.32"),
    "searches": (PODS, pod(dnsConfig={"searches": ["_a.b"]}), "1.32", "1.33"),
    "sleep": (PODS, container(lifecycle={"preStop": {"sleep": {"seconds": 0}}}), "1.32", "1.33"),
    "restart": (PODS, container(restartPolicy="Never"), "1.33", "1.34"),
    "name": (SERVICES, service("1a"), "1.35", "1.36"),
    "traffic": (SERVICES, service(trafficDistribution="PreferSameNode"), "1.33", "1.34"),
    "replicas": (AUTOSCALERS, autoscaler(0), "1.36", "1.37"),
    "format": (
        DEFINITIONS,
        definition("format.dns1123Label().validate('a').hasValue()"),
        "1.31",
        "1.32",
    ),
    "two variables": (DEFINITIONS, definition("self.names.all(i, name, name.size() > i)"), "1.32", "1.33"),
    "first": (DEFINITIONS, definition("self.names.first().hasValue()"), "1.32", "1.33"),
    "semver": (DEFINITIONS, definition("self.names.all(name, isSemver(name))"), "1.33", "1.34"),
    "claims": (
        QUOTAS,
        {"metadata": {"name": "a"}, "spec": {"hard": {}, "scopes": ["VolumeAttributesClass"]}},
        "1.32",
        "1.33",
    ),
    "conditions": (CRON_JOBS, cron_job(onPodConditions=[{"type": "a"}]), "1.33", "1.34"),
    "sort": (DEFINITIONS, definition("self.names.sort() == self.names"), "1.34", "1.35"),
}


@pytest.mark.parametrize("rule", RELAXED)
async def test_a_rule_is_relaxed_from_the_release_whose_gate_is_on(rule: str) -> None:
    path, body, last, first = RELAXED[rule]
    for version, status in ((last, 422), (first, 201)):
        async with api_server(version) as server, Http(server) as http:
            reply = await http.request("POST", path, body)
            assert reply.status == status, (version, reply)


POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (PODS, pod(hostAliases=[{"ip": "010.0.0.1"}])),
        (SERVICES, service(externalIPs=["::ffff:1.2.3.4"])),
        (
            POLICIES,
            {
                "metadata": {"name": "a"},
                "spec": {"podSelector": {}, "ingress": [{"from": [{"ipBlock": {"cidr": "10.1.2.3/8"}}]}]},
            },
        ),
    ],
)
async def test_older_forms_of_addresses_are_accepted_until_the_release_that_refuses_them(
    path: str, body: dict[str, Any]
) -> None:
    for version, status in (("1.31", 201), ("1.35", 201), ("1.36", 422)):
        async with api_server(version) as server, Http(server) as http:
            reply = await http.request("POST", path, body)
            assert reply.status == status, (version, reply)


async def test_older_forms_of_addresses_cause_warnings_from_the_release_that_has_them() -> None:
    body = pod(hostAliases=[{"ip": "010.0.0.1"}])
    for version, warned in (("1.32", False), ("1.33", True)):
        async with api_server(version) as server, Http(server) as http:
            reply = await http.request("POST", PODS, body)
            assert ("warning" in reply.headers) == warned, version


def stateful_set(**fields: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template, **fields}
    return {"metadata": {"name": "a"}, "spec": spec}


# Warnings: the path, the object, the last release without the warning, and the first with it.
WARNINGS = {
    "traffic": (SERVICES, service(trafficDistribution="PreferClose"), "1.34", "1.35"),
    "external": (SERVICES, service(externalIPs=["1.2.3.4"]), "1.35", "1.36"),
    "headless": (SERVICES, service(clusterIP="None", sessionAffinity="ClientIP"), "1.33", "1.34"),
    "sources": (PODS, pod(volumes=[{"name": "v", "projected": {"sources": [{}]}}]), "1.31", "1.32"),
    "account": (
        "/api/v1/namespaces/default/serviceaccounts",
        {"metadata": {"name": "a", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}},
        "1.31",
        "1.32",
    ),
    "format": (DEFINITIONS, definition("true", format="nope"), "1.33", "1.34"),
    "format of a number": (DEFINITIONS, definition("true", type="integer", format="int128"), "1.35", "1.36"),
    "revisions": (STATEFUL_SETS, stateful_set(revisionHistoryLimit=-1), "1.32", "1.33"),
    "driver": (
        "/apis/storage.k8s.io/v1/csidrivers",
        {"metadata": {"name": "a"}, "spec": {"tokenRequests": [{"audience": "a"}]}},
        "1.34",
        "1.35",
    ),
}


@pytest.mark.parametrize("rule", WARNINGS)
async def test_a_warning_is_given_from_the_release_that_has_it(rule: str) -> None:
    path, body, last, first = WARNINGS[rule]
    for version, warned in ((last, False), (first, True)):
        async with api_server(version) as server, Http(server) as http:
            reply = await http.request("POST", path, body)
            assert reply.status == 201, reply
            assert ("warning" in reply.headers) == warned, version


async def test_app_armor_profiles_are_annotations_too_until_the_release_that_stops_it() -> None:
    body = container(securityContext={"appArmorProfile": {"type": "Unconfined"}})
    for version, present in (("1.33", True), ("1.34", False)):
        async with api_server(version) as server, Http(server) as http:
            made = await http.create(PODS, body)
            assert ("annotations" in made["metadata"]) == present, version


async def test_volumes_with_images_are_dropped_while_their_feature_gate_is_off() -> None:
    body = container(volumeMounts=[{"name": "v", "mountPath": "/v"}])
    body["spec"]["volumes"] = [{"name": "v", "image": {"reference": "i"}}, {"name": "w"}]
    for version, names in (("1.34", ["w"]), ("1.35", ["v", "w"])):
        async with api_server(version) as server, Http(server) as http:
            made = await http.create(PODS, body)
            assert [volume["name"] for volume in made["spec"]["volumes"]] == names, version
            assert ("volumeMounts" in made["spec"]["containers"][0]) == ("v" in names), version


async def test_init_containers_may_restart_to_resize_until_the_release_that_refuses_it() -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    body = pod(initContainers=[{"name": "i", "image": "i", "resizePolicy": policy}])
    for version, status in (("1.33", 201), ("1.35", 201), ("1.36", 422)):
        async with api_server(version) as server, Http(server) as http:
            assert (await http.request("POST", PODS, body)).status == status, version


async def test_a_pod_is_bound_to_any_name_until_the_release_that_checks_it() -> None:
    for version, status in (("1.36", 201), ("1.37", 500)):
        async with api_server(version) as server, Http(server) as http:
            await http.create(PODS, pod())
            binding = {"metadata": {"name": "a"}, "target": {"name": "A B"}}
            assert (await http.request("POST", f"{PODS}/a/binding", binding)).status == status, version


async def test_the_resources_of_a_suspended_job_can_change_from_the_release_that_allows_it() -> None:
    spec = pod(restartPolicy="Never")["spec"]
    job = {"metadata": {"name": "a"}, "spec": {"suspend": True, "template": {"spec": spec}}}
    for version, status in (("1.35", 422), ("1.36", 200)):
        async with api_server(version) as server, Http(server) as http:
            made = await http.create(JOBS, job)
            made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
            reply = await http.request("PUT", f"{JOBS}/a", made)
            assert reply.status == status, (version, reply)


async def test_a_smaller_request_of_a_claim_is_refused_until_the_release_that_allows_it() -> None:
    for version, status in (("1.31", 422), ("1.32", 200)):
        async with api_server(version) as server, Http(server) as http:
            requests = {"requests": {"storage": "2Gi"}}
            spec = {"accessModes": ["ReadWriteOnce"], "resources": requests, "volumeName": "v"}
            made = await http.create(CLAIMS, {"metadata": {"name": "a"}, "spec": spec})
            made["status"] = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
            made = (await http.request("PUT", f"{CLAIMS}/a/status", made)).json()
            made["spec"]["resources"]["requests"]["storage"] = "1500Mi"
            reply = await http.request("PUT", f"{CLAIMS}/a", made)
            assert reply.status == status, (version, reply)


async def test_a_watch_sends_initial_events_only_if_the_release_supports_it() -> None:
    path = f"{PODS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=0"
    for version in ("1.31", "1.33"):
        async with Server(kubernetes=version) as server, Http(server) as http:
            reply = await http.request("GET", path)
            assert reply.status == 422
            assert "unless the WatchList feature gate is enabled" in reply.json()["message"]


async def test_lists_of_an_invalid_revision_fail_as_in_the_release() -> None:
    for version, status in (("1.32", 500), ("1.33", 400)):
        async with Server(kubernetes=version) as server, Http(server) as http:
            for limit in ("", "&limit=0", "&limit=-1"):
                reply = await http.request("GET", f"{PODS}?resourceVersion=-1{limit}")
                assert reply.status == status, (version, limit)
            assert (await http.request("GET", f"{PODS}?resourceVersion=-1&limit=1")).status == 400


async def test_the_pods_of_a_stateful_set_are_checked_from_the_release_that_does() -> None:
    def body(policy: str) -> dict[str, Any]:
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": policy}}
        return stateful_set(template=template)

    for version, status in (("1.33", 201), ("1.34", 422)):
        async with api_server(version) as server, Http(server) as http:
            assert (await http.request("POST", STATEFUL_SETS, body("Never"))).status == 422
            assert (await http.request("POST", STATEFUL_SETS, body("Always"))).status == status, version


async def test_later_pages_have_a_limit_until_the_release_that_lists_them_from_the_cache() -> None:
    path = "/api/v1/namespaces/default/configmaps"
    for version, count in (("1.33", 1), ("1.34", 2)):
        async with Server(kubernetes=version) as server, Http(server) as http:
            for name in ("a", "b", "c"):
                await http.create(path, {"metadata": {"name": name}})
            first = await http.get(f"{path}?limit=1")
            token = first["metadata"]["continue"]
            found = await http.get(f"{path}?limit=1&resourceVersion=0&continue={token}")
            assert len(found["items"]) == count, version


async def test_services_get_addresses_without_service_networks() -> None:
    async with Server(kubernetes="1.31") as server, Http(server) as http:
        made = await http.create(SERVICES, service())
        assert made["spec"]["clusterIP"].startswith("10.")
        reply = await http.request("DELETE", f"{SERVICES}/a")
        assert reply.status == 200


async def test_a_field_whose_gate_is_off_has_no_default() -> None:
    for version, present in (("1.36", False), ("1.37", True)):
        async with api_server(version) as server, Http(server) as http:
            made = await http.create(STATEFUL_SETS, stateful_set())
            text = str(made["metadata"]["managedFields"]) + str(made["spec"])
            assert ("maxUnavailable" in text) == present, version


async def test_reviews_have_an_empty_time_until_the_release_that_omits_it() -> None:
    review = {"spec": {"resourceAttributes": {"resource": "pods", "verb": "get"}}}
    for version, present in (("1.33", True), ("1.34", False)):
        async with Server(kubernetes=version) as server, Http(server) as http:
            made = await http.create("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
            assert made["status"]["allowed"] is True
            assert ("creationTimestamp" in made["metadata"]) == present, version


async def test_restart_policies_of_containers_are_dropped_in_the_release_whose_gate_is_off() -> None:
    for version, policies in (("1.34", [None, "Always"]), ("1.35", ["Never", "Always"])):
        async with api_server(version) as server, Http(server) as http:
            body = container(restartPolicy="Never")
            body["spec"]["initContainers"] = [{"name": "b", "image": "b", "restartPolicy": "Always"}]
            spec = (await http.create(PODS, body))["spec"]
            found = [*spec["containers"], *spec["initContainers"]]
            assert [item.get("restartPolicy") for item in found] == policies, version


async def test_pod_level_resources_have_the_defaults_of_the_release() -> None:
    """Until 1.36 they are set before admission, so the field manager owns them."""
    given = {"limits": {"cpu": "1", "hugepages-2Mi": "8Mi"}}
    for version, owned, limits in (
        ("1.36", True, {"hugepages-2Mi"}),
        ("1.37", False, {"hugepages-2Mi", "cpu"}),
    ):
        async with api_server(version) as server, Http(server) as http:
            body = container(resources=given)
            made = await http.create(
                PODS, {**body, "spec": {**body["spec"], "resources": {"requests": {"cpu": "1"}}}}
            )
            assert set(made["spec"]["resources"]["limits"]) == limits, version
            fields = made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:resources"]
            assert ("f:limits" in fields) == owned, version


async def test_a_new_pod_keeps_its_qos_class_until_the_release_that_computes_it_always() -> None:
    for version, shown in (("1.36", "Guaranteed"), ("1.37", "BestEffort")):
        async with api_server(version) as server, Http(server) as http:
            made = await http.create(PODS, {**pod(), "status": {"qosClass": "Guaranteed"}})
            assert made["status"]["qosClass"] == shown, version


async def test_an_update_that_changes_nothing_keeps_the_generation_of_a_driver() -> None:
    path = "/apis/storage.k8s.io/v1/csidrivers"
    for version in RELEASES:
        async with Server(kubernetes=version) as server, Http(server) as http:
            made = await http.create(path, {"metadata": {"name": "a"}, "spec": {}})
            revision = {"name": "a", "resourceVersion": made["metadata"]["resourceVersion"]}
            reply = await http.request("PUT", f"{path}/a", {"metadata": revision, "spec": {}})
            assert reply.json() == made, version


async def test_the_status_of_a_node_keeps_fields_whose_gate_is_off() -> None:
    path, features = "/api/v1/nodes", {"supplementalGroupsPolicy": True}
    async with Server(kubernetes="1.31") as server, Http(server) as http:
        body = {"metadata": {"name": "a"}, "status": {"features": features}}
        assert "features" not in (await http.create(path, body))["status"]
        patch = {"Content-Type": "application/merge-patch+json"}
        reply = await http.request("PATCH", f"{path}/a/status", {"status": {"features": features}}, patch)
        assert reply.json()["status"]["features"] == features


async def test_the_target_of_an_autoscaler_needs_a_group_from_the_release_that_checks_it() -> None:
    for version, status in (("1.33", 201), ("1.34", 422)):
        async with api_server(version) as server, Http(server) as http:
            body = autoscaler(1)
            del body["spec"]["scaleTargetRef"]["apiVersion"]
            assert (await http.request("POST", AUTOSCALERS, body)).status == status, version


@pytest.mark.parametrize(
    ("fields", "warned"),
    [
        ({"loadBalancerIP": "yesterday"}, True),
        ({"loadBalancerIP": "010.0.0.1"}, True),
        ({"loadBalancerIP": "2001:DB8::1"}, True),
        ({"loadBalancerIP": "::ffff:1.2.3.4"}, False),
        ({"loadBalancerIP": "1.2.3.4"}, False),
        ({"loadBalancerSourceRanges": ["10.0.0.1/08"]}, True),
        ({"loadBalancerSourceRanges": ["10.0.0.1/8"]}, False),
    ],
)
async def test_addresses_of_services_cause_the_warnings_of_the_release(
    fields: dict[str, Any], warned: bool
) -> None:
    async with api_server("1.32") as server, Http(server) as http:
        reply = await http.request("POST", SERVICES, service(type="LoadBalancer", **fields))
        assert reply.status == 201, reply
        assert ("warning" in reply.headers) == warned


async def test_a_service_loses_its_traffic_policy_with_its_external_addresses() -> None:
    for version in ("1.31", "1.37"):
        async with api_server(version) as server, Http(server) as http:
            made = await http.create(SERVICES, service(externalIPs=["1.2.3.4"]))
            assert made["spec"].pop("externalTrafficPolicy") == "Cluster"
            patch = {"Content-Type": "application/merge-patch+json"}
            reply = await http.request("PATCH", f"{SERVICES}/a", {"spec": {"externalIPs": None}}, patch)
            del made["spec"]["externalIPs"]
            assert reply.json().get("spec") == made["spec"], version


async def test_objects_that_cannot_be_converted_can_be_deleted_from_the_release_whose_gate_is_on() -> None:
    """Until then, reads of such objects have no reason either."""
    body = definition("true")
    version = body["spec"]["versions"][0]
    body["spec"]["versions"] = [version, {**version, "name": "v2", "storage": False}]
    client = {"url": "https://127.0.0.1:1/"}
    hook = {"conversionReviewVersions": ["v1"], "clientConfig": client}
    body["spec"]["conversion"] = {"strategy": "Webhook", "webhook": hook}
    things = "/apis/ex.io/{}/namespaces/default/things"
    unsafe = "ignoreStoreReadErrorWithClusterBreakingPotential=true"
    for release, reason, listed, deleted in (
        ("1.36", "", "", 500),
        ("1.37", "InternalError", "StorageReadError", 200),
    ):
        async with Server(kubernetes=release) as server, Http(server) as http:
            await http.create(DEFINITIONS, body)
            await http.create(
                things.format("v1"), {"apiVersion": "ex.io/v1", "kind": "Thing", "metadata": {"name": "a"}}
            )
            path = things.format("v2")
            shown = (await http.request("GET", f"{path}/a")).json()
            assert (shown["code"], shown.get("reason", "")) == (500, reason), release
            shown = (await http.request("GET", path)).json()
            assert (shown["code"], shown.get("reason", "")) == (500, listed), release
            reply = await http.request("DELETE", f"{path}/a?{unsafe}")
            assert reply.status == deleted, release


@pytest.mark.parametrize("version", RELEASES)
async def test_ephemeral_containers_cannot_have_ports_in_any_release(version: str) -> None:
    async with api_server(version) as server, Http(server) as http:
        containers = [{"name": "e", "image": "a", "ports": []}]
        reply = await http.request("POST", PODS, pod(ephemeralContainers=containers))
        assert reply.status == 422
        found = [cause["field"] for cause in reply.json()["details"]["causes"]]
        assert "spec.ephemeralContainers[0].ports" in found
