package cleaner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
	"github.com/gardener-extensions/registry-cache/nodeconfig/cleaner"
)

// byNodeAgent returns a hosts.toml as gardener-node-agent writes it.
func byNodeAgent(hosts ...string) string {
	toml := "# managed by gardener-node-agent\nserver = \"https://alpha.test\"\n"
	for _, host := range hosts {
		toml += "\n[host.\"" + host + "\"]\n  capabilities = [\"pull\",\"resolve\"]\n  ca = [\"/etc/containerd/certs.d/ca-bundle.pem\"]\n"
	}
	return toml
}

// TestTakenOver: for gardener-extension-registry-cache, gardener-node-agent writes hosts.toml, and
// removes it only minutes after the cache.
func TestTakenOver(t *testing.T) {
	const endpoint, other = "https://10.0.0.1:5000", "https://10.0.0.2:5000"
	link := func(n *testNode, content string) {
		n.write("/etc/containerd/linked", 0o644, content)
		n.must(os.Symlink("../../linked", filepath.Join(n.root, alphaHosts)))
	}
	for name, test := range map[string]struct {
		content string
		create  func(n *testNode, content string)
		goes    bool
	}{
		"of the cache":                {content: byNodeAgent(endpoint), goes: true},
		"before TLS":                  {content: byNodeAgent("http://10.0.0.1:5000"), goes: true},
		"one of two hosts":            {content: byNodeAgent("https://mirror.test", endpoint), goes: true},
		"of another cache":            {content: byNodeAgent(other)},
		"of another port":             {content: byNodeAgent(endpoint + "0")},
		"of a longer name":            {content: byNodeAgent("https://1" + strings.TrimPrefix(endpoint, "https://"))},
		"below a path":                {content: byNodeAgent(endpoint + "/v2")},
		"of a mirror":                 {content: byNodeAgent("https://mirror.test")},
		"without hosts":               {content: byNodeAgent()},
		"the cache only in a comment": {content: byNodeAgent() + "# [host.\"" + endpoint + "\"]\n"},
		"not by gardener-node-agent":  {content: strings.TrimPrefix(byNodeAgent(endpoint), "# managed by gardener-node-agent")},
		"mark in another line":        {content: "# mine\n" + byNodeAgent(endpoint)},
		"a link to it":                {content: byNodeAgent(endpoint), create: link},
	} {
		for task, request := range map[string]cleaner.Request{
			"upstream removed": {Upstreams: []string{alpha.Upstream}, Endpoints: []string{endpoint}},
			"disabled":         {All: true, Endpoints: []string{other + "1", endpoint}},
		} {
			t.Run(name+", "+task, func(t *testing.T) {
				n := &testNode{t: t, root: t.TempDir(), units: &fakeUnits{}}
				n.must(os.MkdirAll(filepath.Join(n.root, filepath.Dir(alphaHosts)), 0o755))
				if test.create == nil {
					test.create = func(n *testNode, content string) { n.write(alphaHosts, 0o644, content) }
				}
				test.create(n, test.content)
				n.write("/etc/containerd/certs.d/ca-bundle.pem", 0o644, "")
				n.write(betaHosts, 0o644, byNodeAgent(other))
				n.mustClean(request)
				if n.read(betaHosts) != byNodeAgent(other) {
					t.Error("the file of another cache is changed")
				}
				n.read("/etc/containerd/certs.d/ca-bundle.pem")
				if _, err := os.Lstat(filepath.Join(n.root, filepath.Dir(alphaHosts))); os.IsNotExist(err) != test.goes {
					t.Errorf("the file of gardener-node-agent: %v", err)
				}
			})
		}
	}
}

// While such a file exists, the node is not clean.
func TestTakenOverFileThatStaysIsReported(t *testing.T) {
	n := newTestNode(t)
	n.write(alphaHosts, 0o644, byNodeAgent(alpha.Endpoint))
	n.must(os.Chmod(filepath.Join(n.root, filepath.Dir(alphaHosts)), 0o555))
	n.asOrdinaryUser()
	err := n.clean(t.Context(), cleaner.Request{Upstreams: []string{alpha.Upstream}, Endpoints: []string{alpha.Endpoint}})
	if err == nil || !strings.Contains(err.Error(), alphaHosts) {
		t.Errorf("got %v", err)
	}
	n.must(os.Chmod(filepath.Join(n.root, filepath.Dir(alphaHosts)), 0o755))
}

func TestOldFileOfTheExtensionNeedsNoEndpoint(t *testing.T) {
	n := newTestNode(t)
	n.mustClean(cleaner.Request{Upstreams: []string{alpha.Upstream}, Endpoints: []string{"http://10.0.0.9:5000"}})
	n.expectFiles(nodeconfig.UnitPath, nodeconfig.ScriptPath, betaHosts, unmanagedHosts, unmanagedUnit)
}
