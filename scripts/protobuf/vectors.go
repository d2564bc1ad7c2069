package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand"
	"os"
	"strconv"
	"strings"
	"time"

	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
)

type vector struct {
	GVK  string          `json:"gvk"`
	Body []byte          `json:"body"`
	JSON json.RawMessage `json:"json"`
}

// vectors encodes filled objects as a client does, decodes them as a server does, and writes what that is in JSON.
func vectors(kinds []schema.GroupVersionKind, args []string) {
	number, seed := 1, int64(1)
	var err error
	if len(args) > 0 {
		number, err = strconv.Atoi(args[0])
		must(err)
	}
	if len(args) > 1 {
		seed, err = strconv.ParseInt(args[1], 10, 64)
		must(err)
	}
	filler := newFiller(seed)
	codec := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	out := json.NewEncoder(os.Stdout)
	for _, gvk := range kinds {
		if strings.HasSuffix(gvk.Kind, "Options") && gvk.Kind != "DeleteOptions" {
			continue
		}
		for range number {
			object, err := scheme.Scheme.New(gvk)
			must(err)
			filler.Fill(object)
			object.GetObjectKind().SetGroupVersionKind(gvk)
			must(out.Encode(recorded(codec, object, gvk)))
		}
	}
}

func recorded(codec *protobuf.Serializer, object runtime.Object, gvk schema.GroupVersionKind) vector {
	var body strings.Builder
	must(codec.Encode(object, &body))
	decoded, _, err := codec.Decode([]byte(body.String()), nil, nil)
	must(err)
	decoded.GetObjectKind().SetGroupVersionKind(gvk)
	text, err := json.Marshal(decoded)
	must(err)
	return vector{fmt.Sprintf("%s/%s", gvk.GroupVersion(), gvk.Kind), []byte(body.String()), text}
}

func newFiller(seed int64) *randfill.Filler {
	moment := func(c randfill.Continue) time.Time {
		return time.Unix(c.Int63n(4e9)+1, c.Int63n(1e9)).UTC()
	}
	return randfill.New().NilChance(0.3).NumElements(0, 2).MaxDepth(9).RandSource(rand.NewSource(seed)).Funcs(
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.NewTime(moment(c)) },
		func(t *metav1.MicroTime, c randfill.Continue) { *t = metav1.NewMicroTime(moment(c)) },
		func(q *resource.Quantity, c randfill.Continue) {
			texts := []string{"0", "1", "1500m", "64Mi", "3e3", "0.5", "1000m", "2Gi", "100n", "12"}
			*q = resource.MustParse(texts[c.Intn(len(texts))])
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			*v = intstr.FromInt32(c.Int31())
			if c.Bool() {
				*v = intstr.FromString(fmt.Sprint(c.Intn(100)) + "%")
			}
		},
		func(r *runtime.RawExtension, c randfill.Continue) { r.Raw = []byte(`{"a":[1,"b",null]}`) },
		func(f *metav1.FieldsV1, c randfill.Continue) { f.Raw = []byte(`{"f:spec":{"f:x":{}}}`) },
		func(j *extensions.JSON, c randfill.Continue) { j.Raw = []byte(`{"default":1.5}`) },
		func(s *extensions.JSONSchemaPropsOrBool, c randfill.Continue) { s.Allows = c.Bool() },
		func(s *extensions.JSONSchemaPropsOrArray, c randfill.Continue) {
			if s.Schema = (&extensions.JSONSchemaProps{Type: "string"}); c.Bool() {
				s.Schema, s.JSONSchemas = nil, []extensions.JSONSchemaProps{{Type: "integer"}, {Nullable: true}}
			}
		},
		func(s *extensions.JSONSchemaPropsOrStringArray, c randfill.Continue) { s.Property = []string{"x", "y"} },
		func(s *string, c randfill.Continue) {
			words := []string{"", "a", "web-1", "größe", "x/y", "default", "\u2028<&>", "Always"}
			*s = words[c.Intn(len(words))]
		},
		func(f *float64, c randfill.Continue) { *f = math.Round(c.NormFloat64()*1000) / 8 },
		func(i *int32, c randfill.Continue) { *i = int32(c.Uint32()) >> c.Intn(31) },
		func(i *int64, c randfill.Continue) { *i = int64(c.Uint64()) >> c.Intn(63) },
	)
}
