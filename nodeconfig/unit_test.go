package nodeconfig_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// hostile contains everything that systemd would expand, split or unescape.
var hostile = nodeconfig.Registry{Upstream: `a%h $HOME ${X} "q" 'r' \x41;`, Endpoint: "tab\tnewline\nbell\a", UpstreamURL: `é\`}

func TestUnit(t *testing.T) {
	golden.Compare(t, "unit.service", nodeconfig.Unit([]nodeconfig.Registry{dockerHub, ipv6}, 0))
	golden.Compare(t, "unit-without-registries.service", nodeconfig.Unit(nil, 0))
	golden.Compare(t, "unit-hostile.service", nodeconfig.Unit([]nodeconfig.Registry{hostile}, 0))
}

func TestUnitDoesNotDependOnTheOrder(t *testing.T) {
	registries := []nodeconfig.Registry{dockerHub, ipv6}
	if nodeconfig.Unit(registries, 0) != nodeconfig.Unit([]nodeconfig.Registry{ipv6, dockerHub}, 0) {
		t.Error("another order gives another unit, which restarts it on every node")
	}
	if registries[0].Upstream != dockerHub.Upstream {
		t.Error("the caller's slice is sorted")
	}
}

func TestParseUnitIsTheInverseOfUnit(t *testing.T) {
	for _, registries := range [][]nodeconfig.Registry{nil, {dockerHub}, {ipv6, hostile, dockerHub}} {
		got, err := nodeconfig.ParseUnit(nodeconfig.Unit(registries, 0))
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(registries, func(a, b nodeconfig.Registry) int { return strings.Compare(a.Upstream, b.Upstream) })
		if !reflect.DeepEqual(got, registries) {
			t.Errorf("got %q, want %q", got, registries)
		}
	}
}

// TestUnitChangesWithEachCleanUp checks the unit's comment with the number of clean-ups.
func TestUnitChangesWithEachCleanUp(t *testing.T) {
	registries := []nodeconfig.Registry{dockerHub, ipv6}
	none, one, two := nodeconfig.Unit(registries, 0), nodeconfig.Unit(registries, 1), nodeconfig.Unit(registries, 2)
	if none == one || one == two {
		t.Errorf("the number of clean-ups does not change the unit:\n%s", two)
	}
	if strings.Contains(none, "lean-up") {
		t.Errorf("a unit without clean-ups mentions them:\n%s", none)
	}
	var without []string
	for line := range strings.Lines(two) {
		if !strings.HasPrefix(line, "# Clean-ups of nodes so far: 2.") {
			without = append(without, line)
		}
	}
	if strings.Join(without, "") != none {
		t.Errorf("more than a comment is changed:\n%s", two)
	}
	changed, err := nodeconfig.WithoutUpstreams(two, []string{ipv6.Upstream})
	if err != nil || changed != nodeconfig.Unit([]nodeconfig.Registry{dockerHub}, 2) {
		t.Errorf("error %v, the cleaner changes the unit to:\n%s", err, changed)
	}
}

// unquoted is a unit written by gardener/gardener-extension-registry-cache v0.5 to v0.9.
const unquoted = `[Unit]
Description=Containerd registries configuration unit
Requires=containerd.service

[Service]
Type=simple
ExecStart=/opt/bin/configure-containerd-registries.sh b.test,http://10.0.0.2:5000,https://b.test a.test,http://10.0.0.1:5000,https://a.test
`
