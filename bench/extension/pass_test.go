package extension

import (
	"maps"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// TestPass: a Cluster counts for the shoot whose namespace has its name. Other shoots, and requests
// about no shoot, do not count.
func TestPass(t *testing.T) {
	event := func(verb, resource, namespace, name string) auditv1.Event {
		return auditv1.Event{Verb: verb, RequestURI: "/apis", ObjectRef: &auditv1.ObjectReference{Resource: resource, Namespace: namespace, Name: name}}
	}
	seed := []auditv1.Event{
		event("get", "clusters", "", namespaceOf(2)), event("get", "clusters", "", namespaceOf(0)),
		event("get", "secrets", namespaceOf(2), "x"), event("get", "secrets", namespaceOf(3), "x"), event("get", "secrets", "garden", "x"),
		{Verb: "get", RequestURI: "/apis"},
	}
	got := newPass(seed, []auditv1.Event{event("list", "services", "kube-system", "")}, namespaces(2, 4), time.Second)
	want := map[string]float64{"seed: get clusters": 0.5, "seed: get secrets": 1, "shoot: list services": 0.5}
	if !maps.Equal(got.Requests, want) || got.CPU != 0.5 || got.Seconds != 0 {
		t.Errorf("got %+v, want requests %v and a CPU time of 0.5 s", got, want)
	}
}
