// Command beside runs one scenario in Kamera (github.com/tgoodwin/kamera) and prints what it made of it as one line of
// JSON. It is built inside a checkout of Kamera with `go build -overlay` by scripts/bench_kamera.py, and uses its public
// API alone.
//
//	beside SCENARIO
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"sort"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/tgoodwin/kamera/pkg/event"
	"github.com/tgoodwin/kamera/pkg/tag"
	"github.com/tgoodwin/kamera/pkg/tracecheck"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kinds "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	patience  = time.Minute // as long as one search may take
	memory    = 3 << 30     // bytes of heap after which a search is given up
	namespace = "default"
)

// A step is one reconcile of a controller of the object that the request names.
type step func(ctx context.Context, c client.Client, req ctrl.Request) (ctrl.Result, error)

// A worker is a controller: its name, the kind that wakes it, and the objects it is to look at in the beginning.
type worker struct {
	name    string
	kind    string
	pending []string
	bounds  tracecheck.ReconcilerConfig
	step    step
}

// A scenario is a state to begin with, and who works on it. Paths longer than depth are given up by Kamera.
type scenario struct {
	depth   int
	objects []*unstructured.Unstructured
	workers []worker
}

// counted counts the reconciles of all controllers of a search.
type counted struct {
	client client.Client
	step   step
	calls  *int
}

func (r *counted) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	*r.calls++
	return r.step(ctx, r.client, req)
}

// A report is what a search came to. Objects of an end are without labels, which are Kamera's own.
type report struct {
	Scenario   string                      `json:"scenario"`
	Seconds    float64                     `json:"seconds"`
	Reconciles int                         `json:"reconciles"`
	Visits     int                         `json:"visits"`
	States     int                         `json:"states"`
	Ends       []map[string]map[string]any `json:"ends"`
	Paths      []int                       `json:"paths"`
	Aborted    map[string]int              `json:"aborted"`
	Stopped    string                      `json:"stopped"`
}

func (s scenario) search(name string) (report, error) {
	calls := 0
	builder := tracecheck.NewExplorerBuilder(kinds.NewScheme())
	builder.WithEmitter(event.NewInMemoryEmitter())
	builder.WithMaxDepth(s.depth)
	pending := []tracecheck.PendingReconcile{}
	for _, w := range s.workers {
		builder.WithReconciler(w.name, func(c client.Client) tracecheck.Reconciler {
			return &counted{c, w.step, &calls}
		})
		for _, obj := range s.objects {
			builder.WithResourceDep(group+"/"+obj.GetKind(), w.name)
		}
		builder.AssignReconcilerToKind(w.name, group+"/"+w.kind)
		if w.bounds.MaxRestarts > 0 {
			builder.WithKindBounds(w.name, w.bounds)
		}
		for _, key := range w.pending {
			request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: key}}
			pending = append(pending, tracecheck.PendingReconcile{ReconcilerID: w.name, Request: request})
		}
	}
	state := builder.NewStateEventBuilder()
	for _, obj := range s.objects {
		tag.AddSleeveObjectID(obj)
		state.AddStateEvent(obj.GetKind(), tag.GetSleeveObjectID(obj), obj, event.CREATE, "user")
	}
	start := state.Build()
	start.PendingReconciles = pending
	explorer, err := builder.Build("standalone")
	if err != nil {
		return report{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	began := time.Now()
	full := watched(ctx, cancel)
	result, printed, err := silently(func() *tracecheck.Result { return explorer.Explore(ctx, start) })
	if err != nil {
		return report{}, err
	}
	found := report{Scenario: name, Seconds: time.Since(began).Seconds(), Reconciles: calls}
	found.Visits, found.States = number(printed, "Total node visits"), number(printed, "Unique node visits")
	found.tell(result)
	if *full {
		found.Stopped = fmt.Sprintf("more than %d GiB", memory>>30)
	} else if ctx.Err() != nil {
		found.Stopped = patience.String()
	}
	return found, nil
}

// watched cancels a search that takes too much memory; whether it did.
func watched(ctx context.Context, cancel context.CancelFunc) *bool {
	full := new(bool)
	go func() {
		for ctx.Err() == nil {
			time.Sleep(100 * time.Millisecond)
			var used runtime.MemStats
			runtime.ReadMemStats(&used)
			if used.HeapAlloc > memory {
				*full = true
				cancel()
			}
		}
	}()
	return full
}

// silently gives what a search returns, and what it prints on standard output: its counts are told nowhere else.
func silently(search func() *tracecheck.Result) (*tracecheck.Result, string, error) {
	scratch, err := os.CreateTemp("", "beside")
	if err != nil {
		return nil, "", err
	}
	defer os.Remove(scratch.Name())
	defer scratch.Close()
	out := os.Stdout
	os.Stdout = scratch
	result := search()
	os.Stdout = out
	if _, err := scratch.Seek(0, io.SeekStart); err != nil {
		return nil, "", err
	}
	printed, err := io.ReadAll(scratch)
	return result, string(printed), err
}

func number(text, label string) int {
	found := regexp.MustCompile(label + `: (\d+)`).FindStringSubmatch(text)
	if found == nil {
		return -1
	}
	value, _ := strconv.Atoi(found[1])
	return value
}

// tell adds the ends and what was given up, in an order of its own: that of Kamera is of a map.
func (r *report) tell(result *tracecheck.Result) {
	type end struct {
		text    string
		objects map[string]map[string]any
		paths   int
	}
	ends := []end{}
	for _, state := range result.ConvergedStates {
		objects := map[string]map[string]any{}
		for _, hash := range state.State.Objects() {
			obj := state.Resolver.Resolve(hash).DeepCopy()
			obj.SetLabels(nil)
			objects[obj.GetKind()+"/"+obj.GetName()] = obj.Object
		}
		text, _ := json.Marshal(objects)
		ends = append(ends, end{string(text), objects, len(tracecheck.GetUniquePaths(state.Paths))})
	}
	sort.Slice(ends, func(i, j int) bool { return ends[i].text < ends[j].text })
	r.Ends, r.Paths, r.Aborted = []map[string]map[string]any{}, []int{}, map[string]int{}
	for _, end := range ends {
		r.Ends, r.Paths = append(r.Ends, end.objects), append(r.Paths, end.paths)
	}
	for _, state := range result.AbortedStates {
		why := state.Reason
		if state.Error != "" {
			why += ": " + state.Error
		}
		r.Aborted[why]++
	}
}

func main() {
	tracecheck.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "beside: name one scenario")
		os.Exit(2)
	}
	chosen, err := scenarioOf(os.Args[1])
	if err == nil {
		var found report
		if found, err = chosen.search(os.Args[1]); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(found)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "beside:", err)
		os.Exit(1)
	}
}
