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

// gardener-node-agent writes a unit only if it differs from the last one.
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
		t.Errorf("the cleaner changes it to, %v:\n%s", err, changed)
	}
}

// unquoted is a unit written by gardener-extension-registry-cache v0.5 to v0.9.
const unquoted = `[Unit]
Description=Containerd registries configuration unit
Requires=containerd.service

[Service]
Type=simple
ExecStart=/opt/bin/configure-containerd-registries.sh b.test,http://10.0.0.2:5000,https://b.test a.test,http://10.0.0.1:5000,https://a.test
`

func TestWithoutUpstreams(t *testing.T) {
	for name, test := range map[string]struct {
		unit string
		gone []string
		want []string
	}{
		"one of two":            {nodeconfig.Unit([]nodeconfig.Registry{dockerHub, ipv6}, 0), []string{"docker.io"}, []string{ipv6.Upstream}},
		"all":                   {nodeconfig.Unit([]nodeconfig.Registry{dockerHub, ipv6}, 0), []string{"docker.io", ipv6.Upstream}, nil},
		"none of them":          {nodeconfig.Unit([]nodeconfig.Registry{dockerHub}, 0), []string{"docker", "docker.io:5000", ""}, []string{"docker.io"}},
		"of another extension":  {unquoted, []string{"a.test"}, []string{"b.test"}},
		"a unit without any":    {nodeconfig.Unit(nil, 0), []string{"a.test"}, nil},
		"a hostile one is kept": {nodeconfig.Unit([]nodeconfig.Registry{hostile, dockerHub}, 0), []string{"docker.io"}, []string{hostile.Upstream}},
	} {
		t.Run(name, func(t *testing.T) {
			changed, err := nodeconfig.WithoutUpstreams(test.unit, test.gone)
			if err != nil {
				t.Fatal(err)
			}
			registries, err := nodeconfig.ParseUnit(changed)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, registry := range registries {
				got = append(got, registry.Upstream)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if otherLines(changed) != otherLines(test.unit) {
				t.Errorf("other lines are changed:\n%s", changed)
			}
		})
	}
}

func otherLines(unit string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(unit, "\n"), func(line string) bool {
		return strings.HasPrefix(line, "ExecStart=")
	}), "\n")
}

func TestParseUnitRefusesWhatItDoesNotUnderstand(t *testing.T) {
	const run = "ExecStart=" + nodeconfig.ScriptPath
	for name, unit := range map[string]string{
		"nothing":          "",
		"no command":       "[Service]\nType=simple\n",
		"empty command":    "ExecStart=\n",
		"another command":  "ExecStart=/bin/true a,b,c\n",
		"too few parts":    run + " a,b\n",
		"too many parts":   run + " a,b,c,d\n",
		"empty part":       run + " a,,c\n",
		"a specifier":      run + " a,%h,c\n",
		"quoted specifier": run + ` "a,%h,c"` + "\n",
		"a variable":       run + " a,$b,c\n",
		"open quote":       run + ` "a,b,c` + "\n",
		"no space":         run + ` "a,b,c"d` + "\n",
		"unknown escape":   run + ` "a,b,\q"` + "\n",
		"bad hex":          run + ` "a,b,\xzz"` + "\n",
		"continued":        run + " a,b,c \\\n  d,e,f\n",
	} {
		t.Run(name, func(t *testing.T) {
			if registries, err := nodeconfig.ParseUnit(unit); err == nil {
				t.Errorf("accepted as %q", registries)
			}
			if _, err := nodeconfig.WithoutUpstreams(unit, []string{"a"}); err == nil {
				t.Error("WithoutUpstreams accepts it")
			}
		})
	}
}

// FuzzUnit checks that no text escapes from its word in the command line, and that parsing never
// panics.
func FuzzUnit(f *testing.F) {
	f.Add(hostile.Upstream, hostile.Endpoint, hostile.UpstreamURL)
	f.Add(`"`, "\x00", "\\x22")
	f.Fuzz(func(t *testing.T, upstream, endpoint, url string) {
		_, _ = nodeconfig.ParseUnit(upstream + endpoint + url)
		if upstream == "" || endpoint == "" || url == "" || strings.Contains(upstream+endpoint+url, ",") {
			return
		}
		want := nodeconfig.Registry{Upstream: upstream, Endpoint: endpoint, UpstreamURL: url}
		got, err := nodeconfig.ParseUnit(nodeconfig.Unit([]nodeconfig.Registry{want}, 0))
		if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	})
}
