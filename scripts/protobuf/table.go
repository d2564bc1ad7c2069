package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// special are types whose JSON form is not that of their fields.
var special = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":                                             "time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":                                        "microtime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                                         "json",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":                                         "quantity",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":                                       "intorstring",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":                                          "json",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                         "json",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool":        "orbool",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray":       "orarray",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": "orstrings",
}

// field is [number, JSON name, type, flags, message]: the form of a line in the table. Flags are letters:
// r repeated, m map from string, e omitempty, z omitzero, i inline, p pointer.
type field []any

type compiler struct {
	Kinds    map[string]string  `json:"kinds"`
	Messages map[string][]field `json:"messages"`
}

func table(kinds []schema.GroupVersionKind) {
	c := compiler{map[string]string{}, map[string][]field{}}
	for _, gvk := range kinds {
		t := scheme.Scheme.AllKnownTypes()[gvk]
		if strings.HasSuffix(gvk.Kind, "Options") && gvk.Group == "" && !strings.HasPrefix(name(t), "k8s.io/apimachinery") {
			continue // the query parameters of connections
		}
		c.Kinds[gvk.GroupVersion().String()+"/"+gvk.Kind] = c.message(t)
	}
	must(json.NewEncoder(os.Stdout).Encode(c))
}

func name(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

func (c *compiler) message(t reflect.Type) string {
	id := name(t)
	if _, seen := c.Messages[id]; seen {
		return id
	}
	c.Messages[id] = []field{}
	for i := range t.NumField() {
		if line := c.field(t.Field(i)); line != nil {
			c.Messages[id] = append(c.Messages[id], line)
		}
	}
	return id
}

func (c *compiler) field(f reflect.StructField) field {
	tag := f.Tag.Get("protobuf")
	if tag == "" || tag == "-" {
		return nil
	}
	number, err := strconv.Atoi(strings.Split(tag, ",")[1])
	must(err)
	jsonName, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	flags := ""
	for option, flag := range map[string]string{"omitempty": "e", "omitzero": "z", "inline": "i"} {
		if strings.Contains(options, option) {
			flags += flag
		}
	}
	if jsonName == "" && !strings.Contains(flags, "i") && !f.Anonymous {
		jsonName = f.Name
	}
	t := f.Type
	switch {
	case t.Kind() == reflect.Pointer:
		flags += "p"
		t = t.Elem()
	case t.Kind() == reflect.Map:
		flags += "m"
		t = t.Elem()
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 && !isMessage(t):
		flags += "r"
		t = t.Elem()
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	kind, ref := c.kind(t)
	line := field{number, jsonName, kind, flags}
	if ref != "" {
		line = append(line, ref)
	}
	return line
}

// isMessage tells whether a named list is wrapped in a message of its own (ExtraValue, Verbs): tags do not say it.
func isMessage(t reflect.Type) bool {
	_, found := reflect.PointerTo(t).MethodByName("Unmarshal")
	return found
}

func (c *compiler) kind(t reflect.Type) (string, string) {
	if known, found := special[name(t)]; found {
		switch known {
		case "orbool", "orarray", "orstrings":
			props, _ := t.FieldByName("Schema")
			return known, c.message(props.Type.Elem())
		}
		return known, ""
	}
	switch t.Kind() {
	case reflect.String:
		return "string", ""
	case reflect.Bool:
		return "bool", ""
	case reflect.Int32:
		return "int32", ""
	case reflect.Int64, reflect.Int:
		return "int64", ""
	case reflect.Float64:
		return "double", ""
	case reflect.Struct:
		return "message", c.message(t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes", ""
		}
		if t.Elem().Kind() == reflect.String { // a message around a list: ExtraValue, Verbs
			return "strings", ""
		}
	}
	must(fmt.Errorf("%s: a type this script does not know", t))
	return "", ""
}
