package configuration

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

const header = "apiVersion: testbed.registry.extensions.gardener.cloud/v1alpha1\nkind: Testbed\n"

func read(t *testing.T, text string) (*Testbed, error) {
	t.Helper()
	return Read("testbed.yaml", t.TempDir(), strings.NewReader(text))
}

// TestExampleIsTheDefault: the example spells out the defaults, and an empty file has the same
// ones.
func TestExampleIsTheDefault(t *testing.T) {
	example, err := Load("../../examples/testbed/testbed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	empty, err := read(t, header)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]*Testbed{"example": example, "empty file": empty} {
		if !reflect.DeepEqual(got, Default()) {
			t.Errorf("%s: got %+v, want %+v", name, got, Default())
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"nothing", "", "must begin with\napiVersion: testbed.registry"},
		{"comments alone", "# apiVersion\n---\n# more\n", "must begin with"},
		{"no YAML", "shoot: [", "testbed.yaml: "},
		{"another version", "apiVersion: testbed.registry.extensions.gardener.cloud/v1\nkind: Testbed\nnew: true\n", `v1alpha1 and kind Testbed, not "testbed.registry.extensions.gardener.cloud/v1" and "Testbed"`},
		{"another kind", "apiVersion: kind.x-k8s.io/v1alpha4\nkind: Cluster\n", `not "kind.x-k8s.io/v1alpha4" and "Cluster"`},
		{"no version", "shoot: {}\n", `not "" and ""`},
		{"two documents", header + "---\n" + header, "more than one document"},
		{"a list", "[1]\n", "want an object, not a array"},
		{"unknown field", header + "shoot:\n  wrokers: 3\n", `unknown field "shoot.wrokers"`},
		{"unknown field, wrong case", header + "shoot:\n  Workers: 3\n", `unknown field "shoot.Workers"`},
		{"unknown field in a list", header + "upstreams:\n- name: alpha\n  cache: true\n", `unknown field "upstreams[0].cache"`},
		{"two unknown fields", header + "a: 1\nb: 2\n", `unknown field "a", unknown field "b"`},
		{"a field twice", header + "nodeImage: a\nnodeImage: b\n", `key "nodeImage" already set in map`},
		{"wrong type", header + "shoot:\n  workers: many\n", "shoot.workers: Invalid value: want int, not string"},
		{"wrong type, deep", header + "shoot:\n  containerd:\n    pull: 7\n", "shoot.containerd.pull: Invalid value: want configuration.PullPath, not number"},
		{"too long", header + "nodeImage: " + strings.Repeat("x", maxBytes), "longer than 1 MiB"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := read(t, tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "testbed.yaml: ") {
				t.Errorf("got %+v, error %v, want one with %q", got, err, tc.want)
			}
		})
	}
}

func TestManifestIsRelativeToTheFile(t *testing.T) {
	for path, want := range map[string]string{"shoots/a.yaml": "/somewhere/shoots/a.yaml", "../a.yaml": "/a.yaml", "/b/a.yaml": "/b/a.yaml"} {
		got, err := Read("testbed.yaml", "/somewhere", strings.NewReader(header+"shoot:\n  manifest: "+path+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got.Shoot.Manifest != want {
			t.Errorf("%s: got %s, want %s", path, got.Shoot.Manifest, want)
		}
		if got.Upstreams[0].Cached != nil || len(got.Cached()) > 0 {
			t.Errorf("%s: the manifest says what is cached, not %v", path, got.Cached())
		}
	}
}

// TestEncode: Read returns what Encode was given.
func TestEncode(t *testing.T) {
	for _, text := range []string{
		header,
		header + "shoot:\n  workers: 5\n  ipFamily: dual\n  kubeProxyMode: iptables\n  featureGates: {A: true, B: false}\n  containerd: {pull: transfer, configPath: '/a:/b'}\n",
		header + "shoot: {manifest: /a/shoot.yaml}\nupstreams: [{name: one}]\n",
		header + "nodeImage: kindest/node:v1\nupstreams: [{name: one, cached: false}, {name: two}]\n",
	} {
		want, err := read(t, text)
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := read(t, string(encoded))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nread as %+v, %v, want %+v", encoded, got, err, want)
		}
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing.yaml")
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want one that names the file", err)
	}
}

// TestLoadIsBounded: Load stops reading an endless file at the maximum size.
func TestLoadIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "endless")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	const most = 16 << 20
	written := make(chan int, 1)
	go func() {
		sum := 0
		defer func() { written <- sum }()
		pipe, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return
		}
		defer pipe.Close()
		for sum < most {
			n, err := pipe.Write(bytes.Repeat([]byte("#"), 1<<16))
			sum += n
			if err != nil {
				return
			}
		}
	}()
	if _, err := Load(path); err == nil {
		t.Error("no error")
	}
	if sum := <-written; sum >= most {
		t.Errorf("%d bytes were read", sum)
	}
}
