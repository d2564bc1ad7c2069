"""The Common Expression Language as Kubernetes speaks it: parse, check, estimate, evaluate. Pure.

The language of cel-go (the implementation inside kube-apiserver) with Kubernetes' libraries, its error texts and its
costs. An evaluation counts what it does and is cut off at a budget, so that no expression can hold the server.

Sources of the facts: the CEL language definition (cel-spec), cel-go 0.26, and `apiserver/pkg/cel` of Kubernetes 1.36.
"""
