"""What becomes of each part of kopf, one small operator at a time."""

import pytest

from kubewright.documents import read_yaml
from kubewright.scaffold.from_kopf import Converted, KopfModule, convert

CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Lamp, plural: lamps, singular: lamp, shortNames: [lp]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {colour: {type: string}}}
          status: {type: object, properties: {on: {type: boolean}}}
"""
OPEN_CRD = CRD.replace(
    "        properties:\n", "        x-kubernetes-preserve-unknown-fields: true\n"
).partition("          spec:")[0]


IMPORTS = "import pathlib\nimport requests\nimport secrets\nimport subprocess\nimport lamp\nfrom switches import Lamp, switch\n"


def converted(text: str, crd: str = CRD) -> Converted:
    documents = [each.value for each in read_yaml(crd)]
    return convert(
        [KopfModule("lamps.py", "lamps", f"import kopf\n{text}")],
        documents,
        name="lights",
        kubewright="0.1.0",
    )


def handlers(text: str) -> str:
    """Return the module of the handlers."""
    return converted(text).files["lights/lamps.py"]


def controllers(text: str) -> str:
    """Return the module of the controllers."""
    return converted(text).files["lights/controllers.py"]


def migration(text: str) -> str:
    """Return MIGRATION.md."""
    return converted(text).files["MIGRATION.md"]


def handler(
    body: str, decorator: str = "@kopf.on.create('lamps')", parameters: str = "body, patch, **_"
) -> str:
    """Return a handler with a body."""
    return f"{decorator}\ndef lit({parameters}):\n    {body}\n"


@pytest.mark.parametrize(
    "kind",
    [
        "'lamps'",
        "'lamp'",
        "'Lamp'",
        "'lp'",
        "'lamps.example.com'",
        "'lamps.v1.example.com'",
        "'example.com', 'lamps'",
        "'example.com/v1', 'lamps'",
        "'example.com', 'v1', 'lamps'",
        "group='example.com', version='v1', plural='lamps'",
        "kind='Lamp'",
        "GROUP, VERSION, PLURAL",
        "f'{PLURAL}.{GROUP}'",
    ],
)
def test_finds_the_kind_by_each_way_to_name_it(kind: str) -> None:
    constants = "GROUP = 'example.com'\nVERSION = 'v1'\nPLURAL = 'lamps'\n"
    assert "@kw.controller(Lamp," in controllers(constants + handler("pass", f"@kopf.on.create({kind})"))


def test_takes_built_in_kinds_without_a_crd() -> None:
    text = controllers(
        handler("pass", "@kopf.on.event('', 'v1', 'pods', labels={'app': 'lamp', 'old': kopf.ABSENT})")
    )
    assert (
        '@kw.controller(core_v1.Pod, name="pod-events", selector=kw.Selector(labels="app=lamp,!old"))' in text
    )


def test_a_kind_without_fields_is_a_dictionary() -> None:
    files = converted(handler("patch.status['on'] = True"), OPEN_CRD).files
    assert "LAMP = kw.Kind(" in files["lights/kinds/untyped.py"]
    assert "async def lamps(lamp: dict[str, Any], ctx: kw.Context) -> None:" in files["lights/controllers.py"]


def test_the_order_of_handlers_is_kept() -> None:
    text = controllers(
        "@kopf.on.update('lamps')\ndef second(**_): ...\n@kopf.on.create('lamps')\ndef first(**_): ...\n"
    )
    assert text.index('handling.run("second"') < text.index('handling.run("first"')


def test_a_handler_of_several_reactions_is_called_once() -> None:
    decorators = "@kopf.on.create('lamps')\n@kopf.on.update('lamps')\n@kopf.on.resume('lamps')"
    assert controllers(handler("pass", decorators)).count("handling.run(") == 1


@pytest.mark.parametrize(
    ("raised", "becomes"),
    [
        ("kopf.TemporaryError('later', delay=5)", "kw.RetryLater('later', after=5)"),
        ("kopf.TemporaryError('later', 5)", "kw.RetryLater('later', after=5)"),
        ("kopf.TemporaryError('later')", "kw.RetryLater('later', after=60)"),
        ("kopf.PermanentError('no')", "kw.TerminalError('no')"),
    ],
)
def test_errors_become_those_of_kubewright(raised: str, becomes: str) -> None:
    assert f"raise {becomes}" in handlers(handler(f"raise {raised}"))


def test_a_child_that_is_adopted_and_created_is_applied() -> None:
    body = "child = {'metadata': {'name': 'x'}}\n    api = client.CoreV1Api()\n    kopf.adopt(child)\n    "
    body += "api.create_namespaced_config_map(namespace='default', body=child)  # the only one"
    text = "from kubernetes import client\n" + handler(body)
    done = converted(text)
    assert done.decisions == 0
    assert (
        "    adopt(child, body)\n    await ctx.apply(child)  # the only one\n"
        in done.files["lights/lamps.py"]
    )
    assert "async def lit(ctx: kw.Context, body, patch, **_):" in done.files["lights/lamps.py"]
    assert "client" not in done.files["lights/lamps.py"]
    assert "owns=[core_v1.ConfigMap]" in done.files["lights/controllers.py"]


def test_a_child_whose_answer_is_used_is_left_to_the_client() -> None:
    body = "child = {'metadata': {'name': 'x'}}\n    api = client.CoreV1Api()\n    kopf.adopt(child)\n    "
    body += "made = api.create_namespaced_config_map(namespace='default', body=child)\n    return made.metadata.uid"
    text = handlers("from kubernetes import client\n" + handler(body))
    assert "adopt(child, body, reference=True)" in text
    assert "raise NotImplementedError(" in text


def test_blocking_calls_beside_an_event_run_in_a_thread() -> None:
    body = "found = requests.get('http://lamp').json()\n    kopf.info(body, reason='Lit', message='it shines')\n    "
    body += "patch.status['on'] = found"
    text = handlers("import requests\n" + handler(body))
    assert "found = await ctx.run_sync((await ctx.run_sync(requests.get, 'http://lamp')).json)" in text
    assert "ctx.event('Lit', 'it shines')" in text


def test_events_have_their_type() -> None:
    text = handlers(handler("kopf.event(body, type='Warning', reason='Dark', message='out')"))
    assert "ctx.warn('Dark', 'out')" in text


@pytest.mark.parametrize("parameter", ["old", "diff", "retry", "memo", "reason", "started"])
def test_an_argument_without_counterpart_is_listed_as_a_decision(parameter: str) -> None:
    text = handlers(handler(f"print({parameter})", parameters=f"{parameter}, **_"))
    assert 'raise NotImplementedError("lit: decide kopf-1 of MIGRATION.md")\n    print(' in text
    assert f"| kopf-1 | `lamps.py:3` | `{parameter}` in `lit` |" in migration(
        handler(f"print({parameter})", parameters=f"{parameter}, **_")
    )


@pytest.mark.parametrize(
    "body",
    [
        "requests.post('http://lamp')",
        "Lamp().switch()",
        "patch.status['key'] = secrets.token_hex()",
        "open('x', 'w').close()",
        "pathlib.Path('x').write_text('lit')",
        "subprocess.Popen(['lamp'])",
        "lamp.get_or_create('x')",
        "switch()",
    ],
)
def test_effects_that_kopf_runs_once_are_listed_as_a_decision(body: str) -> None:
    text = f"{IMPORTS}{handler(body)}"
    assert "runs in each reconcile" in migration(text)
    every = "@kopf.on.create('lamps')\n@kopf.on.update('lamps')\n@kopf.on.resume('lamps')"
    assert converted(f"{IMPORTS}{handler(body, every)}").decisions == 0


def test_effects_of_called_functions_count() -> None:
    text = "import requests\ndef helper():\n    requests.post('http://lamp')\n" + handler("helper()")
    assert "runs in each reconcile" in migration(text)


def test_a_body_of_plain_data_may_be_repeated() -> None:
    body = (
        "names = sorted(body['spec'].get('names', []))\n    patch.status['names'] = ', '.join(names).upper()"
    )
    assert converted(handler(body)).decisions == 0


def test_a_status_set_by_two_handlers_is_listed_as_a_decision() -> None:
    text = handler("patch.status['phase'] = 'New'") + (
        "@kopf.timer('lamps', interval=10)\ndef check(patch, **_):\n    patch.status['phase'] = 'Lit'\n"
    )
    assert "`lit` sets status.phase in each reconcile" in migration(text)


def test_a_part_of_kopf_without_counterpart_raises_where_it_is_used() -> None:
    text = handlers(handler("kopf.execute(fns=[])"))
    assert "from lights.support import kopf" in text
    assert "raise NotImplementedError(" in text


def test_a_helper_that_needs_a_decision_raises_too() -> None:
    text = handlers("def helper(child):\n    kopf.adopt(child)\n" + handler("pass"))
    assert 'raise NotImplementedError("helper: decide kopf-1 of MIGRATION.md")\n    kopf.adopt(child)' in text


@pytest.mark.parametrize(
    ("filters", "condition"),
    [
        ("labels={'a': 'b'}", 'if handling.labels.get("a") == "b":'),
        ("labels={'a': kopf.PRESENT}", 'if "a" in handling.labels:'),
        ("annotations={'a': kopf.ABSENT}", 'if "a" not in handling.annotations:'),
        ("field='spec.colour'", 'if value_at(handling.body, "spec.colour") is not None:'),
        ("field='spec.colour', value='red'", 'if value_at(handling.body, "spec.colour") == "red":'),
        ("when=bright", "if bright(spec=handling.spec):"),
        ("when=lambda spec, **_: spec['colour']", "if lit_when(spec=handling.spec):"),
    ],
)
def test_filters_become_conditions(filters: str, condition: str) -> None:
    text = "def bright(spec, **_):\n    return True\n" + handler(
        "pass", f"@kopf.on.create('lamps', {filters})"
    )
    assert condition in controllers(text)


@pytest.mark.parametrize(
    "filters", ["field='spec.colour', old='red'", "labels={'a': check}", "when=kopf.all_([check])", "errors=kopf.ErrorsMode.PERMANENT"]
)  # fmt: skip
def test_filters_that_are_not_conditions_are_listed_as_decisions(filters: str) -> None:
    text = "def check(value, **_):\n    return True\n" + handler(
        "pass", f"@kopf.on.update('lamps', {filters})"
    )
    assert "raise NotImplementedError(" in handlers(text)


def test_a_timer_is_a_controller_that_returns_a_result() -> None:
    text = controllers("EVERY = 15\n" + handler("pass", "@kopf.timer('lamps', interval=EVERY)"))
    assert '@kw.controller(Lamp, name="lamp-lit", when=kw.predicates.on("create"))' in text
    assert "return kw.Result(after=timedelta(seconds=EVERY))" in text
    assert "from lights.lamps import EVERY, lit" in text


def test_a_daemon_raises_not_implemented_error() -> None:
    text = handler("pass", "@kopf.daemon('lamps')", "stopped, **_")
    assert "raise NotImplementedError(" in handlers(text)
    assert "async def lit_daemon(" in controllers(text)


def test_a_handler_of_delete_is_the_finalizer() -> None:
    text = controllers(handler("pass", "@kopf.on.delete('lamps')"))
    assert '@lamps.finalizer("example.com/lights")' in text


def test_a_patch_of_the_spec_is_declared() -> None:
    assert 'needs=[kw.needs(Lamp, "patch")]' in controllers(handler("patch.spec['colour'] = 'red'"))
    assert "needs=" not in controllers(handler("patch.status['on'] = True"))


def test_the_rights_of_client_calls_are_declared() -> None:
    text = "import kubernetes\n" + handler(
        "kubernetes.client.CoreV1Api().list_namespaced_pod('default')", "@kopf.timer('lamps', interval=9)"
    )
    assert 'CLIENT_CALLS = [\n    kw.needs(core_v1.Pod, "list"),\n]' in controllers(text)
    assert "kubernetes.config.load_config()" in controllers(text)
    assert "`kubernetes.client.CoreV1Api().list_namespaced_pod(...)`" in migration(text)


def test_startup_and_cleanup_are_the_lifespan() -> None:
    text = controllers(
        handler("pass")
        + "@kopf.on.startup()\nasync def open_(**_): ...\n@kopf.on.cleanup()\ndef close(**_): ...\n"
    )
    assert "    await open_()\n    yield\n    await asyncio.to_thread(close)\n" in text
    assert "lifespan=lifespan" in text


def test_comments_and_layout_of_bodies_stay() -> None:
    body = "x = {'a':1}   # as it was\n    patch.status['on']=bool( x )"
    assert f"    {body}\n" in handlers(handler(body))
