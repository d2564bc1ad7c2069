// Estimates the cost of validation rules with the real libraries, for tests/api/cel/costs.json:
//
//	cd scripts/protobuf && go run ./celcost < ../../tests/api/cel/costs.json
//
// It reads {"schema": ..., "costs": {RULE: ...}} and prints {RULE: COST, or what the compiler says}.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

func main() {
	var in struct {
		Schema json.RawMessage
		Costs  map[string]uint64
	}
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		panic(err)
	}
	out := map[string]interface{}{}
	for rule := range in.Costs {
		var s v1.JSONSchemaProps
		if err := json.Unmarshal(in.Schema, &s); err != nil {
			panic(err)
		}
		s.XValidations = v1.ValidationRules{{Rule: rule}}
		var internal apiextensions.JSONSchemaProps
		if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&s, &internal, nil); err != nil {
			panic(err)
		}
		ss, err := structuralschema.NewStructural(&internal)
		if err != nil {
			panic(err)
		}
		res, err := cel.Compile(ss, model.SchemaDeclType(ss, true), celconfig.PerCallLimit, environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()), cel.NewExpressionsEnvLoader())
		if err != nil {
			panic(err)
		}
		if res[0].Error != nil {
			out[rule] = res[0].Error.Detail
		} else {
			out[rule] = fmt.Sprint(res[0].MaxCost)
		}
	}
	b, _ := json.MarshalIndent(out, "", " ")
	os.Stdout.Write(b)
}
