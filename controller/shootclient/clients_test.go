package shootclient

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

const kubeconfig = `{"apiVersion":"v1","kind":"Config","current-context":"c",
"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":"%s"}}],"users":[{"name":"u","user":{"token":"t"}}]}`

func access(namespace, name, server string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Data:       map[string][]byte{"kubeconfig": fmt.Appendf(nil, kubeconfig, server)},
	}
}

func mustGet(t *testing.T, c *Clients, namespace string) client.Client {
	t.Helper()
	got, err := c.For(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestNoDiscovery: a client sends only the requests of its caller.
func TestNoDiscovery(t *testing.T) {
	var asked atomic.Value
	var count atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.Path)
		count.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"NodeList","apiVersion":"v1","items":[]}`))
	}))
	defer server.Close()
	c := New(fake.NewFakeClient(access("one", "gardener", server.URL)), ForSome)
	if err := mustGet(t, c, "one").List(t.Context(), &corev1.NodeList{}); err != nil {
		t.Fatal(err)
	}
	if got := asked.Load(); got != "/api/v1/nodes" || count.Load() != 1 {
		t.Errorf("%d requests, the last for %v", count.Load(), got)
	}
}

func TestClientsAreReused(t *testing.T) {
	seed := fake.NewFakeClient(access("one", "gardener", "http://one"), access("two", "gardener", "http://two"))
	c := New(seed, ForSome)
	first := mustGet(t, c, "one")
	if mustGet(t, c, "one") != first {
		t.Error("a second lookup created another client")
	}
	if mustGet(t, c, "two") == first {
		t.Error("two shoots share a client")
	}
	c.clients.Remove("one")
	if mustGet(t, c, "one") == first {
		t.Error("the client was not dropped")
	}
}

// TestClientsOfAllShoots: a caller that asks every shoot in turn reuses each client.
func TestClientsOfAllShoots(t *testing.T) {
	var objects []client.Object
	for i := range ForSome + 1 {
		objects = append(objects, access(fmt.Sprint(i), "gardener", "http://shoot"))
	}
	c := New(fake.NewClientBuilder().WithObjects(objects...).Build(), ForAll)
	first := mustGet(t, c, "0")
	for i := range objects {
		mustGet(t, c, fmt.Sprint(i))
	}
	if mustGet(t, c, "0") != first {
		t.Error("the client was dropped")
	}
	if c.Forget("0"); mustGet(t, c, "0") == first {
		t.Error("the client of a forgotten shoot was kept")
	}
}

func TestClientsFollowTheSecret(t *testing.T) {
	for name, change := range map[string]func(client.Client, *corev1.Secret) error{
		"changed": func(seed client.Client, s *corev1.Secret) error {
			s.Annotations = map[string]string{"renewed": "now"}
			return seed.Update(t.Context(), s)
		},
		"recreated": func(seed client.Client, s *corev1.Secret) error {
			if err := seed.Delete(t.Context(), s); err != nil {
				return err
			}
			again := access("one", "gardener", "http://one")
			again.UID = "another"
			return seed.Create(t.Context(), again)
		},
		"internal Secret added": func(seed client.Client, _ *corev1.Secret) error {
			return seed.Create(t.Context(), access("one", "gardener-internal", "http://internal"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			secret := access("one", "gardener", "http://one")
			seed := fake.NewFakeClient(secret)
			c := New(seed, ForSome)
			first := mustGet(t, c, "one")
			if err := change(seed, secret); err != nil {
				t.Fatal(err)
			}
			if mustGet(t, c, "one") == first {
				t.Error("the previous client is still used")
			}
		})
	}
}

func TestClientsAreBounded(t *testing.T) {
	const size = 3
	seed := fake.NewFakeClient()
	c := New(seed, size)
	for i := range 10 {
		namespace := fmt.Sprintf("shoot-%d", i)
		if err := seed.Create(t.Context(), access(namespace, "gardener", "http://x")); err != nil {
			t.Fatal(err)
		}
		mustGet(t, c, namespace)
	}
	if got := c.clients.Len(); got != size {
		t.Errorf("%d clients are kept, want %d", got, size)
	}
}

// TestConnectionsGoWithTheirClient checks that a dropped client closes its connection, with
// HTTP/2 over a real socket.
func TestConnectionsGoWithTheirClient(t *testing.T) {
	closed := make(chan struct{}, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"NodeList","apiVersion":"v1","items":[]}`))
	}))
	server.EnableHTTP2 = true
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.StartTLS()
	defer server.Close()
	c := New(fake.NewFakeClient(access("one", "gardener", server.URL+`","insecure-skip-tls-verify":true,"x":"`)), ForSome)
	for range 2 {
		if err := mustGet(t, c, "one").List(t.Context(), &corev1.NodeList{}); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-closed:
		t.Error("the connection was not kept")
	default:
	}
	c.clients.Remove("one")
	select {
	case <-closed:
	case <-time.After(30 * time.Second):
		t.Error("the connection is still open")
	}
}

func TestConcurrentUse(t *testing.T) {
	seed := fake.NewFakeClient(access("one", "gardener", "http://one"), access("two", "gardener", "http://two"))
	c := New(seed, 1)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, err := c.For(t.Context(), []string{"one", "two"}[i%2]); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestErrorsNameTheShoot(t *testing.T) {
	garbled := access("one", "gardener", "http://one")
	garbled.Data["kubeconfig"] = []byte("{")
	c := New(fake.NewFakeClient(garbled), ForSome)
	for _, namespace := range []string{"one", "none"} {
		if _, err := c.For(t.Context(), namespace); err == nil || !strings.Contains(err.Error(), "shoot "+namespace) {
			t.Errorf("error = %v, want it to name shoot %s", err, namespace)
		}
	}
}
