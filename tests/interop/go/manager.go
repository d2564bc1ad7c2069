package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const finalizer = "example.com/site"

var siteKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Site"}

// A siteReconciler gives each Site a ConfigMap by server-side apply and a Deployment it owns, copies the Deployment's
// ready replicas into the Site's status, and keeps a finalizer until it has noted the Site's end.
type siteReconciler struct {
	client.Client
	ended chan string
}

func (r *siteReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	site := newSite()
	if err := r.Get(ctx, request.NamespacedName, site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !site.GetDeletionTimestamp().IsZero() {
		if controllerutil.RemoveFinalizer(site, finalizer) {
			r.ended <- site.GetName()
			return ctrl.Result{}, r.Update(ctx, site)
		}
		return ctrl.Result{}, nil
	}
	if controllerutil.AddFinalizer(site, finalizer) {
		if err := r.Update(ctx, site); err != nil {
			return ctrl.Result{}, err
		}
	}
	colour, _, _ := unstructured.NestedString(site.Object, "spec", "colour")
	page := applycorev1.ConfigMap(site.GetName(), site.GetNamespace()).WithData(map[string]string{"colour": colour})
	if err := r.Apply(ctx, page, client.FieldOwner("site"), client.ForceOwnership); err != nil {
		return ctrl.Result{}, fmt.Errorf("apply: %w", err)
	}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: site.GetName(), Namespace: site.GetNamespace()}}
	if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, web, func() error { return r.shape(site, web) }); err != nil {
		return ctrl.Result{}, fmt.Errorf("the deployment: %w", err)
	}
	before := site.DeepCopy()
	if err := unstructured.SetNestedField(site.Object, int64(web.Status.ReadyReplicas), "status", "ready"); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.Status().Patch(ctx, site, client.MergeFrom(before))
}

func (r *siteReconciler) shape(site *unstructured.Unstructured, web *appsv1.Deployment) error {
	labels := map[string]string{"site": site.GetName()}
	web.Spec.Replicas = ptr.To(int32(2))
	web.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	web.Spec.Template.Labels = labels
	if len(web.Spec.Template.Spec.Containers) == 0 {
		web.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Image: "web:1"}}
	}
	return controllerutil.SetControllerReference(site, web, r.Scheme())
}

func newSite() *unstructured.Unstructured {
	site := &unstructured.Unstructured{}
	site.SetGroupVersionKind(siteKind)
	return site
}

func newManager(config *rest.Config, id string) (ctrl.Manager, error) {
	return ctrl.NewManager(config, ctrl.Options{
		Metrics:                       server.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              id,
		LeaderElectionNamespace:       space,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 ptr.To(10 * time.Minute),
		RenewDeadline:                 ptr.To(8 * time.Minute),
		RetryPeriod:                   ptr.To(200 * time.Millisecond),
	})
}

// runManager starts the manager and takes one Site through its life. The Site's kind is defined before.
func runManager(ctx context.Context, config *rest.Config) error {
	manager, err := newManager(config, "site")
	if err != nil {
		return err
	}
	reconciler := &siteReconciler{Client: manager.GetClient(), ended: make(chan string, 8)}
	err = ctrl.NewControllerManagedBy(manager).For(newSite()).Owns(&appsv1.Deployment{}).Complete(reconciler)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- manager.Start(ctx) }()
	err = lifeOfASite(ctx, manager.GetClient(), manager.GetAPIReader(), reconciler.ended)
	cancel()
	if ended := <-stopped; err == nil {
		err = ended
	}
	return err
}

func lifeOfASite(ctx context.Context, cached client.Client, direct client.Reader, ended chan string) error {
	site, web, page := newSite(), &appsv1.Deployment{}, &corev1.ConfigMap{}
	site.SetName("shop")
	site.SetNamespace(space)
	key := client.ObjectKeyFromObject(site)
	if err := unstructured.SetNestedField(site.Object, "red", "spec", "colour"); err != nil {
		return err
	}
	if err := cached.Create(ctx, site); err != nil {
		return err
	}
	err := until(ctx, "two ready replicas in the status of the site", func() (bool, error) {
		if err := direct.Get(ctx, key, site); err != nil {
			return false, err
		}
		ready, _, _ := unstructured.NestedInt64(site.Object, "status", "ready")
		return ready == 2, nil
	})
	if err != nil {
		return err
	}
	if err := direct.Get(ctx, key, page); err != nil || page.Data["colour"] != "red" {
		return fmt.Errorf("the config map is %v: %w", page.Data, err)
	}
	if owner := metav1.GetControllerOf(page); owner != nil {
		return fmt.Errorf("the config map is owned by %v", owner)
	}
	if err := direct.Get(ctx, key, web); err != nil {
		return err
	}
	if owner := metav1.GetControllerOf(web); owner == nil || owner.UID != site.GetUID() {
		return fmt.Errorf("the deployment is owned by %v", owner)
	}
	if err := cached.Delete(ctx, site); err != nil {
		return err
	}
	if name := <-ended; name != "shop" {
		return fmt.Errorf("%s ended", name)
	}
	return until(ctx, "the end of the site and its deployment", func() (bool, error) {
		gone := errors.IsNotFound(direct.Get(ctx, key, site)) && errors.IsNotFound(direct.Get(ctx, key, web))
		return gone, nil
	})
}

// electLeaders starts two managers of one election: only one leads, and the other one does when the first ends.
func electLeaders(ctx context.Context, config *rest.Config) error {
	first, err := newManager(config, "election")
	if err != nil {
		return err
	}
	second, err := newManager(config, "election")
	if err != nil {
		return err
	}
	firstCtx, endFirst := context.WithCancel(ctx)
	defer endFirst()
	secondCtx, endSecond := context.WithCancel(ctx)
	defer endSecond()
	stopped := make(chan error, 2)
	go func() { stopped <- first.Start(firstCtx) }()
	select {
	case <-first.Elected():
	case <-ctx.Done():
		return fmt.Errorf("nobody was elected")
	}
	go func() { stopped <- second.Start(secondCtx) }()
	select {
	case <-second.Elected():
		return fmt.Errorf("two leaders")
	case <-time.After(time.Second):
	}
	endFirst()
	select {
	case <-second.Elected():
	case <-ctx.Done():
		return fmt.Errorf("the second was not elected")
	}
	endSecond()
	for range 2 {
		if err := <-stopped; err != nil {
			return err
		}
	}
	return nil
}
