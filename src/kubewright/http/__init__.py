"""HTTP/1.1 on asyncio and httptools: `http.client` sends requests, `http.server` responds to them.

Neither package knows Kubernetes, and neither imports the other.
"""
