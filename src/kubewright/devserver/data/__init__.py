"""The embedded server's data bundle, generated from Kubernetes' published types by tools/generate_devserver_data.py."""
