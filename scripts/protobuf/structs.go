package main

import (
	"encoding/json"
	"os"
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// told is what the JSON of a struct depends on beside the shape of its fields.
type told struct {
	Omit  []string          `json:"omit"`  // fields that are left out when they are "", 0 or false
	Keep  []string          `json:"keep"`  // lists and maps that are not left out when they are empty
	Types map[string]string `json:"types"` // Go types as messages show them
}

// structs writes what Go's encoding does with the fields of every struct below the kinds.
func structs(kinds []schema.GroupVersionKind) {
	found := map[string]told{}
	each(kinds, func(name string, t reflect.Type) {
		line := told{[]string{}, []string{}, map[string]string{}}
		line.fields(t)
		sort.Strings(line.Omit)
		sort.Strings(line.Keep)
		found[name] = line
	})
	must(json.NewEncoder(os.Stdout).Encode(found))
}

func (l *told) fields(t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		jsonName, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if strings.Contains(options, "inline") || (f.Anonymous && jsonName == "") {
			if inner := f.Type; inner.Kind() == reflect.Struct {
				l.fields(inner)
			}
			continue
		}
		if !f.IsExported() || jsonName == "" || jsonName == "-" {
			continue
		}
		switch f.Type.Kind() {
		case reflect.String, reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
			if strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") {
				l.Omit = append(l.Omit, jsonName)
			}
		case reflect.Slice, reflect.Map:
			if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
				l.Keep = append(l.Keep, jsonName)
			}
		}
		shown := f.Type
		if shown.Kind() == reflect.Pointer {
			shown = shown.Elem()
		}
		l.Types[jsonName] = shown.String()
	}
}
