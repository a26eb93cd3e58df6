"""HTTP/1.1 on asyncio and httptools: `http.client` sends requests, `http.server` answers them.

Neither package knows Kubernetes, and neither imports the other.
"""
