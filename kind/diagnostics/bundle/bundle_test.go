package bundle

import (
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func read(files map[string]string) *Bundle {
	all := fstest.MapFS{}
	for name, content := range files {
		all[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return Read(all, at)
}

// TestNothing reads an empty folder.
func TestNothing(t *testing.T) {
	b := read(nil)
	if b.Seed.Known || b.Shoot.Known || b.FaultsKnown || len(b.Nodes)+len(b.Upstreams)+len(b.Cached()) > 0 || b.Hibernated() {
		t.Errorf("bundle %+v", b)
	}
	if want := at.Add(-15 * time.Minute); !b.Since.Equal(want) {
		t.Errorf("since %s, want %s", b.Since, want)
	}
}

func TestTexts(t *testing.T) {
	b := read(map[string]string{"reason.txt": "no\n", "versions.txt": " v1\n", "since.txt": "2026-01-02T03:00:00Z\n", "faults.json": "[]", "metrics/summary.txt": "m"})
	if b.Reason != "no" || b.Versions != "v1" || !b.Since.Equal(at.Add(-4*time.Minute-5*time.Second)) || !b.FaultsKnown || b.Metrics != "m" {
		t.Errorf("bundle %+v", b)
	}
	if broken := read(map[string]string{"faults.json": `[{"target":"moon/x"}]`}); broken.FaultsKnown {
		t.Error("damaged faults are known")
	}
}

func TestNode(t *testing.T) {
	folder := "node/registry-cache-shoot-worker2/"
	b := read(map[string]string{
		folder + "units.txt": "Id=kubelet.service\nLoadState=loaded\nActiveState=active\nSubState=running\nResult=success\nNRestarts=2\n\nMainPID=1\n",
		folder + "certs.d.txt": "/etc/containerd/certs.d:\ntotal 0\n==> /etc/containerd/certs.d/b.test/hosts.toml <==\nserver = \"http://b.test\"\n" +
			"[host.\"http://10.0.0.1:5000\"]\n\n==> /etc/containerd/certs.d/b.test/other.toml <==\nx\n==> /etc/containerd/certs.d/a.test/hosts.toml <==\n",
		folder + "probe.txt":     "b.test http://10.0.0.1:5000 000 2.5 timed out for good\nb.test http://b.test 200 0.1 \nhalf a line\nb.test u x y z\n",
		folder + "disk.txt":      "Filesystem Size Used Avail Use% Mounted on\n/dev/vda 1 1 1 96% /var\noverlay 1 1 1 94% /\nnone 1 1 1 100% /proc\n",
		folder + "network.txt":   "eth0 UP 172.18.0.3/16\n\ndefault via 172.18.0.1\n10.244.0.0/24 via 172.18.0.2 dev eth0 \n",
		folder + "firewall.txt":  "table ip nat {\n\tchain table {\n\t}\n}\ntable ip6 nat {\n}\n",
		folder + "processes.txt": "PID STAT ELAPSED COMMAND\n 1 Ss 1 init\n 2 T 1 sleep 9\n 3 t+ 1 traced\n",
	})
	want := Node{
		Name: "registry-cache-shoot-worker2", Units: map[string]Unit{"kubelet.service": {"loaded", "active", "running", "success", 2}}, UnitsKnown: true,
		Mirrors: []nodeconfig.HostConfig{
			{Upstream: "b.test", Hosts: []string{"http://10.0.0.1:5000"}, Server: "http://b.test"}, {Upstream: "a.test", Server: "https://a.test"},
		}, MirrorsKnown: true,
		HostsFiles: map[string]string{"b.test": "server = \"http://b.test\"\n[host.\"http://10.0.0.1:5000\"]\n\n", "a.test": ""},
		Probes:     []Probe{{"b.test", "http://10.0.0.1:5000", 0, 2.5, "timed out for good"}, {"b.test", "http://b.test", 200, 0.1, ""}},
		Routes:     map[string]string{"10.244.0.0/24": "10.244.0.0/24 via 172.18.0.2 dev eth0"}, Tables: []string{"ip nat", "ip6 nat"},
		Stopped: []string{"sleep 9", "traced"}, Full: []string{"/var (96%)"},
	}
	if !reflect.DeepEqual(b.Nodes, []Node{want}) {
		t.Errorf("got  %+v\nwant %+v", b.Nodes, want)
	}
	if got := b.ShortName(want.Name) + " " + b.ShortName("registry-cache-seed-control-plane") + " " + b.ShortName("x"); got != "worker2 seed-control-plane x" {
		t.Errorf("short names %q", got)
	}
}

func TestUpstream(t *testing.T) {
	b := read(map[string]string{
		"upstream/a.test/access.jsonl": `{"path":"/v2/","status":200}` + "\n" + `{"path":"/-/settle"}` + "\nhalf", "upstream/a.test/state.txt": "Exited (1)\n",
		"upstream/b.test/messages.log": "",
	})
	if len(b.Upstreams) != 2 || len(b.Upstreams[0].Records) != 1 || b.Upstreams[0].Running() || !b.Upstreams[1].Running() {
		t.Errorf("upstreams %+v", b.Upstreams)
	}
}

func TestObjects(t *testing.T) {
	b := read(map[string]string{
		"shoot/objects/nodes.yaml": strings.Join([]string{"---", "metadata: {name: registry-cache-shoot-worker}",
			"spec: {podCIDRs: [10.244.1.0/24]}", "status: {addresses: [{address: 172.18.0.3}]}", "---", "a: [broken", "---", "metadata: {name: other}"}, "\n"),
		"seed/objects/extensions.yaml": "---\nmetadata: {namespace: shoot--local--second}\nspec: {type: registry-cache}\n---\nmetadata: {namespace: shoot--local--local}\n" +
			"spec: {type: registry-cache}\nstatus:\n  providerStatus:\n    caches: [{upstream: a.test, endpoint: http://10.0.0.1:5000}]\n",
		"seed/objects/clusters.yaml": "---\nmetadata: {name: shoot--local--local}\nspec:\n  shoot:\n    status: {hibernated: true}\n",
	})
	if len(b.Shoot.Nodes) != 2 || !b.Shoot.Known || b.Seed.Known {
		t.Errorf("nodes %+v", b.Shoot.Nodes)
	}
	if want := []Cached{{"a.test", "http://10.0.0.1:5000"}}; !reflect.DeepEqual(b.Cached(), want) {
		t.Errorf("cached %v", b.Cached())
	}
	if !b.Hibernated() {
		t.Error("not hibernated")
	}
	for address, want := range map[string]string{"172.18.0.3:99": "worker", "10.244.1.1": "worker", "10.244.1.2": "", "nonsense": ""} {
		if got := b.NodeAt(address); got != want {
			t.Errorf("%s is %q, want %q", address, got, want)
		}
	}
}
