package controller

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/go-logr/logr"
)

// hangs makes all requests to the shoot time out, as those of a real client do, and counts them.
func (l *landscape) hangs(requests *int) {
	noAnswer := func() error {
		*requests++
		return &url.Error{Op: "Get", URL: "https://shoot.test", Err: context.DeadlineExceeded}
	}
	l.actuator.shootClient = func(context.Context, string) (client.Client, error) {
		return interceptor.NewClient(l.shoot, interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return noAnswer()
			},
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
				return noAnswer()
			},
		}), nil
	}
}

// TestHangingShootIsAskedOnce matters because each request takes the client's timeout of 10
// seconds.
func TestHangingShootIsAskedOnce(t *testing.T) {
	for name, test := range map[string]struct{ wanted, running []string }{
		"for endpoints":           {[]string{alpha}, []string{alpha}},
		"for endpoints, first":    {[]string{alpha}, nil},
		"while nodes are cleaned": {[]string{alpha}, []string{alpha, beta}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLandscape(t, newExtension(test.wanted, test.running), cluster())
			l.actuator.waits.endpoints, l.actuator.waits.cleaned = time.Hour, time.Hour
			var requests int
			l.hangs(&requests)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := l.actuator.Reconcile(ctx, logr.Discard(), l.extension(t))
			if ctx.Err() != nil || requests != 1 {
				t.Errorf("it took %d requests, until %v", requests, ctx.Err())
			}
			if err == nil || !strings.Contains(err.Error(), "shoot.test") || strings.Contains(err.Error(), "not cleaned within") {
				t.Errorf("error = %v", err)
			}
		})
	}
}
