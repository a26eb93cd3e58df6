"""The `kubewright` command: thin commands over the library, with errors of one line.

`entry` starts: it runs a deployed operator without loading click (`run.arguments`), and leaves everything else to
`app`, which has the table of commands; each command's module defines `command`. `exits` turns errors into exit codes.
The modules at the top are shared: `target` loads the operator, `options` defines options
shared by commands, `loops` runs a coroutine until a signal, `logs` and `progress` write output. Each folder belongs to one command or to related ones:

    documents    objects by name, from files, compared      (shared)
    definitions  install, uninstall: CRDs
    deployment   deploy, undeploy: everything
    objects      get, apply, delete
    project      init, create, and the project around the current directory
    packages     manifests, build, bundle, scorecard
    run, plan, rbac, doctor
"""

from kubewright.cli.entry import main

__all__ = ["main"]
