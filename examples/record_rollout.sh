#!/bin/sh
# How rollout.sktrace was made: a small shop on `steersman run`, operated for two minutes with kubectl, then recorded.
# It takes as long as that. From the root of the repository: sh examples/record_rollout.sh [FILE]
set -eu
target=$(realpath "${1:-examples/rollout.sktrace}")
work=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$work"' EXIT

steersman run --listen 127.0.0.1:0 --store "sqlite:$work/shop.db" --kubeconfig "$work/kubeconfig" \
    --virtual-nodes 3 >"$work/log" 2>&1 &
server=$!
for _ in $(seq 100); do
    [ -s "$work/kubeconfig" ] && kubectl --kubeconfig "$work/kubeconfig" get namespaces >/dev/null 2>&1 && break
    sleep 0.2
done

apply() { kubectl --kubeconfig "$work/kubeconfig" apply --server-side --force-conflicts -f -; }

deployment() { # name replicas image cpu memory
    cat <<EOF
apiVersion: apps/v1
kind: Deployment
metadata: {name: $1, namespace: shop}
spec:
  replicas: $2
  selector: {matchLabels: {app: $1}}
  template:
    metadata: {labels: {app: $1}}
    spec:
      containers:
        - name: $1
          image: registry.example/$1:$3
          resources: {requests: {cpu: "$4", memory: $5}}
EOF
}

echo '{apiVersion: v1, kind: Namespace, metadata: {name: shop}}' | apply
deployment web 3 v1 500m 512Mi | apply
deployment cart 2 v1 "1" 1Gi | apply
sleep 20
deployment web 3 v2 500m 512Mi | apply # a rollout
sleep 25
apply <<EOF # a migration: a pod that ends by itself
apiVersion: v1
kind: Pod
metadata:
  name: migrate
  namespace: shop
  annotations: {steersman.dev/lifetime-seconds: "15"}
spec:
  restartPolicy: Never
  containers:
    - name: migrate
      image: registry.example/migrate:v2
      resources: {requests: {cpu: "4", memory: 8Gi}}
EOF
sleep 25
deployment web 40 v2 500m 512Mi | apply # rush hour: more than small nodes can hold
deployment cart 12 v1 "1" 1Gi | apply
sleep 30
deployment web 4 v2 500m 512Mi | apply
deployment cart 2 v1 "1" 1Gi | apply
sleep 15
kubectl --kubeconfig "$work/kubeconfig" --namespace shop delete deployment cart
sleep 5

kill "$server" && wait "$server" || true
steersman record --store "sqlite:$work/shop.db" -o "$target"
