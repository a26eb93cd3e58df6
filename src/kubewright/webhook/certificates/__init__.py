"""The operator's own serving certificates, for webhooks and metrics: made, shared by all replicas, and renewed.

`sources` is the entry point: a certificate that is loaded before anything is served and then kept up to date. `stores`
keeps a bundle in a Secret, a file or memory, and `authority` decides how a bundle is renewed step by step.
"""
