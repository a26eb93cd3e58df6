"""The `kubewright` command: thin commands over the library, with errors of one line.

`app` names the commands and turns failures into exit codes; each command's module has its `command`.
Modules at the top are what commands share: `target` finds the operator a command is about, `options` are
written once, `loops` runs a program, `logs` and `progress` tell what happens, in `colours` where they are wanted,
`crashes` shows an author's own line first. A folder is what belongs to one command, or to those that work on one thing:

    documents    objects by name, from files, compared      (shared)
    definitions  install, uninstall: CRDs
    deployment   deploy, undeploy: everything
    objects      get, apply, delete
    project      init, create, and the project around the current directory
    packages     manifests, build, bundle, scorecard
    run, plan, rbac, doctor
"""

from kubewright.cli.app import main

__all__ = ["main"]
