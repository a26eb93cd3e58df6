"""The protocols between kubectl and containers.

Read in this order: `requests` (the options of a request), `session` (exec and attach: channels over a
WebSocket), `tunnel` (port-forward: SPDY over a WebSocket, with `spdy`). The WebSocket itself is in
`kubewright.http.websocket` and `kubewright.http.server.websocket`.
"""
