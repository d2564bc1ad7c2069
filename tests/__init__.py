"""Steersman's tests; the folders mirror src/steersman."""
