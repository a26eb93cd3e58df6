"""The demo: a dev cluster with five operators, a scenario that runs on it, and two displays.

`environment` starts and stops everything, `replicas` runs an operator as two processes, `scenario` has the steps,
each of which is checked; `plain` and `live` display them, `program` is the command.
"""
