package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// wire is between the actuator and the clients. It records all requests and can fail them.
type wire struct {
	// requests are "seed read Kind", "shoot write Kind" and so on, in order.
	requests []string
	// accesses counts how often the client for the shoot was requested.
	accesses int
	// fail, if set, is called before and after each request. Its error is returned to the actuator.
	// number counts from 1.
	fail func(number int, done bool) error
}

var errLost = errors.New("connection lost")

// tap puts a wire between the actuator of the landscape and its clients.
func (l *landscape) tap() *wire {
	w := &wire{}
	l.actuator.client = w.through("seed", l.seed)
	l.actuator.shootClient = func(context.Context, string) (client.Client, error) {
		w.accesses++
		return w.through("shoot", l.shoot), nil
	}
	return w
}

func (w *wire) writes() []string {
	return slices.DeleteFunc(slices.Clone(w.requests), func(r string) bool { return strings.Contains(r, " read ") })
}

func (w *wire) request(ctx context.Context, text string, object any, do func() error) error {
	w.requests = append(w.requests, text+" "+strings.TrimPrefix(fmt.Sprintf("%T", object), "*v1alpha1."))
	number := len(w.requests)
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.fail != nil {
		if err := w.fail(number, false); err != nil {
			return err
		}
	}
	if err := do(); err != nil {
		return err
	}
	if w.fail != nil {
		return w.fail(number, true)
	}
	return nil
}

func (w *wire) through(side string, to client.WithWatch) client.Client {
	return interceptor.NewClient(to, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			return w.request(ctx, side+" read", obj, func() error { return c.Get(ctx, key, obj, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			return w.request(ctx, side+" read", list, func() error { return c.List(ctx, list, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return w.request(ctx, side+" write", obj, func() error { return c.Create(ctx, obj, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return w.request(ctx, side+" write", obj, func() error { return c.Update(ctx, obj, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return w.request(ctx, side+" write", obj, func() error { return c.Patch(ctx, obj, patch, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return w.request(ctx, side+" write", obj, func() error { return c.Delete(ctx, obj, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return w.request(ctx, side+" write", obj, func() error { return c.SubResource(sub).Patch(ctx, obj, patch, opts...) })
		},
	})
}

// byLibrary is the number of requests that Gardener's extension library adds to each
// reconciliation: the finalizer (only the first time), the status before and after, and the removal
// of the operation annotation.
const byLibrary = 4

// TestRequests limits the requests of a reconciliation.
func TestRequests(t *testing.T) {
	for name, upstreams := range map[string][]string{"one cache": {alpha}, "two caches": {alpha, beta}} {
		t.Run(name, func(t *testing.T) {
			l := newLandscape(t, newExtension(upstreams, nil), cluster())
			w := l.tap()
			if err := l.reconcile(t); err != nil {
				t.Fatal(err)
			}
			// The access to the shoot takes one or two more requests.
			if total := len(w.requests) + 2 + byLibrary; total > 15 {
				t.Errorf("the first reconciliation takes %d requests:\n%s", total, strings.Join(w.requests, "\n"))
			}
			want := []string{"seed write *v1.Secret", "seed write ManagedResource", "seed write *v1.Secret", "seed write ManagedResource", "seed write Extension"}
			if got := w.writes(); !slices.Equal(got, want) {
				t.Errorf("the first reconciliation writes %q", got)
			}
			w.requests = nil
			if err := l.reconcile(t); err != nil {
				t.Fatal(err)
			}
			if got := w.writes(); len(got) > 0 {
				t.Errorf("a reconciliation without a change writes %q", got)
			}
			if len(w.requests) > 10 {
				t.Errorf("a reconciliation without a change takes %d requests:\n%s", len(w.requests), strings.Join(w.requests, "\n"))
			}
			if w.accesses != 2 {
				t.Errorf("two reconciliations requested the client for the shoot %d times", w.accesses)
			}
		})
	}
}
