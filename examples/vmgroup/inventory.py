"""Finding things in vCenter's inventory; every function reads and none changes."""

from typing import Any

from pyVmomi import vim as vim_types
from pyVmomi import vmodl as vmodl_types

from vmgroup.provider import Machine, ProviderError

vim: Any = vim_types
query: Any = vmodl_types.query

MARK = "vm-operator.template"
"""The setting in which a finished machine carries the template it was made from."""
FACTS = (
    "name",
    "runtime.powerState",
    "config.hardware.numCPU",
    "config.hardware.memoryMB",
    "config.extraConfig",
)


def datacenter_of(content: Any) -> Any:
    """Return the first datacenter."""
    for child in content.rootFolder.childEntity:
        if isinstance(child, vim.Datacenter):
            return child
    raise ProviderError("vCenter has no datacenter")


def pool_of(content: Any) -> Any:
    """Return the resources that machines run on: those of the first cluster or host."""
    for child in datacenter_of(content).hostFolder.childEntity:
        if isinstance(child, vim.ComputeResource):
            return child.resourcePool
    raise ProviderError("vCenter has no host")


def find_folder(content: Any, path: tuple[str, ...]) -> Any:
    """Find a folder below the datacenter's folder of machines."""
    found = datacenter_of(content).vmFolder
    for name in path:
        found = content.searchIndex.FindChild(found, name)
        if not isinstance(found, vim.Folder):
            return None
    return found


def find_machine(folder: Any, name: str) -> Any:
    """Find a machine of a folder."""
    for child in folder.childEntity:
        if isinstance(child, vim.VirtualMachine) and child.name == name:
            return child
    return None


def find_template(content: Any, name: str) -> Any:
    """Find a template by its name, wherever it is."""
    for machine, facts in _facts(content, datacenter_of(content).vmFolder, ("name", "config.template")):
        if facts.get("name") == name and facts.get("config.template"):
            return machine
    return None


def machines_in(content: Any, folder: Any) -> list[dict[str, Any]]:
    """Read the facts of a folder's machines."""
    return [facts for _, facts in _facts(content, folder, FACTS)]


def as_machine(facts: dict[str, Any]) -> Machine:
    """Make a machine of its facts; without the mark it is not finished."""
    options = {option.key: option.value for option in facts.get("config.extraConfig") or ()}
    return Machine(
        name=facts["name"],
        powered_on=facts.get("runtime.powerState") == vim.VirtualMachine.PowerState.poweredOn,
        cpu=facts.get("config.hardware.numCPU", 0),
        memory=facts.get("config.hardware.memoryMB", 0) // 1024,
        template=options.get(MARK, ""),
        complete=MARK in options,
    )


def _facts(content: Any, folder: Any, names: tuple[str, ...]) -> list[tuple[Any, dict[str, Any]]]:
    """Ask for some properties of all machines below a folder at once."""
    view = content.viewManager.CreateContainerView(folder, [vim.VirtualMachine], True)
    try:
        collector = query.PropertyCollector
        members = collector.TraversalSpec(type=vim.view.ContainerView, path="view", skip=False)
        wanted = collector.FilterSpec(
            objectSet=[collector.ObjectSpec(obj=view, skip=True, selectSet=[members])],
            propSet=[collector.PropertySpec(type=vim.VirtualMachine, pathSet=list(names))],
        )
        options = collector.RetrieveOptions()
        page = content.propertyCollector.RetrievePropertiesEx([wanted], options)
        found: list[Any] = []
        while page is not None:
            found += page.objects
            page = content.propertyCollector.ContinueRetrievePropertiesEx(page.token) if page.token else None
    finally:
        view.DestroyView()
    return [(item.obj, {fact.name: fact.val for fact in item.propSet}) for item in found]
