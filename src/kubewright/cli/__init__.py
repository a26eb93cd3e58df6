"""The `kubewright` command: thin commands over the library, with errors of one line.

`app` names the commands and turns failures into exit codes, `target` finds the operator a command is about,
`logs` formats what a running operator says; each other module is one command or two that mirror each other.
"""

from kubewright.cli.app import main

__all__ = ["main"]
