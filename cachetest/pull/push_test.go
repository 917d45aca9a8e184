package pull

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestTarget(t *testing.T) {
	for _, tc := range []struct {
		name string
		push PushOptions
		want Target
	}{
		{
			"random", PushOptions{Upstream: "alpha", Layers: 2, Size: "2Mi"},
			Target{Host: "alpha.upstream.test", Repository: "testbed/x", Tag: "latest", Layers: 2, LayerBytes: 2 << 20},
		},
		{
			"named", PushOptions{Upstream: "beta.upstream.test", Name: "shop/web:v1", Layers: 1, Size: "500k"},
			Target{Host: "beta.upstream.test", Repository: "shop/web", Tag: "v1", Layers: 1, LayerBytes: 500000},
		},
		{
			"the largest", PushOptions{Upstream: "beta", Layers: 2, Size: "1Gi"},
			Target{Host: "beta.upstream.test", Repository: "testbed/x", Tag: "latest", Layers: 2, LayerBytes: 1 << 30},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.push.Target(testHosts, "testbed/x")
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(*got, tc.want) {
				t.Errorf("target %+v, want %+v", *got, tc.want)
			}
		})
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
		{"no upstream", PushOptions{Layers: 1, Size: "1Mi"}, "upstream: required"},
		{"bad name", PushOptions{Upstream: "alpha", Name: "A:b:c", Layers: 1, Size: "1Mi"}, "name: "},
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
			_, err := tc.push.Target(testHosts, "testbed/x")
			var invalid *InvalidError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want an InvalidError with %q", err, tc.want)
			}
		})
	}
}
