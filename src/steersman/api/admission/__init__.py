"""Admission: what may change or refuse a write between its decoding and its commit."""
