"""Replacements of kube-apiserver and etcd, for envtest and everything else that starts these binaries.

`kubewright envtest path` prints a folder with them (`assets`). Read in this order: `etcd` (health, and where the data
is), `flags` (the command line of kube-apiserver), `settings` (what the flags mean), `kube_apiserver` (the program, which
is the entry point). `flags.json` lists the flags of the real binaries; `tools/generate_envtest_flags.py` writes it.
"""
