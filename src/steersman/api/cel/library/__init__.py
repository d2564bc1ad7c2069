"""The functions expressions may call, a library a file, with the texts cel-go and Kubernetes give for what is wrong."""
