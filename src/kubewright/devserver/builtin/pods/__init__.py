"""Pods and everything that a Pod spec contains.

`strategies` is the entry point. `spec` checks a whole Pod spec, also that of a template, with the help of `volumes`,
`containers`, `environment`, `resources`, `security` and `scheduling`. `subresources` and `status` hold what is
written and read apart from the spec, and `warnings` what is valid but probably a mistake.
"""
