"""`kubewright why`: why an object is as it is, and what its operator does about it.

`sources` finds the records of reconciles (a running operator, a record file), `cluster` reads the object, its children
and its Events, `explanation` puts both together (pure), `shown` prints it.
"""
