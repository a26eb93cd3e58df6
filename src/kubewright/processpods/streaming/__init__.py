"""The protocols between kubectl and containers.

Read in this order: `requests` (what a client asks for, and its terminal), `session` (exec and attach: channels over a
WebSocket), `tunnel` (port-forward: SPDY over a WebSocket, with `spdy`), `websocket` and `frames` (RFC 6455).
"""
