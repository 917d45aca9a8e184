package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/logs"
)

// TestTraceGoesOn checks that a followed trace has the events of a restarted cache, and names the
// cache at the new address of a recreated Service.
func TestTraceGoesOn(t *testing.T) { synctest.Test(t, traceGoesOn) }

func traceGoesOn(t *testing.T) {
	image, err := ParseImage("alpha.upstream.test/shop/web")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	work := newTracer(image, func(event Event) { got = append(got, event.From+" -> "+event.To+" "+event.What) })
	// Each call of find returns the log of another run of the cache, with another Service address.
	looks := 0
	work.find = func(context.Context) ([]logs.Stream, error) {
		looks++
		service, node := corev1.Service{}, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "tb-shoot-worker"}}
		service.Spec.ClusterIP, service.Annotations = fmt.Sprintf("10.96.0.%d", looks), map[string]string{v1alpha3.AnnotationUpstream: image.Host}
		node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.18.0.3"}}
		work.know([]corev1.Service{service}, []corev1.Node{node}, "tb-shoot")
		cache, journal := cacheRun(looks), journalOf(looks)
		work.add([]logs.Stream{cache}, func(source, text string) []Event { return asList(work.reader.CacheLog(source, text)) })
		work.add([]logs.Stream{journal}, work.reader.Containerd)
		return []logs.Stream{cache, journal}, nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
	defer cancel()
	if err := work.run(ctx, Options{Follow: true}); err != nil {
		t.Error(err)
	}
	all := strings.Join(got, "\n")
	for look := 2; look <= looks; look++ { // the first call reads ended pulls
		for _, want := range []string{
			fmt.Sprintf("worker -> registry-alpha-0 GET manifest run%d", look), fmt.Sprintf("worker -> cache alpha HEAD manifest run%d", look),
		} {
			if strings.Count(all, want) != 1 {
				t.Errorf("want %q once", want)
			}
		}
	}
	if looks < 4 || t.Failed() {
		t.Errorf("%d calls of find, events\n%s", looks, all)
	}
}

// TestTraceWithoutCaches checks that events of nodes are shown without the API server. With Follow
// the trace then continues. Without Follow it ends with the error.
func TestTraceWithoutCaches(t *testing.T) {
	for name, follow := range map[string]bool{"followed": true, "not followed": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { traceWithoutCaches(t, follow) })
		})
	}
}

func traceWithoutCaches(t *testing.T, follow bool) {
	image, err := ParseImage("alpha.upstream.test/shop/web")
	if err != nil {
		t.Fatal(err)
	}
	events, refused := 0, errors.New("list the services of the caches: connection refused")
	work := newTracer(image, func(Event) { events++ })
	work.find = func(context.Context) ([]logs.Stream, error) {
		url := "http://10.96.0.1:5000/v2/shop/web/manifests/v1"
		journal := said("worker", fmt.Sprintf("msg=\"trying next host\" method=HEAD error=\"x\" url=%q", url), time.Second)
		open := journal.Open
		journal.Open = func(ctx context.Context, window logs.Window, out io.Writer) error {
			if err := open(ctx, window, out); err != nil || !window.Follow {
				return err
			}
			<-ctx.Done() // the stream continues
			return ctx.Err()
		}
		work.add([]logs.Stream{journal}, work.reader.Containerd)
		return []logs.Stream{journal}, refused
	}
	ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
	defer cancel()
	err = work.run(ctx, Options{Follow: follow, Since: time.Minute})
	if follow && err != nil || !follow && !errors.Is(err, refused) || events == 0 {
		t.Errorf("%d events, error %v", events, err)
	}
}
