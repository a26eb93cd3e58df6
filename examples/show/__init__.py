"""The demo: a stage with a cluster and five operators, a story told on it, and two ways to watch.

`stage` brings everything up and takes it down, `replicas` runs an operator twice as processes, `story` is what
happens, each step checked; `plain` and `live` show it, `program` is the command.
"""
