"""The files of webhooks for an existing kind."""

from kubewright.scaffold.kinds import Addition, Declared
from kubewright.scaffold.naming import module_name, variable_name
from kubewright.scaffold.texts import fill


def admission_files(package: str, name: str, what: str, declared: Declared) -> Addition:
    """Write a mutating (`defaulting`) or validating (`validation`) webhook with its test."""
    module = module_name(declared.kind)
    values = {
        "package": package,
        "name": name,
        "kind": declared.kind,
        "module": module,
        "class_module": declared.module.removeprefix(f"{package}."),
        "class_name": declared.class_name,
        "variable": variable_name(declared.kind),
        "about_scale": fill("about_scale.py", class_name=declared.class_name) if declared.scale else "",
    }
    files = {
        f"{package}/{module}_{what}.py": fill(f"{what}.py", **values),
        f"tests/test_{module}_{what}.py": fill(f"test_{what}.py", **values),
    }
    function = f"{'default' if what == 'defaulting' else 'validate'}_{module}"
    return Addition(files, f"{package}.{module}_{what}", webhooks=[function])


def conversion_files(package: str, hub: Declared, spoke: Declared) -> Addition:
    """Write the conversion between two versions, with a test that nothing is lost."""
    module = module_name(hub.kind)
    imports = sorted(f"from {each.module} import {each.class_name}" for each in (hub, spoke))
    values = {
        "package": package,
        "kind": hub.kind,
        "module": module,
        "variable": variable_name(hub.kind),
        "imports": "\n".join(imports),
        "hub": hub.class_name,
        "spoke": spoke.class_name,
    }
    files = {
        f"{package}/{module}_conversion.py": fill("conversion.py", **values),
        f"tests/test_{module}_conversion.py": fill("test_conversion.py", **values),
    }
    return Addition(files, f"{package}.{module}_conversion", webhooks=[f"{module}_versions"])
