"""Handlers of CacheUser: an account in the cluster's administration, and a Secret with its password."""

import base64
import logging
import secrets

import kopf
import kubernetes
import requests

import constants
from constants import GROUP, USERS
from templates import endpoint_of

log = logging.getLogger(__name__)
ADMIN = "http://cache-admin.cachefarm.svc:8080"
TIMEOUT = 5


class Admin:
    """The HTTP interface of the administration."""

    def __init__(self, address=ADMIN):
        self.address = address

    def find(self, name):
        """Return the account, or None."""
        answer = requests.get(f"{self.address}/accounts/{name}", timeout=TIMEOUT)
        if answer.status_code == 404:
            return None
        answer.raise_for_status()
        return answer.json()

    def create(self, name, password, rules):
        """Create the account."""
        account = {"name": name, "password": password, "rules": rules}
        answer = requests.post(f"{self.address}/accounts", json=account, timeout=TIMEOUT)
        if answer.status_code >= 500:
            raise kopf.TemporaryError(f"the administration answers {answer.status_code}", delay=15)
        if answer.status_code >= 400:
            raise kopf.PermanentError(f"the administration refuses {name}: {answer.text}")

    def delete(self, name):
        """Delete the account, if it is there."""
        answer = requests.delete(f"{self.address}/accounts/{name}", timeout=TIMEOUT)
        if answer.status_code not in (200, 204, 404):
            raise kopf.TemporaryError("the administration does not delete")


def encoded(text):
    """Return a text as the data of a Secret has it."""
    return base64.b64encode(text.encode()).decode()


def secret_for(owner, name, cluster, namespace, password):
    """Return the Secret of a user, owned by the user."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{name}-login"},
        "data": {
            "user": encoded(name),
            "password": encoded(password),
            "address": encoded(endpoint_of(cluster, namespace)),
        },
    }
    kopf.adopt(secret, owner=owner)
    kopf.label(secret, labels={constants.MANAGED_BY: constants.OPERATOR})
    return secret


def cluster_ready(api, name, namespace):
    """Return True if the cluster of a user runs."""
    try:
        cluster = api.get_namespaced_custom_object(GROUP, "v1", namespace, constants.CLUSTERS, name)
    except kubernetes.client.exceptions.ApiException as error:
        if error.status == 404:
            return False
        raise
    return cluster.get("status", {}).get("phase") in ("Created", "Running")


@kopf.on.create(GROUP, USERS, retries=10)
def create_account(body, spec, name, namespace, retry, logger, **_):
    """Create the account and the Secret, once."""
    custom = kubernetes.client.CustomObjectsApi()
    if not cluster_ready(custom, spec["cluster"], namespace):
        raise kopf.TemporaryError(f"cluster {spec['cluster']} is not ready", delay=10)
    if retry > 5:
        logger.warning("still creating %s", name)
    password = secrets.token_urlsafe(24)
    Admin().create(name, password, spec.get("rules", []))
    core = kubernetes.client.CoreV1Api()
    core.create_namespaced_secret(namespace, secret_for(body, name, spec["cluster"], namespace, password))
    return {"account": name}


@kopf.on.resume(GROUP, USERS)
@kopf.on.create(GROUP, USERS)
@kopf.on.update(GROUP, USERS)
def describe_user(spec, patch, **_):
    """Summarize the rules in the status."""
    rules = spec.get("rules") or []
    patch.status["rules"] = len(rules)
    patch.status["summary"] = ", ".join(rules) or "no rules"


@kopf.on.update(GROUP, USERS)
def replace_rules(spec, name, old, new, **_):
    """The administration has no update: delete and create."""
    if old["spec"].get("rules") == new["spec"].get("rules"):
        return
    admin = Admin()
    admin.delete(name)
    admin.create(name, secrets.token_urlsafe(24), spec.get("rules", []))


@kopf.on.delete(GROUP, USERS)
def delete_account(name, spec, logger, **_):
    """Delete the account; the Secret goes with its owner."""
    if spec.get("retain"):
        logger.info("account %s is retained", name)
        return
    Admin().delete(name)


@kopf.on.validate("cacheusers.cache.example.com", operation="CREATE")
async def validate_rules(spec, **_):
    """Rules are written as command and pattern."""
    for rule in spec.get("rules") or []:
        if " " not in rule:
            raise kopf.AdmissionError(f"spec.rules: {rule!r} has no pattern")


@kopf.on.probe(id="administration")
def administration(**_):
    """Report whether the administration answers."""
    return requests.get(f"{ADMIN}/health", timeout=TIMEOUT).status_code


if __name__ == "__main__":
    kopf.run()
