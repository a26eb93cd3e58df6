# Written by `kubewright create types`: change the CRDs, then run the command again.
"""Typed classes of other projects' CRDs, one module for each group and version."""
