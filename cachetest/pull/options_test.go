package pull

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	testHosts   = []string{"alpha.upstream.test", "beta.upstream.test"}
	testWorkers = []string{"registry-cache-shoot-worker", "registry-cache-shoot-worker2"}
)

func options(change func(*Options)) Options {
	o := Options{Image: "alpha.upstream.test/shop/web:v1", Timeout: DefaultTimeout}
	change(&o)
	return o
}

func TestPlan(t *testing.T) {
	first, second := testWorkers[0], testWorkers[1]
	for _, tc := range []struct {
		name   string
		change func(*Options)
		want   []string
	}{
		{"the first worker", func(*Options) {}, []string{first}},
		{"by its last part", func(o *Options) { o.Node = "worker2" }, []string{second}},
		{"by its last part, the first", func(o *Options) { o.Node = "worker" }, []string{first}},
		{"by its name", func(o *Options) { o.Node = second }, []string{second}},
		{"all", func(o *Options) { o.All = true }, []string{first, second}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, nodes, err := options(tc.change).Plan(testHosts, testWorkers)
			if err != nil || !slices.Equal(nodes, tc.want) {
				t.Errorf("nodes %v, error %v, want %v", nodes, err, tc.want)
			}
		})
	}
}

func TestPlanReadsTheReference(t *testing.T) {
	const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for image, want := range map[string]Image{
		"alpha.upstream.test/shop/web:v1": {
			Reference: "alpha.upstream.test/shop/web:v1", Host: "alpha.upstream.test", Repository: "shop/web", Identifier: "v1",
		},
		"beta.upstream.test/web": {
			Reference: "beta.upstream.test/web:latest", Host: "beta.upstream.test", Repository: "web", Identifier: "latest",
		},
		"beta.upstream.test/web@" + digest: {
			Reference: "beta.upstream.test/web@" + digest, Host: "beta.upstream.test", Repository: "web", Identifier: digest,
		},
	} {
		t.Run(image, func(t *testing.T) {
			got, _, err := options(func(o *Options) { o.Image = image }).Plan(testHosts, testWorkers)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("image %+v, error %v, want %+v", got, err, want)
			}
		})
	}
}

func TestPlanRefuses(t *testing.T) {
	for _, tc := range []struct {
		name    string
		change  func(*Options)
		workers []string
		want    string
	}{
		{"no image", func(o *Options) { o.Image = "" }, testWorkers, "image: "},
		{"bad image", func(o *Options) { o.Image = "alpha.upstream.test/A B" }, testWorkers, "image: "},
		{"an option for crictl", func(o *Options) { o.Image = "--help" }, testWorkers, "image: "},
		{"another host", func(o *Options) { o.Image = "nginx" }, testWorkers, "use one of alpha.upstream.test, beta.upstream.test"},
		{"unknown node", func(o *Options) { o.Node = "worker3" }, testWorkers, "use one of registry-cache-shoot-worker, "},
		{"a part of a part", func(o *Options) { o.Node = "er" }, testWorkers, "er is not a worker"},
		{"node and all", func(o *Options) { o.Node, o.All = "worker", true }, testWorkers, "node: worker and all"},
		{"no worker", func(*Options) {}, nil, "the shoot has no workers"},
		{"no time", func(o *Options) { o.Timeout = 0 }, testWorkers, "timeout: 0s"},
		{"too much time", func(o *Options) { o.Timeout = time.Hour }, testWorkers, "timeout: 1h0m0s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := options(tc.change).Plan(testHosts, tc.workers)
			var invalid *InvalidError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want an InvalidError with %q", err, tc.want)
			}
		})
	}
}
