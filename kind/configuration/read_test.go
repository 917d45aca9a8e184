package configuration

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const header = "apiVersion: testbed.registry.extensions.gardener.cloud/v1alpha1\nkind: Testbed\n"

func read(t *testing.T, text string) (*Testbed, error) {
	t.Helper()
	return Read("testbed.yaml", t.TempDir(), strings.NewReader(text))
}

// TestExampleIsTheDefault: the example contains the default of every field, and an empty file gets
// the same values.
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
		{"a list", "[1]\n", `not "" and ""`},
		{"unknown field", header + "shoot:\n  wrokers: 3\n", `unknown field "shoot.wrokers"`},
		{"unknown field, wrong case", header + "shoot:\n  Workers: 3\n", `unknown field "shoot.Workers"`},
		{"unknown field in a list", header + "upstreams:\n- name: alpha\n  cache: true\n", `unknown field "upstreams[0].cache"`},
		{"two unknown fields", header + "a: 1\nb: 2\n", `unknown field "a", unknown field "b"`},
		{"a field twice", header + "nodeImage: a\nnodeImage: b\n", `key "nodeImage" already set in map`},
		{"wrong type", header + "shoot:\n  workers: many\n", "shoot.workers of type int"},
		{"wrong type, deep", header + "shoot:\n  containerd:\n    pull: 7\n", "shoot.containerd.pull of type configuration.PullPath"},
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

// TestEncode: Read returns the configuration that Encode has encoded.
func TestEncode(t *testing.T) {
	for _, text := range []string{
		header,
		header + "shoot:\n  workers: 5\n  ipFamily: dual\n  kubeProxyMode: iptables\n  featureGates: {A: true, B: false}\n  containerd: {pull: transfer, configPath: '/a:/b'}\n",
		header + "shoot: {kubernetesVersion: '1.34', containerd: {version: '1.7'}}\n",
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

func TestValidate(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"fewest workers", "shoot: {workers: 1}", ""},
		{"most workers", "shoot: {workers: 5}", ""},
		{"no workers", "shoot: {workers: 0}", "shoot.workers: Invalid value: 0: must be 1 to 5"},
		{"too many workers", "shoot: {workers: 6}", "shoot.workers: Invalid value: 6: must be 1 to 5"},
		{"IP family", "shoot: {ipFamily: IPv6}", `shoot.ipFamily: Unsupported value: "IPv6": supported values: "ipv4", "ipv6", "dual"`},
		{"kube-proxy", "shoot: {kubeProxyMode: ipvs}", `shoot.kubeProxyMode: Unsupported value: "ipvs": supported values: "nftables", "iptables"`},
		{"gate", "shoot: {featureGates: {InPlacePodVerticalScaling: true}}", ""},
		{"no gate", "shoot: {featureGates: {'a=b,c': true}}", "shoot.featureGates[a=b,c]: Invalid value"},
		{"the testbed's gate", "shoot: {featureGates: {KubeletInUserNamespace: false}}", "shoot.featureGates[KubeletInUserNamespace]: Forbidden"},
		{"pull", "shoot: {containerd: {pull: remote}}", `shoot.containerd.pull: Unsupported value: "remote": supported values: "local", "transfer"`},
		{"versions", "shoot: {kubernetesVersion: '1.37', containerd: {version: '2.4'}}", ""},
		{"oldest versions", "shoot: {kubernetesVersion: '1.34', containerd: {version: '1.7'}}", ""},
		{"Kubernetes", "shoot: {kubernetesVersion: 1.36.4}", `shoot.kubernetesVersion: Unsupported value: "1.36.4": supported values: "1.34", "1.36", "1.37"`},
		{"containerd", "shoot: {containerd: {version: '3.0'}}", `shoot.containerd.version: Unsupported value: "3.0": supported values: "1.7", "2.0", "2.3", "2.4"`},
		{"versions of a stock image", "nodeImage: a\nshoot: {kubernetesVersion: '1.34', containerd: {version: '2.4'}}",
			"[shoot.kubernetesVersion: Forbidden: nodeImage has its own version, shoot.containerd.version: Forbidden"},
		{"too old a containerd", "shoot: {containerd: {version: '1.7'}}", "shoot.containerd.version: Forbidden: the kubelet supports containerd 1.7 only until 1.35"},
		{"a service that is too new", "shoot: {kubernetesVersion: '1.34', containerd: {version: '1.7', pull: transfer}}", "shoot.containerd.pull: Forbidden"},
		{"a service that is newer than 2.0", "shoot: {containerd: {version: '2.0', pull: transfer}}", "shoot.containerd.pull: Forbidden"},
		{"folders", "shoot: {containerd: {configPath: '/etc/containerd/certs.d:/etc/docker/certs.d'}}", ""},
		{"a relative folder", "shoot: {containerd: {configPath: '/etc:certs.d'}}", "shoot.containerd.configPath: Invalid value"},
		{"an empty folder", "shoot: {containerd: {configPath: '/etc:'}}", "shoot.containerd.configPath: Invalid value"},
		{"garden", "garden: true", ""},
		{"a version in a garden", "garden: true\nshoot: {kubernetesVersion: '1.34'}", "shoot.kubernetesVersion: Forbidden: with a garden"},
		{"IPv6 in a garden", "garden: true\nshoot: {ipFamily: dual}", "shoot.ipFamily: Forbidden: with a garden"},
		{"no upstream", "upstreams: []", "upstreams: Invalid value: 0: must be 1 to 8"},
		{"without a name", "upstreams: [{cached: true}]", "upstreams[0].name: Required value"},
		{"no label", "upstreams: [{name: a.b}]", "upstreams[0].name: Invalid value"},
		{"long", "upstreams: [{name: aaaaaaaaaaaaaaaaaaaaa}]", "upstreams[0].name: Too long"},
		{"twice", "upstreams: [{name: a}, {name: b}, {name: a}]", `upstreams[2].name: Duplicate value: "a"`},
		{"cached beside a manifest", "shoot: {manifest: a.yaml}\nupstreams: [{name: a, cached: false}]", "upstreams[0].cached: Forbidden"},
		{"extension", "extension: {name: a, registration: r.yaml, chart: c, images: [{name: i, package: p, value: image.ref}]}", ""},
		{"cached beside an extension", "extension: {name: a, registration: r, chart: c}\nupstreams: [{name: a, cached: true}]", "upstreams[0].cached: Forbidden"},
		{"extension without a name", "extension: {registration: r, chart: c}", "extension.name: Invalid value"},
		{"extension without files", "extension: {name: a}", "[extension.registration: Required value, extension.chart: Required value]"},
		{"image without a package", "extension: {name: a, registration: r, chart: c, images: [{name: i, value: v}]}", "extension.images[0].package: Required value"},
		{"several mistakes", "shoot: {workers: 9, ipFamily: none}", "[shoot.workers: Invalid value: 9: must be 1 to 5, shoot.ipFamily: Unsupported value"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := read(t, header+tc.text+"\n")
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("unexpected error: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error %v\nwant one with %s", err, tc.want)
			}
		})
	}
}

// TestStockImageKeepsKindsMode: a stock node image keeps kind's own network and therefore also
// kind's kube-proxy mode.
func TestStockImageKeepsKindsMode(t *testing.T) {
	for text, want := range map[string]KubeProxyMode{
		"": NFTables, "nodeImage: kindest/node:v1.36.2\n": IPTables, "nodeImage: kindest/node:v1.36.2\nshoot: {kubeProxyMode: nftables}\n": NFTables,
	} {
		got, err := read(t, header+text)
		if err != nil || got.Shoot.KubeProxyMode != want {
			t.Errorf("%q: mode %s, %v, want %s", text, got.Shoot.KubeProxyMode, err, want)
		}
	}
}

func TestWithNodeImage(t *testing.T) {
	for _, tc := range []struct {
		text string
		want KubeProxyMode
	}{
		{"", IPTables},
		{"shoot: {kubeProxyMode: iptables}\n", IPTables},
		{"nodeImage: kindest/node:v1\n", IPTables},
		{"nodeImage: kindest/node:v1\nshoot: {kubeProxyMode: nftables}\n", NFTables},
	} {
		read, err := read(t, header+tc.text)
		if err != nil {
			t.Fatal(err)
		}
		got := read.WithNodeImage("kindest/node:v2")
		if got.NodeImage != "kindest/node:v2" || got.Shoot.KubeProxyMode != tc.want || read.NodeImage == got.NodeImage {
			t.Errorf("%q: image %s, mode %s, want %s", tc.text, got.NodeImage, got.Shoot.KubeProxyMode, tc.want)
		}
	}
}
