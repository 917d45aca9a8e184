package cleaner_test

import (
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
	"github.com/gardener-extensions/registry-cache/nodeconfig/cleaner"
)

// Clean also removes files that contain certificates, including files for direct pulls. Upstreams
// that are not removed keep their files, and their certificates in the unit.
func TestCertificatesAreCleaned(t *testing.T) {
	secure, kept := alpha, beta
	secure.Endpoint, secure.EndpointCA, secure.UpstreamCA = "https://10.0.0.1:5000", []byte(golden.CACertificate), []byte(golden.CACertificate)
	kept.Endpoint, kept.EndpointCA = "https://10.0.0.2:5000", []byte(golden.CACertificate)
	direct := secure
	direct.Endpoint = ""
	for name, hosts := range map[string]string{
		"mirrored":         hostsTOML(secure),
		"direct":           hostsTOML(direct),
		"damaged":          strings.Replace(hostsTOML(secure), "MI", "''", 1),
		"mirrored by HTTP": hostsTOML(alpha),
	} {
		t.Run(name, func(t *testing.T) {
			n := newTestNode(t)
			n.write(nodeconfig.UnitPath, 0o600, nodeconfig.Unit([]nodeconfig.Registry{secure, kept}, 0))
			n.write(alphaHosts, 0o644, hosts)
			n.write(betaHosts, 0o644, hostsTOML(kept))
			n.mustClean(removeAlpha)
			n.expectCalls(stop, "reload", start)
			n.expectFiles(nodeconfig.UnitPath, nodeconfig.ScriptPath, betaHosts, unmanagedHosts, unmanagedUnit)
			if got := n.read(nodeconfig.UnitPath); got != nodeconfig.Unit([]nodeconfig.Registry{kept}, 0) {
				t.Errorf("the unit is:\n%s", got)
			}
			if got := n.read(betaHosts); got != hostsTOML(kept) {
				t.Errorf("hosts.toml of beta is:\n%s", got)
			}
			n.mustClean(disableAll)
			n.expectFiles(nodeconfig.UnitPath, nodeconfig.ScriptPath, unmanagedHosts, unmanagedUnit)
		})
	}
}

// The unit may be from an older version of the extension until gardener-node-agent updates the
// node. If a newer version wrote the unit and Clean cannot parse it, Clean must not start it.
func TestUnitsOfOtherVersions(t *testing.T) {
	const run = "[Service]\nType=simple\nExecStart=" + nodeconfig.ScriptPath
	const betaArgument = " beta.test:5000,http://10.0.0.2:5000,https://beta.test:5000"
	for name, test := range map[string]struct {
		unit, want string
		calls      []string
	}{
		"older": {
			run + " alpha.test,http://10.0.0.1:5000,https://alpha.test" + betaArgument + "\n",
			run + ` "beta.test:5000,http://10.0.0.2:5000,https://beta.test:5000"` + "\n",
			[]string{stop, "reload", start},
		},
		"newer": {run + betaArgument + ",,,something\n", run + betaArgument + ",,,something\n", []string{stop}},
	} {
		t.Run(name, func(t *testing.T) {
			n := newTestNode(t)
			n.write(nodeconfig.UnitPath, 0o644, test.unit)
			if err := n.clean(t.Context(), cleaner.Request{Upstreams: []string{alpha.Upstream}}); err != nil {
				t.Fatal(err)
			}
			n.expectCalls(test.calls...)
			if got := n.read(nodeconfig.UnitPath); got != test.want {
				t.Errorf("the unit is:\n%s", got)
			}
			n.expectFiles(nodeconfig.UnitPath, nodeconfig.ScriptPath, betaHosts, unmanagedHosts, unmanagedUnit)
		})
	}
}
