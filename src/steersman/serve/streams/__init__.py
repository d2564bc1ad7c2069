"""Long conversations: logs, exec, attach and port-forward, over WebSockets and SPDY."""
