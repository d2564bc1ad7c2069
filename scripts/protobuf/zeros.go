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
	each(kinds, func(name string, t reflect.Type) {
		if shown := zero(t); len(shown) > 0 {
			found[name] = shown
		}
	})
	must(json.NewEncoder(os.Stdout).Encode(found))
}

// each visits every struct at and below the kinds that has an OpenAPI definition.
func each(kinds []schema.GroupVersionKind, visit func(name string, t reflect.Type)) {
	seen := map[reflect.Type]bool{}
	for _, gvk := range kinds {
		walk(scheme.Scheme.AllKnownTypes()[gvk], seen, visit)
	}
}

func walk(t reflect.Type, seen map[reflect.Type]bool, visit func(name string, t reflect.Type)) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		walk(t.Elem(), seen, visit)
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
		visit(model.OpenAPIModelName(), t)
	}
	for i := range t.NumField() {
		if t.Field(i).IsExported() {
			walk(t.Field(i).Type, seen, visit)
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
