package cleaner_test

import (
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
	"github.com/gardener-extensions/registry-cache/nodeconfig/cleaner"
)

// authority is a certificate as the unit holds it.
const authority = `-----BEGIN CERTIFICATE-----
MIIBeDCCAR+gAwIBAgIUK1XqEpTBUn/9kYpUCXx/e1Lt0GgwCgYIKoZIzj0EAwIw
ETEPMA0GA1UEAwwGZ29sZGVuMCAXDTI2MTEyMTEyMjAxNFoYDzIxMjYxMDI4MTIy
MDE0WjARMQ8wDQYDVQQDDAZnb2xkZW4wWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC
AAQTN8uF6ry0da2jD3Ex7Mhd82z5BX6BJ7mYLzEA1iEdKFa8mFBG+P8rcpnlycp3
4KgpfM9zT4FjvR74cYD5ifESo1MwUTAdBgNVHQ4EFgQUK33RJhUFIJ8n/EnQQ13m
21UhqM0wHwYDVR0jBBgwFoAUK33RJhUFIJ8n/EnQQ13m21UhqM0wDwYDVR0TAQH/
BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiAdXHR7QEKnsTV3laKSxbNv+YZ2R06b
Q7AP3bdNjOL6XgIgUsTWvybdOlGav+EOo2R8owwfTVnDmLg4ikKXL/XtmyU=
-----END CERTIFICATE-----
`

// Files with certificates go as any other of ours, also the one by which pulls are direct; those of a remaining upstream
// stay, and so do its certificates in the unit.
func TestCertificatesAreCleaned(t *testing.T) {
	secure, kept := alpha, beta
	secure.Endpoint, secure.EndpointCA, secure.UpstreamCA = "https://10.0.0.1:5000", []byte(authority), []byte(authority)
	kept.Endpoint, kept.EndpointCA = "https://10.0.0.2:5000", []byte(authority)
	direct := secure
	direct.Endpoint = ""
	for name, hosts := range map[string]string{
		"mirrored":         nodeconfig.HostsTOML(secure),
		"direct":           nodeconfig.HostsTOML(direct),
		"damaged":          strings.Replace(nodeconfig.HostsTOML(secure), "MI", "''", 1),
		"mirrored by HTTP": nodeconfig.HostsTOML(alpha),
	} {
		t.Run(name, func(t *testing.T) {
			n := newTestNode(t)
			n.write(nodeconfig.UnitPath, 0o600, nodeconfig.Unit([]nodeconfig.Registry{secure, kept}))
			n.write(alphaHosts, 0o644, hosts)
			n.write(betaHosts, 0o644, nodeconfig.HostsTOML(kept))
			n.mustClean(removeAlpha)
			n.expectCalls(stop, "reload", start)
			n.expectFiles(nodeconfig.UnitPath, nodeconfig.ScriptPath, betaHosts, foreignHosts, foreignUnit)
			if got := n.read(nodeconfig.UnitPath); got != nodeconfig.Unit([]nodeconfig.Registry{kept}) {
				t.Errorf("the unit is:\n%s", got)
			}
			if got := n.read(betaHosts); got != nodeconfig.HostsTOML(kept) {
				t.Errorf("hosts.toml of beta is:\n%s", got)
			}
			n.mustClean(disableAll)
			n.expectFiles(foreignHosts, foreignUnit, "/opt/bin")
		})
	}
}

// A node that gardener-node-agent has not updated yet has the unit of an older version, and a unit of a newer one must
// not be run with arguments that are not understood.
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
			n.expectFiles(nodeconfig.UnitPath, nodeconfig.ScriptPath, betaHosts, foreignHosts, foreignUnit)
		})
	}
}
