// Writes what the protobuf decoder of the API server needs to know, and bodies to test it with.
//
//	go run . table   > messages of the served kinds: field numbers, JSON names, types (JSON)
//	go run . zeros   > what the JSON of every type shows when nothing is set
//	go run . structs > which fields of every type are left out when they are zero, and their Go types
//	go run . vectors [N [SEED]] > N randomly filled objects per kind: {gvk, body (base64), json} a line
//
// The facts are read by reflection from the struct tags of k8s.io/api, k8s.io/apimachinery,
// k8s.io/apiextensions-apiserver and k8s.io/kube-aggregator (Apache-2.0); go.mod has the versions.
package main

import (
	"fmt"
	"os"
	"sort"
	"strings"

	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	aggregator "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// skipped are kinds that no client sends: internal ones, and lists.
func skipped(gvk schema.GroupVersionKind) bool {
	return gvk.Version == "__internal" || strings.Contains(gvk.Version, "alpha") ||
		strings.Contains(gvk.Version, "beta") || strings.HasSuffix(gvk.Kind, "List") ||
		gvk.Kind == "WatchEvent" || strings.HasPrefix(gvk.Group, "extensions") ||
		(strings.HasSuffix(gvk.Kind, "Options") && gvk.Group != "meta.k8s.io" && gvk.Group != "")
}

func kinds() []schema.GroupVersionKind {
	must(extensions.AddToScheme(scheme.Scheme))
	must(aggregator.AddToScheme(scheme.Scheme))
	metav1.AddToGroupVersion(scheme.Scheme, metav1.SchemeGroupVersion)
	var found []schema.GroupVersionKind
	for gvk := range scheme.Scheme.AllKnownTypes() {
		if !skipped(gvk) {
			found = append(found, gvk)
		}
	}
	sort.Slice(found, func(i, j int) bool { return found[i].String() < found[j].String() })
	return found
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "table":
		table(kinds())
	case len(os.Args) == 2 && os.Args[1] == "zeros":
		zeros(kinds())
	case len(os.Args) == 2 && os.Args[1] == "structs":
		structs(kinds())
	case len(os.Args) >= 2 && os.Args[1] == "vectors":
		vectors(kinds(), os.Args[2:])
	default:
		fmt.Fprintln(os.Stderr, "usage: go run . table | zeros | structs | vectors [N [SEED]]")
		os.Exit(2)
	}
}
