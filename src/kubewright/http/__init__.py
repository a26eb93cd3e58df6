"""HTTP/1.1 on asyncio and httptools: `http.client` asks, `http.server` answers; neither knows Kubernetes."""
