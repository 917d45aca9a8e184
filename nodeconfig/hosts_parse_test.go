package nodeconfig_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

func TestParseHosts(t *testing.T) {
	managed := hostsTOML(nodeconfig.Registry{
		Upstream: "alpha.test", Endpoint: "http://10.96.0.7:5000", UpstreamURL: "http://alpha.test:8080",
	})
	for _, tc := range []struct {
		name, content string
		want          nodeconfig.HostConfig
	}{
		{"managed", managed, nodeconfig.HostConfig{
			Upstream: "alpha.test", Hosts: []string{"http://10.96.0.7:5000"}, Server: "http://alpha.test:8080", Managed: true,
		}},
		{"unmanaged, two hosts, no server", "[host.\"http://b\"]\nserver = \"no\"\n[host.\"http://a\"]\n", nodeconfig.HostConfig{
			Upstream: "alpha.test", Hosts: []string{"http://b", "http://a"}, Server: "https://alpha.test",
		}},
		{"inline, for containerd 1", "server = \"http://s\"\n[host]\n  \"http://[fd00::7]:5000\" = {capabilities = [\"pull\"]}\n", nodeconfig.HostConfig{
			Upstream: "alpha.test", Hosts: []string{"http://[fd00::7]:5000"}, Server: "http://s",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := nodeconfig.ParseHosts("alpha.test", []byte(tc.content)); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v\nwant %+v", got, tc.want)
			}
		})
	}
	t.Run("broken", func(t *testing.T) {
		if got := nodeconfig.ParseHosts("alpha.test", []byte("server = ")); !strings.Contains(got.Problem, "cannot read") {
			t.Errorf("problem = %q", got.Problem)
		}
	})
}
