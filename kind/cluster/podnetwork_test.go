package cluster

import (
	"reflect"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

func TestConflist(t *testing.T) {
	got, err := conflist("10.244.1.0/24")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "conflist.json", string(got)+"\n")
}

func TestRoutes(t *testing.T) {
	all := []address{
		{"cp", "172.18.0.2", "10.244.0.0/24"},
		{"worker", "172.18.0.3", "10.244.1.0/24"},
		{"worker2", "172.18.0.4", "10.244.2.0/24"},
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
