package nodeconfig_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

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
