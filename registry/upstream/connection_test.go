package upstream

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestForgottenConnection checks that connections that lose their packets without a reset, for
// example because a load balancer has forgotten them, are all replaced at once.
func TestForgottenConnection(t *testing.T) {
	const connections = 12
	var asked atomic.Int32
	all := make(chan struct{})
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if asked.Add(1) == connections {
			close(all)
		}
		<-all
	}))
	defer server.Close()
	balancer := &balancer{to: server.Listener.Addr().String()}
	address := balancer.start(t)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	client := New(t.Context(), Options{URL: &url.URL{Scheme: "https", Host: address}, Roots: roots})
	ask := func(tag string, patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		response, err := client.Do(ctx, http.MethodGet, "library/app", "manifests/"+tag, nil)
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
	var group sync.WaitGroup
	for n := range connections {
		group.Go(func() {
			if err := ask(strconv.Itoa(n), time.Minute); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	balancer.epoch.Add(1)
	// It takes 3 s, and more than 60 s if each request finds another dead connection.
	for end := time.Now().Add(30 * time.Second); ask("v1", Patience) != nil; <-time.After(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the upstream is away, but only for this client")
		}
	}
}

// balancer forwards connections. It drops the packets of connections from before the last change of
// epoch.
type balancer struct {
	to    string
	epoch atomic.Int32
}

func (b *balancer) start(t *testing.T) (address string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := new(net.Dialer).DialContext(t.Context(), "tcp", b.to)
			if err != nil {
				return
			}
			t.Cleanup(func() { _, _ = client.Close(), server.Close() })
			go b.forward(client, server)
			go b.forward(server, client)
		}
	}()
	return listener.Addr().String()
}

func (b *balancer) forward(to io.Writer, from io.Reader) {
	epoch, packet := b.epoch.Load(), make([]byte, 32<<10)
	for {
		n, err := from.Read(packet)
		if err != nil || b.epoch.Load() != epoch {
			return
		}
		_, _ = to.Write(packet[:n])
	}
}
