"""Packaging of an operator: `manifests`, `build`, `bundle`, `scorecard`."""
