// Command interop is a controller-runtime manager and three kinds of client-go informers, as operators are written,
// against the server of $KUBECONFIG. It prints a line for each thing that worked and ends with status 0 when all did.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// limit is for everything together; a wait that never ends fails the run instead of hanging it.
const limit = 10 * time.Minute

type part struct {
	name string
	run  func(context.Context, *rest.Config) error
}

func main() {
	klog.LogToStderr(true)
	log.SetLogger(klog.NewKlogr())
	config, err := ctrl.GetConfig()
	if err != nil {
		fail("the kubeconfig", err)
	}
	ctx, cancel := context.WithTimeout(ctrl.SetupSignalHandler(), limit)
	defer cancel()
	for _, each := range []part{
		{"typed informer with protobuf", typedInformer},
		{"dynamic informer", dynamicInformer},
		{"metadata informer", metadataInformer},
		{"manager", runManager},
		{"leader election", electLeaders},
	} {
		start := time.Now()
		if err := each.run(ctx, config); err != nil {
			fail(each.name, err)
		}
		fmt.Printf("ok %s (%d ms)\n", each.name, time.Since(start).Milliseconds())
	}
}

func fail(what string, err error) {
	fmt.Printf("FAILED %s: %v\n", what, err)
	os.Exit(1)
}

// until calls met until it is true; an error ends the wait.
func until(ctx context.Context, what string, met func() (bool, error)) error {
	for {
		done, err := met()
		if done || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s did not happen in time", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
