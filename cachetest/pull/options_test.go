package pull

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

var (
	testHosts   = []string{"alpha.upstream.test", "beta.upstream.test"}
	testWorkers = []string{"registry-cache-shoot-worker", "registry-cache-shoot-worker2"}
)

func options(change func(*Options)) Options {
	o := Options{Image: "alpha.upstream.test/shop/web:v1", Times: 1, Parallel: 1, Timeout: DefaultTimeout}
	change(&o)
	return o
}

func TestPlan(t *testing.T) {
	first, second := testWorkers[0], testWorkers[1]
	for _, tc := range []struct {
		name   string
		change func(*Options)
		want   []Batch
	}{
		{"the first worker", func(*Options) {}, []Batch{{1, []string{first}}}},
		{"by its last part", func(o *Options) { o.Node = "worker2" }, []Batch{{1, []string{second}}}},
		{"by its last part, the first", func(o *Options) { o.Node = "worker" }, []Batch{{1, []string{first}}}},
		{"by its name", func(o *Options) { o.Node = second }, []Batch{{1, []string{second}}}},
		{"all", func(o *Options) { o.All = true }, []Batch{{1, []string{first}}, {1, []string{second}}}},
		{
			"all at once, twice", func(o *Options) { o.All, o.Times, o.Parallel = true, 2, 2 },
			[]Batch{{1, []string{first, second}}, {2, []string{first, second}}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			plan, err := options(tc.change).Plan(testHosts, testWorkers)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(plan.Batches, tc.want) {
				t.Errorf("batches %v, want %v", plan.Batches, tc.want)
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
			plan, err := options(func(o *Options) { o.Image = image }).Plan(testHosts, testWorkers)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(plan.Image, want) {
				t.Errorf("image %+v, want %+v", plan.Image, want)
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
		{"never", func(o *Options) { o.Times = 0 }, testWorkers, "times: 0"},
		{"too often", func(o *Options) { o.Times = MaxTimes + 1 }, testWorkers, "times: 101"},
		{"none at once", func(o *Options) { o.Parallel = 0 }, testWorkers, "parallel: 0"},
		{"more than nodes", func(o *Options) { o.Parallel = 2 }, testWorkers, "parallel: 2 is more than the number of nodes, 1"},
		{"no time", func(o *Options) { o.Timeout = 0 }, testWorkers, "timeout: 0s"},
		{"too much time", func(o *Options) { o.Timeout = time.Hour }, testWorkers, "timeout: 1h0m0s"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := options(tc.change).Plan(testHosts, tc.workers)
			var invalid *InvalidError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want an InvalidError with %q", err, tc.want)
			}
		})
	}
}
