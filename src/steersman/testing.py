"""The pytest plugin and the fixtures of Steersman."""
