package fieldbugs

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	corev1 "k8s.io/api/core/v1"

	"github.com/gardener-extensions/registry-cache/kind/pull"
	"github.com/gardener-extensions/registry-cache/kind/status"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// TestRequireHit checks that a hit has at least one blob, and all its blobs from the cache's store.
func TestRequireHit(t *testing.T) {
	for name, test := range map[string]struct {
		report            *pull.Report
		failed, fallbacks int
		holds             bool
	}{
		"all of the store":        {reportOf(pull.CacheMiss, pull.CacheHit, pull.CacheHit), 0, 0, true},
		"one blob was on the way": {reportOf(pull.CacheHit, pull.CacheHit, pull.CacheMiss), 0, 0, false},
		"one blob past the cache": {reportOf(pull.CacheHit, pull.CacheHit, pull.FromUpstream), 0, 0, false},
		"all were on the node":    {reportOf(pull.FromNode, pull.FromNode, pull.FromNode), 0, 0, false},
		"a fallback":              {reportOf(pull.CacheHit, pull.CacheHit, pull.CacheHit), 0, 1, false},
		"it failed":               {reportOf(pull.CacheHit, pull.CacheHit, pull.Missing), 1, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			test.report.Total.Failed, test.report.Total.Fallbacks = test.failed, test.fallbacks
			var line string
			r := rigOf(func(typed string) string {
				if typed == "shoot get --json" {
					return readyShoot
				}
				line = typed
				answer, _ := json.Marshal(test.report)
				return string(answer)
			})
			_, err := r.requireHit(t.Context(), "alpha.upstream.test/a:latest", "it hits")
			wantClaim(t, r, err, "it hits", test.holds)
			if line != "pull alpha.upstream.test/a:latest --node worker2 --fresh --json" {
				t.Errorf("%s: want --fresh, since images on the node do not test the cache", line)
			}
		})
	}
}

// TestMirrorsFit checks that mirrorsFit requires at least one worker, and the wanted address on
// each worker.
func TestMirrorsFit(t *testing.T) {
	const old = `"hosts": ["http://10.96.0.5:5000"]}]}`
	for name, test := range map[string]struct {
		status string
		want   bool
	}{
		"all have it":        {readyShoot, true},
		"the first has not":  {strings.Replace(readyShoot, old+",", `"hosts": []}]},`, 1), false},
		"the last has not":   {strings.Replace(readyShoot, old+"]}", `"hosts": []}]}]}`, 1), false},
		"another upstream's": {strings.ReplaceAll(readyShoot, "alpha.upstream", "alpha2.upstream"), false},
		"no nodes":           {`{}`, false},
		"no worker":          {`{"nodes": [{"name": "shoot-control-plane"}]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			fits := func(address string) bool { return address == "http://10.96.0.5:5000" }
			if ok, state := mirrorsFit(statusOf(t, test.status).Nodes, "alpha", fits); ok != test.want {
				t.Errorf("%t, want %t: %s", ok, test.want, state)
			}
		})
	}
}

func TestEndpoint(t *testing.T) {
	r := rigOf(func(string) string { return readyShoot })
	if address, err := r.endpoint(t.Context(), "alpha"); address != "http://10.96.0.5:5000" || err != nil {
		t.Errorf("%q, %v", address, err)
	}
	if address, err := r.endpoint(t.Context(), "beta"); err == nil {
		t.Errorf("beta has no mirror, and its address is %q", address)
	}
}

func TestFirstHost(t *testing.T) {
	node := status.Node{Mirrors: []nodeconfig.HostConfig{
		{Upstream: "beta.upstream.test", Hosts: []string{"http://b", "http://beta.upstream.test"}}, {Upstream: "gamma.upstream.test"},
	}}
	for upstream, want := range map[string]string{"beta": "http://b", "gamma": "", "alpha": ""} {
		if got := firstHost(node, host(upstream)); got != want {
			t.Errorf("%s: %q, want %q", upstream, got, want)
		}
	}
}

func TestShortNode(t *testing.T) {
	for name, want := range map[string]string{"registry-cache-shoot-worker2": "worker2", "worker": "worker", "": ""} {
		if got := shortNode(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestIsReady(t *testing.T) {
	for name, test := range map[string]struct {
		conditions []corev1.PodCondition
		want       bool
	}{
		"ready":        {[]corev1.PodCondition{{Type: corev1.PodScheduled}, {Type: corev1.PodReady, Status: corev1.ConditionTrue}}, true},
		"not ready":    {[]corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}, false},
		"initialized":  {[]corev1.PodCondition{{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}}, false},
		"without any":  {nil, false},
		"ready, maybe": {[]corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionUnknown}}, false},
	} {
		if got := health.IsPodReady(&corev1.Pod{Status: corev1.PodStatus{Conditions: test.conditions}}); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

func TestCAFile(t *testing.T) {
	for hosts, want := range map[string]string{
		"server = \"https://a\"\nca = \"hosts.toml\"\n":                   "hosts.toml",
		"[host.\"https://b\"]\n  ca = [\"/etc/ca.pem\"]\n":                "/etc/ca.pem",
		"server = \"https://a\"\n[host.\"http://ca\"]\n":                  "",
		"capabilities = [\"pull\"]\n# ca = \"x\"\ncapath = \"nothing\"\n": "",
		"": "",
	} {
		if got := caFile(hosts); got != want {
			t.Errorf("%q: %q, want %q", hosts, got, want)
		}
	}
}

// TestCountFiles checks the path of a blob in the store, and the number of blobs that are found.
func TestCountFiles(t *testing.T) {
	store := volume{node: "worker", folder: "/volume"}
	blobs := []pull.Object{{Digest: "sha256:" + strings.Repeat("ab", 32)}, {Digest: "sha256:" + strings.Repeat("cd", 32)}}
	if got, want := store.blob(blobs[0]), "/volume/docker/registry/v2/blobs/sha256/ab/"+strings.Repeat("ab", 32)+"/data"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	var line string
	r := rigOf(func(typed string) string {
		line = typed
		return "/volume/a\n/volume/b\n"
	})
	if found, err := r.countFiles(t.Context(), store, blobs); found != 2 || err != nil {
		t.Errorf("%d, %v", found, err)
	}
	want := []string{"exec", "worker", "--", "find", "/volume", "-name", "data", "(", "-path", "*/" + blobs[0].Digest[7:] + "/data", "-o", "-path",
		"*/" + blobs[1].Digest[7:] + "/data", ")"}
	if !slices.Equal(strings.Fields(line), want) {
		t.Errorf("%s, want %q", line, want)
	}
}
