package pull

import (
	"errors"
	"strings"
	"testing"
)

func TestTarget(t *testing.T) {
	for _, tc := range []struct {
		push  PushOptions
		host  string
		bytes int64
	}{
		{PushOptions{Upstream: "alpha", Layers: 2, Size: "2Mi"}, "alpha.upstream.test", 2 << 20},
		{PushOptions{Upstream: "beta.upstream.test", Layers: 1, Size: "500k"}, "beta.upstream.test", 500000},
		{PushOptions{Upstream: "beta", Layers: 2, Size: "1Gi"}, "beta.upstream.test", 1 << 30},
	} {
		if host, bytes, err := tc.push.target(testHosts); err != nil || host != tc.host || bytes != tc.bytes {
			t.Errorf("%+v: host %s, %d bytes, error %v, want %s and %d", tc.push, host, bytes, err, tc.host, tc.bytes)
		}
	}
}

func TestTargetRefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		push PushOptions
		want string
	}{
		{"unknown upstream", PushOptions{Upstream: "delta", Layers: 1, Size: "1Mi"}, `"delta" is not an upstream of this testbed, use one of alpha`},
		{"half a name", PushOptions{Upstream: "alp", Layers: 1, Size: "1Mi"}, `"alp" is not an upstream`},
		{"no upstream", PushOptions{Layers: 1, Size: "1Mi"}, `"" is not an upstream`},
		{"no layers", PushOptions{Upstream: "alpha", Size: "1Mi"}, "layers: 0"},
		{"too many layers", PushOptions{Upstream: "alpha", Layers: 101, Size: "1Mi"}, "layers: 101"},
		{"no size", PushOptions{Upstream: "alpha", Layers: 1}, `size: ""`},
		{"bad size", PushOptions{Upstream: "alpha", Layers: 1, Size: "2 megs"}, `size: "2 megs"`},
		{"nothing in it", PushOptions{Upstream: "alpha", Layers: 1, Size: "0"}, "size: 0"},
		{"less than nothing", PushOptions{Upstream: "alpha", Layers: 1, Size: "-1Mi"}, "size: -1Mi"},
		{"too large", PushOptions{Upstream: "alpha", Layers: 1, Size: "1025Mi"}, "size: 1025Mi is not between 1 and 1GiB"},
		{"too large for a number", PushOptions{Upstream: "alpha", Layers: 1, Size: "100E"}, "size: 100E"},
		{"too large together", PushOptions{Upstream: "alpha", Layers: 3, Size: "1Gi"}, "3 layers of 1Gi are more than 2GiB"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := tc.push.target(testHosts)
			var invalid *InvalidError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want an InvalidError with %q", err, tc.want)
			}
		})
	}
}
