package rig

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

var daemonSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"}

func daemonSet(name string, revision int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "DaemonSet",
		"metadata": map[string]any{"name": name, "namespace": "kube-system", "resourceVersion": strconv.Itoa(revision)},
	}}
}

// record returns a recording of a fake cluster with one object, and the watcher that sends events.
func record(t *testing.T) (*Recording, *watch.FakeWatcher) {
	t.Helper()
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{daemonSets: "DaemonSetList"})
	client.PrependReactor("list", "daemonsets", func(clienttesting.Action) (bool, runtime.Object, error) {
		list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSetList"}}
		list.SetResourceVersion("10")
		list.Items = []unstructured.Unstructured{*daemonSet("before", 3)}
		return true, list, nil
	})
	watcher := watch.NewFake()
	client.PrependWatchReactor("daemonsets", clienttesting.DefaultWatchReactor(watcher, nil))
	recording, err := startRecording(t.Context(), client, daemonSets, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(recording.Stop)
	return recording, watcher
}

func TestRecordsEveryEventInOrder(t *testing.T) {
	recording, watcher := record(t)
	watcher.Add(daemonSet("short-lived", 11))
	watcher.Delete(daemonSet("short-lived", 12))
	watcher.Action(watch.Bookmark, daemonSet("", 13))
	watcher.Add(daemonSet("fence", 14))

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := recording.Await(ctx, Named("fence")); err != nil {
		t.Fatal(err)
	}
	events, err := recording.Events()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range events {
		got = append(got, string(e.Type)+" "+e.Object.GetName()+" "+strconv.FormatUint(e.Revision, 10))
	}
	want := []string{"ADDED before 3", "ADDED short-lived 11", "DELETED short-lived 12", "ADDED fence 14"}
	if !slices.Equal(got, want) {
		t.Errorf("events are %q, want %q", got, want)
	}
	if deleted, ok := FirstEvent(events, Deleted("short-lived")); !ok || deleted.Revision != 12 {
		t.Errorf("the deletion is %+v, %v; want revision 12", deleted, ok)
	}
	if n := len(SelectEvents(events, Named("short-lived"))); n != 2 {
		t.Errorf("%d events of the short-lived object, want 2", n)
	}
}

func TestALostWatchIsAnError(t *testing.T) {
	recording, watcher := record(t)
	gone := apierrors.NewResourceExpired("too old").Status()
	watcher.Error(&gone)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := recording.Await(ctx, Named("anything")); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("error is %v, want the loss of the watch", err)
	}
	if _, err := recording.Events(); err == nil {
		t.Error("Events returns an incomplete recording without an error")
	}
}

func TestAwaitGivesUpWithItsContext(t *testing.T) {
	recording, _ := record(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := recording.Await(ctx, Named("never")); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want context canceled", err)
	}
}

func TestRecordReportsThatItCannotList(t *testing.T) {
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{daemonSets: "DaemonSetList"})
	client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
	})
	if _, err := startRecording(t.Context(), client, daemonSets, metav1.NamespaceAll); !apierrors.IsForbidden(err) {
		t.Errorf("error is %v, want forbidden", err)
	}
}
