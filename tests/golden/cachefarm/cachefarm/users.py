"""Handlers of CacheUser: an account in the cluster's administration, and a Secret with its password."""

import base64
import logging
import secrets

import kubernetes
import requests

from cachefarm import constants
from cachefarm.constants import GROUP
from cachefarm.templates import endpoint_of
import kubewright as kw
from cachefarm.support import AdmissionError, adopt, label

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
            raise kw.RetryLater(f"the administration answers {answer.status_code}", after=15)
        if answer.status_code >= 400:
            raise kw.TerminalError(f"the administration refuses {name}: {answer.text}")

    def delete(self, name):
        """Delete the account, if it is there."""
        answer = requests.delete(f"{self.address}/accounts/{name}", timeout=TIMEOUT)
        if answer.status_code not in (200, 204, 404):
            raise kw.RetryLater("the administration does not delete", after=60)


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
    adopt(secret, owner, reference=True)
    label(secret, labels={constants.MANAGED_BY: constants.OPERATOR})
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


# kopf: create (users.py:83)
def create_account(body, spec, name, namespace, retry, logger, **_):
    """Create the account and the Secret, once."""
    # TODO(kopf-14): retries are not counted: return, or raise kw.RetryLater, by the state
    # TODO(kopf-15): kopf called it for create only; make it safe to repeat: `secrets.token_urlsafe` (users.py:91), `Admin().create` (users.py:92), `core.create_namespaced_secret` (users.py:94)
    raise NotImplementedError("create_account: decide kopf-14, kopf-15 of MIGRATION.md")
    custom = kubernetes.client.CustomObjectsApi()
    if not cluster_ready(custom, spec["cluster"], namespace):
        raise kw.RetryLater(f"cluster {spec['cluster']} is not ready", after=10)
    if retry > 5:
        logger.warning("still creating %s", name)
    password = secrets.token_urlsafe(24)
    Admin().create(name, password, spec.get("rules", []))
    core = kubernetes.client.CoreV1Api()
    core.create_namespaced_secret(namespace, secret_for(body, name, spec["cluster"], namespace, password))
    return {"account": name}


# kopf: update, create, resume (users.py:98)
def describe_user(spec, patch, **_):
    """Summarize the rules in the status."""
    rules = spec.get("rules") or []
    patch.status["rules"] = len(rules)
    patch.status["summary"] = ", ".join(rules) or "no rules"


# kopf: update (users.py:108)
def replace_rules(spec, name, old, new, **_):
    """The administration has no update: delete and create."""
    # TODO(kopf-16): the reconciler gets the current state, not the change
    # TODO(kopf-17): the reconciler gets the current state, not the change
    # TODO(kopf-18): kopf called it for update only; make it safe to repeat: `admin.delete` (users.py:114), `admin.create` (users.py:115), `secrets.token_urlsafe` (users.py:115)
    raise NotImplementedError("replace_rules: decide kopf-16, kopf-17, kopf-18 of MIGRATION.md")
    if old["spec"].get("rules") == new["spec"].get("rules"):
        return
    admin = Admin()
    admin.delete(name)
    admin.create(name, secrets.token_urlsafe(24), spec.get("rules", []))


# kopf: delete (users.py:118)
def delete_account(name, spec, logger, **_):
    """Delete the account; the Secret goes with its owner."""
    if spec.get("retain"):
        logger.info("account %s is retained", name)
        return
    Admin().delete(name)


# kopf: validate (users.py:127)
async def validate_rules(spec, **_):
    """Rules are written as command and pattern."""
    for rule in spec.get("rules") or []:
        if " " not in rule:
            raise AdmissionError(f"spec.rules: {rule!r} has no pattern")


# kopf: probe (users.py:135)
def administration(**_):
    """Report whether the administration answers."""
    # TODO(kopf-19): probes of your own have no counterpart
    raise NotImplementedError("administration: decide kopf-19 of MIGRATION.md")
    return requests.get(f"{ADMIN}/health", timeout=TIMEOUT).status_code
