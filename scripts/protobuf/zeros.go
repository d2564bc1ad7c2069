package main

import (
	"encoding/json"
	"os"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// named is a type that knows the name of its OpenAPI definition.
type named interface{ OpenAPIModelName() string }

// zeros writes, for every struct below the kinds, what its JSON shows when nothing is set: fields without
// omitempty, and structs, which omitempty does not omit. Nulls are left out.
func zeros(kinds []schema.GroupVersionKind) {
	found := map[string]map[string]any{}
	seen := map[reflect.Type]bool{}
	for _, gvk := range kinds {
		walk(scheme.Scheme.AllKnownTypes()[gvk], found, seen)
	}
	must(json.NewEncoder(os.Stdout).Encode(found))
}

func walk(t reflect.Type, found map[string]map[string]any, seen map[reflect.Type]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		walk(t.Elem(), found, seen)
		return
	case reflect.Struct:
	default:
		return
	}
	if seen[t] {
		return
	}
	seen[t] = true
	if model, ok := reflect.Zero(t).Interface().(named); ok {
		if shown := zero(t); len(shown) > 0 {
			found[model.OpenAPIModelName()] = shown
		}
	}
	for i := range t.NumField() {
		if t.Field(i).IsExported() {
			walk(t.Field(i).Type, found, seen)
		}
	}
}

func zero(t reflect.Type) map[string]any {
	text, err := json.Marshal(reflect.Zero(t).Interface())
	must(err)
	var shown any
	must(json.Unmarshal(text, &shown))
	fields, _ := withoutNulls(shown).(map[string]any)
	return fields
}

func withoutNulls(value any) any {
	fields, ok := value.(map[string]any)
	if !ok {
		return value
	}
	for name, field := range fields {
		if field == nil {
			delete(fields, name)
		} else {
			fields[name] = withoutNulls(field)
		}
	}
	return fields
}
