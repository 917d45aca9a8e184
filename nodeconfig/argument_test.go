package nodeconfig_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

func TestParseArgumentIsTheInverseOfArgument(t *testing.T) {
	for name, change := range map[string]func(r *nodeconfig.Registry){
		"both":          func(*nodeconfig.Registry) {},
		"endpoint only": func(r *nodeconfig.Registry) { r.UpstreamCA = nil },
		"upstream only": func(r *nodeconfig.Registry) { r.EndpointCA = nil },
		"none":          func(r *nodeconfig.Registry) { r.EndpointCA, r.UpstreamCA = nil, nil },
		"two of each": func(r *nodeconfig.Registry) {
			r.EndpointCA, r.UpstreamCA = []byte(golden.CACertificate+golden.CACertificate), []byte(golden.CACertificate+golden.CACertificate)
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := trusting
			change(&want)
			if got, err := nodeconfig.ParseArgument(want.Argument()); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, %v from %s", got, err, want.Argument())
			}
			unit := nodeconfig.Unit([]nodeconfig.Registry{want, dockerHub}, 0)
			if got, err := nodeconfig.ParseUnit(unit); err != nil || !reflect.DeepEqual(got, []nodeconfig.Registry{want, dockerHub}) {
				t.Errorf("got %+v, %v from the unit", got, err)
			}
		})
	}
}

// TestWithoutUpstreamsKeepsCertificates: the remaining upstreams keep their certificates, even if
// another version of the extension wrote the unit (here with another RestartSec).
func TestWithoutUpstreamsKeepsCertificates(t *testing.T) {
	unit := strings.Replace(nodeconfig.Unit([]nodeconfig.Registry{trusting, dockerHub}, 0), "RestartSec=5\n", "RestartSec=31\n", 1)
	changed, err := nodeconfig.WithoutUpstreams(unit, []string{dockerHub.Upstream})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := nodeconfig.ParseUnit(changed); err != nil || !reflect.DeepEqual(got, []nodeconfig.Registry{trusting}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if otherLines(changed) != otherLines(unit) {
		t.Errorf("other lines are changed:\n%s", changed)
	}
}

func TestParseArgumentRefuses(t *testing.T) {
	for _, argument := range []string{"", "a", "a,b", "a,,c", "a,b,c,MIIB!", "a,b,c,,MIIB!", "a,b,c,MII", "a,b,c,.", "a,b,c,,,", "a,b,c,,,f"} {
		if registry, err := nodeconfig.ParseArgument(argument); err == nil {
			t.Errorf("%q is accepted as %+v", argument, registry)
		}
	}
	for _, argument := range []string{"a,b,c", "a,b,c,", "a,b,c,,"} {
		if _, err := nodeconfig.ParseArgument(argument); err != nil {
			t.Errorf("error for empty certificates: %v", err)
		}
	}
}
