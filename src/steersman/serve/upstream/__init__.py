"""Requests that somebody else answers: what a node, a pod, a service or an aggregated API server says to them."""
