package cluster

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

// fakeDocker puts a fake docker command first on the PATH. A file represents its only network. The
// lock is real.
func fakeDocker(t *testing.T) (network, users string) {
	t.Helper()
	dir := t.TempDir()
	network, users = filepath.Join(dir, "network"), filepath.Join(dir, "users")
	script := `#!/bin/sh
case "$1 $2" in
"network ls") [ ! -e ` + network + ` ] || echo id ;;
"network create") [ ! -e ` + network + ` ] && echo "$*" >` + network + ` ;;
"network rm") rm ` + network + ` ;;
"ps --all") [ ! -e ` + users + ` ] || cat ` + users + ` ;;
*) exit 9 ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	before := networkCreation
	networkCreation = filepath.Join(dir, "creation.lock")
	t.Cleanup(func() { networkCreation = before })
	return network, users
}

func present(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestNetworkStaysWhileItIsUsed(t *testing.T) {
	network, users := fakeDocker(t)
	for range 2 { // two testbeds that start at once
		if err := EnsureNetwork(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	created, err := os.ReadFile(network)
	if err != nil || !strings.Contains(string(created), "--label="+networkLabel) {
		t.Fatalf("created by %q, %v: want the testbed's label", created, err)
	}
	remove := func(when string, stays bool) {
		t.Helper()
		if err := RemoveNetwork(t.Context()); err != nil {
			t.Fatal(err)
		}
		if present(network) != stays {
			t.Errorf("%s: network exists: %t, want %t", when, present(network), stays)
		}
	}
	if err := os.WriteFile(users, []byte("container\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	remove("with a container", true)
	if err := os.Remove(users); err != nil {
		t.Fatal(err)
	}
	remove("unused", false)
	remove("gone", false)
}

func TestMissingIPv6(t *testing.T) {
	for _, tc := range []struct {
		name, inspected, want string
	}{
		{"both", "true 172.18.0.0/16 fc00:f853:ccd:e793::/64\n", ""},
		{"IPv6 alone", "true fc00:f853:ccd:e793::/64\n", ""},
		{"IPv4 alone", "false 172.18.0.0/16\n", "no IPv6 subnet (172.18.0.0/16)"},
		{"a range that is switched off", "false 172.18.0.0/16 fc00::/64\n", "no IPv6 subnet"},
		{"switched on without a range", "true 172.18.0.0/16\n", "no IPv6 subnet"},
		{"nothing", "\n", "no IPv6 subnet"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := missingIPv6(tc.inspected)
			if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestIPv6MissingAsksTheKernelOfTheEngine(t *testing.T) {
	fakeDocker(t)
	before := hostIPv6
	t.Cleanup(func() { hostIPv6 = before })
	hostIPv6 = filepath.Join(t.TempDir(), "disable_ipv6")
	if reason, err := IPv6Missing(t.Context(), true); err != nil || !strings.Contains(reason, "kernel") {
		t.Errorf("without the file: %q, %v", reason, err)
	}
	if err := os.WriteFile(hostIPv6, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if reason, err := IPv6Missing(t.Context(), true); err != nil || !strings.Contains(reason, "disabled") {
		t.Errorf("switched off: %q, %v", reason, err)
	}
	// An engine on another machine uses a different kernel. Only that engine's network shows whether
	// it has IPv6. The fake docker cannot inspect the network, so an error is expected.
	if reason, err := IPv6Missing(t.Context(), false); err == nil {
		t.Errorf("an engine elsewhere: %q, want the network to be asked", reason)
	}
}

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

func TestMasquerade(t *testing.T) {
	for name, podCIDRs := range map[string][]string{
		"masquerade.nft":      {"10.244.1.0/24"},
		"masquerade-ipv6.nft": {"fd00:10:244:1::/64"},
		"masquerade-dual.nft": {"10.244.1.0/24", "fd00:10:244:1::/64"},
	} {
		t.Run(name, func(t *testing.T) { golden.Compare(t, name, masquerade(podRanges(podCIDRs))) })
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
