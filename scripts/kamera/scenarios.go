package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tgoodwin/kamera/pkg/simclock"
	"github.com/tgoodwin/kamera/pkg/tracecheck"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const group = "kamera.example"

// object gives an object of the scenarios' group.
func object(kind, name string, spec map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": kind}}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	if spec != nil {
		obj.Object["spec"] = spec
	}
	return obj
}

// read gets an object; an error when it is not there.
func read(ctx context.Context, c client.Client, kind, name string) (*unstructured.Unstructured, error) {
	obj := object(kind, name, nil)
	return obj, c.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, obj)
}

func text(obj *unstructured.Unstructured, fields ...string) string {
	value, _, _ := unstructured.NestedString(obj.Object, fields...)
	return value
}

// reportStatus writes a field of an object's status.
func reportStatus(ctx context.Context, c client.Client, obj *unstructured.Unstructured, field, value string) error {
	if err := unstructured.SetNestedField(obj.Object, value, "status", field); err != nil {
		return err
	}
	return c.Status().Update(ctx, obj)
}

// upon makes a step of a function of the object alone.
func upon(kind string, act func(context.Context, client.Client, *unstructured.Unstructured) error) step {
	return func(ctx context.Context, c client.Client, req ctrl.Request) (ctrl.Result, error) {
		obj, err := read(ctx, c, kind, req.Name)
		if err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		return ctrl.Result{}, act(ctx, c, obj)
	}
}

// walking takes a status one further by the table of the object's mode.
func walking(tables map[string]map[string]string) step {
	return upon("Foo", func(ctx context.Context, c client.Client, foo *unstructured.Unstructured) error {
		next, ok := tables[text(foo, "spec", "mode")][text(foo, "status", "state")]
		if !ok {
			return nil
		}
		return reportStatus(ctx, c, foo, "state", next)
	})
}

func foo() []*unstructured.Unstructured {
	return []*unstructured.Unstructured{object("Foo", "x", map[string]any{"mode": "A"})}
}

func trivial() scenario {
	walk := walking(map[string]map[string]string{"A": {"": "A-1", "A-1": "A-Final"}})
	here := []string{"x"}
	return scenario{10, foo(), []worker{
		{name: "foo", kind: "Foo", pending: here, step: walk}, {name: "bar", kind: "Foo", pending: here, step: walk},
	}}
}

func fooBar() scenario {
	walk := walking(map[string]map[string]string{
		"A": {"": "A-1", "B-1": "A-1", "A-1": "A-2", "A-2": "A-Final"},
		"B": {"": "B-1", "A-1": "B-1", "B-1": "B-2", "B-2": "B-Final"},
	})
	flip := upon("Foo", func(ctx context.Context, c client.Client, foo *unstructured.Unstructured) error {
		state, mode := text(foo, "status", "state"), text(foo, "spec", "mode")
		flipped := map[string]string{"A-1": "B", "B-1": "A"}[state]
		switch {
		case flipped != "" && foo.GetAnnotations()["bar-done"] == "":
			foo.SetAnnotations(map[string]string{"bar-done": "true"})
			foo.Object["spec"] = map[string]any{"mode": flipped}
			return c.Update(ctx, foo)
		case state == "A-2":
			return reportStatus(ctx, c, foo, "state", "A-Final")
		case state == "B-2" && mode == "B":
			return reportStatus(ctx, c, foo, "state", "B-Final")
		}
		return nil
	})
	here := []string{"x"}
	return scenario{10, foo(), []worker{
		{name: "foo", kind: "Foo", pending: here, step: walk}, {name: "bar", kind: "Foo", pending: here, step: flip},
	}}
}

func clock() scenario {
	appending := func(ctx context.Context, c client.Client, req ctrl.Request) (ctrl.Result, error) {
		obj, err := read(ctx, c, "Clocked", req.Name)
		if err != nil {
			return ctrl.Result{}, err
		}
		found, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		if len(found) == 3 {
			return ctrl.Result{}, nil
		}
		at := simclock.Now().UTC().Format(time.RFC3339)
		found = append(found, map[string]any{
			"type": fmt.Sprintf("C%d", len(found)), "status": "True", "lastTransitionTime": at,
		})
		if err := unstructured.SetNestedSlice(obj.Object, found, "status", "conditions"); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{Requeue: len(found) < 3}, c.Status().Update(ctx, obj)
	}
	objects := []*unstructured.Unstructured{object("Clocked", "x", map[string]any{"mode": "A"})}
	return scenario{10, objects, []worker{{name: "append", kind: "Clocked", pending: []string{"x"}, step: appending}}}
}

// toggle is an object meant for alpha, and alpha and beta, who take it when they may.
func toggle(depth int, may func(me, owner, desired string) bool) scenario {
	workers := []worker{}
	for _, me := range []string{"alpha", "beta"} {
		act := upon("Toggle", func(ctx context.Context, c client.Client, obj *unstructured.Unstructured) error {
			if !may(me, text(obj, "status", "owner"), text(obj, "spec", "desired")) {
				return nil
			}
			return reportStatus(ctx, c, obj, "owner", me)
		})
		workers = append(workers, worker{name: me, kind: "Toggle", pending: []string{"x"}, step: act})
	}
	return scenario{depth, []*unstructured.Unstructured{object("Toggle", "x", map[string]any{"desired": "alpha"})}, workers}
}

func claim(me, owner, desired string) bool { return owner == "" || (desired == me && owner != me) }
func duel(string, string, string) bool     { return true }

// writers are controllers that write an object each. With again their own write wakes them once more: who is the
// primary of a kind is woken by it.
func writers(count int, again bool) scenario {
	s := scenario{depth: 2*count + 2}
	for number := range count {
		kind, woken := fmt.Sprintf("Thing%d", number), fmt.Sprintf("Nothing%d", number)
		if again {
			woken = kind
		}
		write := upon(kind, func(ctx context.Context, c client.Client, obj *unstructured.Unstructured) error {
			if text(obj, "spec", "done") != "" {
				return nil
			}
			obj.Object["spec"] = map[string]any{"done": "yes"}
			return c.Update(ctx, obj)
		})
		s.objects = append(s.objects, object(kind, "x", nil))
		s.workers = append(s.workers, worker{name: fmt.Sprintf("writer%d", number), kind: woken, pending: []string{"x"}, step: write})
	}
	return s
}

// lock: who finds it free takes it, and then makes an object that says that it has won. An API server lets one win.
func lock() scenario {
	s := scenario{depth: 10, objects: []*unstructured.Unstructured{object("Lock", "x", map[string]any{"mode": "A"})}}
	old := tracecheck.ReconcilerConfig{Bounds: tracecheck.LookbackLimits{group + "/Lock": 2}, MaxRestarts: 1}
	for _, me := range []string{"alpha", "beta"} {
		take := upon("Lock", func(ctx context.Context, c client.Client, obj *unstructured.Unstructured) error {
			if text(obj, "spec", "owner") != "" {
				return nil
			}
			obj.Object["spec"] = map[string]any{"owner": me}
			if err := c.Update(ctx, obj); err != nil {
				return err
			}
			return c.Create(ctx, labelled(object("Won", me, nil)))
		})
		s.workers = append(s.workers, worker{name: me, kind: "Lock", pending: []string{"x"}, bounds: old, step: take})
	}
	return s
}

// labelled gives an object the label without which Kamera has no name for it.
func labelled(obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj.SetLabels(map[string]string{"discrete.events/sleeve-object-id": obj.GetKind() + "-" + obj.GetName()})
	return obj
}

// order: started is written before what it starts is made.
func order() scenario {
	act := upon("Order", func(ctx context.Context, c client.Client, obj *unstructured.Unstructured) error {
		if text(obj, "status", "started") != "" {
			return nil
		}
		if err := reportStatus(ctx, c, obj, "started", "yes"); err != nil {
			return err
		}
		return c.Create(ctx, labelled(object("Work", obj.GetName(), nil)))
	})
	return scenario{10, []*unstructured.Unstructured{object("Order", "x", map[string]any{"mode": "A"})},
		[]worker{{name: "orders", kind: "Order", pending: []string{"x"}, step: act}}}
}

// census counts the objects with a label; one of two has it.
func census() scenario {
	web, other := object("Item", "web", nil), object("Item", "other", nil)
	web.SetLabels(map[string]string{"app": "web"})
	act := upon("Census", func(ctx context.Context, c client.Client, obj *unstructured.Unstructured) error {
		items := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": group + "/v1", "kind": "ItemList"}}
		if err := c.List(ctx, items, client.InNamespace(namespace), client.MatchingLabels{"app": "web"}); err != nil {
			return err
		}
		count := strconv.Itoa(len(items.Items))
		if text(obj, "status", "count") == count {
			return nil
		}
		return reportStatus(ctx, c, obj, "count", count)
	})
	objects := []*unstructured.Unstructured{object("Census", "x", map[string]any{"mode": "A"}), web, other}
	return scenario{10, objects, []worker{{name: "census", kind: "Census", pending: []string{"x"}, step: act}}}
}

// poll looks again after a while, until it has looked three times; it is not woken by its own writes.
func poll() scenario {
	act := func(ctx context.Context, c client.Client, req ctrl.Request) (ctrl.Result, error) {
		obj, err := read(ctx, c, "Poll", req.Name)
		if err != nil {
			return ctrl.Result{}, err
		}
		seen := text(obj, "status", "seen")
		if len(seen) == 3 {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{RequeueAfter: time.Hour}, reportStatus(ctx, c, obj, "seen", seen+"I")
	}
	return scenario{10, []*unstructured.Unstructured{object("Poll", "x", map[string]any{"mode": "A"})},
		[]worker{{name: "poll", kind: "Nothing", pending: []string{"x"}, step: act}}}
}

// held deletes an object that a finalizer holds, and nobody takes the finalizer away.
func held() scenario {
	obj := object("Held", "x", map[string]any{"mode": "A"})
	obj.SetFinalizers([]string{group + "/hold"})
	act := upon("Held", func(ctx context.Context, c client.Client, obj *unstructured.Unstructured) error {
		if obj.GetDeletionTimestamp() != nil {
			return nil
		}
		return c.Delete(ctx, obj)
	})
	return scenario{10, []*unstructured.Unstructured{obj},
		[]worker{{name: "janitor", kind: "Held", pending: []string{"x"}, step: act}}}
}

// scenarioOf gives a scenario by its name; writers-4 and again-4 are four writers.
func scenarioOf(name string) (scenario, error) {
	plain := map[string]func() scenario{
		"trivial": trivial, "foo-bar": fooBar, "simclock": clock,
		"racecondition": func() scenario { return toggle(6, claim) }, "dueling": func() scenario { return toggle(10, duel) },
		"lock": lock, "order": order, "census": census, "poll": poll, "held": held,
	}
	if made, ok := plain[name]; ok {
		return made(), nil
	}
	kind, count, _ := strings.Cut(name, "-")
	number, err := strconv.Atoi(count)
	if err != nil || number < 1 || number > 20 || (kind != "writers" && kind != "again") {
		return scenario{}, fmt.Errorf("%s: no such scenario", name)
	}
	return writers(number, kind == "again"), nil
}
