package cluster

import (
	"reflect"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

func TestConflist(t *testing.T) {
	for name, podCIDRs := range map[string][]string{
		"conflist.json":      {"10.244.1.0/24"},
		"conflist-ipv6.json": {"fd00:10:244:1::/64"},
		"conflist-dual.json": {"10.244.1.0/24", "fd00:10:244:1::/64"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := conflist(podCIDRs)
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name, string(got)+"\n")
		})
	}
}

func TestRoutesOfEachFamily(t *testing.T) {
	ips := func(number string) []string { return []string{"172.18.0." + number, "fc00::" + number} }
	for _, tc := range []struct {
		name string
		all  []address
		want []route
	}{
		{"IPv4 on nodes with both", []address{{"a", ips("2"), []string{"10.244.0.0/24"}}, {"b", ips("3"), []string{"10.244.1.0/24"}}},
			[]route{{"10.244.1.0/24", "172.18.0.3"}}},
		{"IPv6", []address{{"a", ips("2"), []string{"fd00::/64"}}, {"b", ips("3"), []string{"fd00:0:0:1::/64"}}},
			[]route{{"fd00:0:0:1::/64", "fc00::3"}}},
		{"both", []address{{"a", ips("2"), []string{"10.244.0.0/24", "fd00::/64"}}, {"b", ips("3"), []string{"10.244.1.0/24", "fd00:0:0:1::/64"}}},
			[]route{{"10.244.1.0/24", "172.18.0.3"}, {"fd00:0:0:1::/64", "fc00::3"}}},
		{"a node without its IPv6 address", []address{{"a", ips("2"), nil}, {"b", ips("3")[:1], []string{"10.244.1.0/24", "fd00:0:0:1::/64"}}},
			[]route{{"10.244.1.0/24", "172.18.0.3"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := routesOf("a", tc.all); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
	changes := routeCommands([]route{{"fd00:0:0:9::/64", "fc00::9"}}, []route{{"fd00:0:0:1::/64", "fc00::3"}})
	want := [][]string{
		{"ip", "-6", "route", "del", "fd00:0:0:9::/64", "via", "fc00::9", "proto", "99"},
		{"ip", "-6", "route", "replace", "fd00:0:0:1::/64", "via", "fc00::3", "proto", "99"},
	}
	if !reflect.DeepEqual(changes, want) {
		t.Errorf("commands %q, want %q", changes, want)
	}
}

func TestRoutes(t *testing.T) {
	all := []address{
		{"cp", []string{"172.18.0.2"}, []string{"10.244.0.0/24"}},
		{"worker", []string{"172.18.0.3"}, []string{"10.244.1.0/24"}},
		{"worker2", []string{"172.18.0.4"}, []string{"10.244.2.0/24"}},
	}
	wanted := routesOf("worker", all)
	tests := []struct {
		name    string
		present string // what ip prints
		want    []string
	}{
		{"fresh node", "[]", []string{
			"ip route replace 10.244.0.0/24 via 172.18.0.2 proto 99", "ip route replace 10.244.2.0/24 via 172.18.0.4 proto 99"}},
		{"ip prints nothing", "", []string{
			"ip route replace 10.244.0.0/24 via 172.18.0.2 proto 99", "ip route replace 10.244.2.0/24 via 172.18.0.4 proto 99"}},
		{"up to date", `[{"dst":"10.244.2.0/24","gateway":"172.18.0.4","dev":"eth0"},{"dst":"10.244.0.0/24","gateway":"172.18.0.2","flags":[]}]`, nil},
		{"a node has joined again with another range", `[{"dst":"10.244.0.0/24","gateway":"172.18.0.2"},{"dst":"10.244.9.0/24","gateway":"172.18.0.4"}]`,
			[]string{"ip route del 10.244.9.0/24 via 172.18.0.4 proto 99", "ip route replace 10.244.2.0/24 via 172.18.0.4 proto 99"}},
		{"a node came back with another address", `[{"dst":"10.244.0.0/24","gateway":"172.18.0.9"},{"dst":"10.244.2.0/24","gateway":"172.18.0.4"}]`,
			[]string{"ip route del 10.244.0.0/24 via 172.18.0.9 proto 99", "ip route replace 10.244.0.0/24 via 172.18.0.2 proto 99"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			present, err := parseRoutes(tc.present)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, argv := range routeCommands(present, wanted) {
				got = append(got, strings.Join(argv, " "))
			}
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
