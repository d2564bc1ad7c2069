"""What a verdict becomes for people and for tools: causal slices, tests, JUnit, SARIF, pages."""
