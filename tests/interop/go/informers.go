package main

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const space = "default"

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// seen counts what an informer told, by verb and name.
type seen struct {
	sync.Mutex
	told map[string]int
}

func (s *seen) note(verb string, object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	name, err := cache.MetaNamespaceKeyFunc(object)
	if err != nil {
		name = err.Error()
	}
	s.Lock()
	defer s.Unlock()
	s.told[verb+" "+name]++
}

func (s *seen) count(what string) int {
	s.Lock()
	defer s.Unlock()
	return s.told[what]
}

func listen(informer cache.SharedIndexInformer) (*seen, error) {
	heard := &seen{told: map[string]int{}}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { heard.note("add", object) },
		UpdateFunc: func(_, object any) { heard.note("update", object) },
		DeleteFunc: func(object any) { heard.note("delete", object) },
	})
	return heard, err
}

// changes makes, changes and deletes a config map of that name, and waits until the informer has told of each.
func changes(ctx context.Context, config *rest.Config, name string, heard *seen) error {
	client, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return err
	}
	maps, key := client.CoreV1().ConfigMaps(space), space+"/"+name
	made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := until(ctx, "add", func() (bool, error) { return heard.count("add "+key) == 1, nil }); err != nil {
		return err
	}
	made.Data = map[string]string{"x": "1"}
	if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); !errors.IsConflict(err) {
		return fmt.Errorf("a stale update was answered %v", err)
	}
	if err := until(ctx, "update", func() (bool, error) { return heard.count("update "+key) == 1, nil }); err != nil {
		return err
	}
	if err := maps.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return until(ctx, "delete", func() (bool, error) { return heard.count("delete "+key) == 1, nil })
}

func protobuf(config *rest.Config) *rest.Config {
	typed := rest.CopyConfig(config)
	typed.ContentType = runtime.ContentTypeProtobuf
	typed.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return typed
}

func typedInformer(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(protobuf(config))
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().ConfigMaps()
	heard, err := listen(informer.Informer())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%v was not synced", kind)
		}
	}
	if _, err := informer.Lister().ConfigMaps(space).Get("kube-root-ca.crt"); err != nil {
		return err
	}
	return changes(ctx, config, "typed", heard)
}

func dynamicInformer(ctx context.Context, config *rest.Config) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(configMaps)
	heard, err := listen(informer.Informer())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
		return fmt.Errorf("not synced")
	}
	found, err := informer.Lister().ByNamespace(space).Get("kube-root-ca.crt")
	if err != nil {
		return err
	}
	if data, _, _ := unstructured.NestedString(found.(*unstructured.Unstructured).Object, "data", "ca.crt"); data == "" {
		return fmt.Errorf("no certificate in %v", found)
	}
	return changes(ctx, config, "dynamic", heard)
}

func metadataInformer(ctx context.Context, config *rest.Config) error {
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := metadatainformer.NewSharedInformerFactory(client, 0)
	informer := factory.ForResource(configMaps)
	heard, err := listen(informer.Informer())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.Informer().HasSynced) {
		return fmt.Errorf("not synced")
	}
	found, err := informer.Lister().ByNamespace(space).Get("kube-root-ca.crt")
	if err != nil {
		return err
	}
	if found.(*metav1.PartialObjectMetadata).UID == "" {
		return fmt.Errorf("no uid in %v", found)
	}
	return changes(ctx, config, "metadata", heard)
}
