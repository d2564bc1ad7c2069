"""Steersman: a control plane you can check, simulate and run."""
