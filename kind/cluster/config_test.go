package cluster

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/internal/golden"
	"github.com/gardener-extensions/registry-cache/kind/engine"
)

func TestKindConfig(t *testing.T) {
	normal := &engine.Engine{SysResource: true}
	tests := []struct {
		golden string
		config Config
	}{
		{"normal-host.yaml", Config{Name: "registry-cache-seed", Image: "node:1", Engine: normal}},
		{"restricted-host.yaml", Config{Name: "registry-cache-shoot", Image: "node:1", Workers: 2,
			IPFamily: v1alpha4.IPv4Family, Engine: &engine.Engine{}}},
		{"audited.yaml", Config{Name: "registry-cache-seed", Image: "node:1", Engine: normal,
			Kubeconfig: "/state/seed.kubeconfig", Audited: []string{"system:serviceaccounts:some"}}},
		{"ipv6.yaml", Config{Name: "registry-cache-shoot", Image: "node:1", Workers: 1, IPFamily: v1alpha4.IPv6Family, Engine: normal}},
		{"dual.yaml", Config{Name: "registry-cache-shoot", Image: "node:1", Workers: 3, IPFamily: v1alpha4.DualStackFamily,
			FeatureGates: map[string]bool{"SomeGate": false}, Engine: &engine.Engine{}}},
		{"transfer-service.yaml", Config{Name: "registry-cache-shoot", Image: "node:1", TransferService: true, ConfigPath: "/a:/b", Engine: normal}},
		{"stock-image.yaml", Config{Name: "registry-cache-shoot", Image: "kindest/node:v1.36.2", StockImage: true, Workers: 2, Engine: normal}},
	}
	for _, tc := range tests {
		t.Run(tc.golden, func(t *testing.T) {
			got, err := yaml.Marshal(KindConfig(tc.config))
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, tc.golden, string(got))
		})
	}
}

func TestFingerprintTellsConfigurationsApart(t *testing.T) {
	base := Config{Name: "a", Image: "node:1", Workers: 2, Engine: &engine.Engine{SysResource: true}}
	again := base
	if fingerprint(base) != fingerprint(again) {
		t.Error("equal configurations differ")
	}
	audited := base
	audited.Audited = []string{"one"}
	otherAudit := base
	otherAudit.Audited = []string{"two"}
	if fingerprint(audited) == fingerprint(otherAudit) {
		t.Error("another audit policy gives the same fingerprint")
	}
	elsewhere := audited
	elsewhere.Kubeconfig = "/elsewhere/seed.kubeconfig"
	if fingerprint(audited) != fingerprint(elsewhere) {
		t.Error("a cluster is rebuilt when the repository is moved")
	}
	explicit := base
	explicit.KubeProxyMode, explicit.ConfigPath = "nftables", RegistryConfigDir
	if fingerprint(base) != fingerprint(explicit) {
		t.Error("explicit defaults change the fingerprint: existing testbeds would be rebuilt")
	}
	for name, change := range map[string]func(c *Config){
		"family":  func(c *Config) { c.IPFamily = v1alpha4.IPv6Family },
		"mode":    func(c *Config) { c.KubeProxyMode = "iptables" },
		"service": func(c *Config) { c.TransferService = true },
		"folders": func(c *Config) { c.ConfigPath = "/some:/where" },
		"gate":    func(c *Config) { c.FeatureGates = map[string]bool{"SomeGate": true} },
		"image":   func(c *Config) { c.Image = "node:2" },
		"workers": func(c *Config) { c.Workers = 1 },
		"audit":   func(c *Config) { c.Audited = []string{"one"} },
		"content": func(c *Config) { c.Content = "other" },
		"CA":      func(c *Config) { c.CA = []byte("of another checkout") },
		"engine":  func(c *Config) { c.Engine = &engine.Engine{} },
	} {
		other := base
		change(&other)
		if fingerprint(base) == fingerprint(other) {
			t.Errorf("another %s gives the same fingerprint", name)
		}
	}
}

func TestNodeNames(t *testing.T) {
	want := []string{"a-control-plane", "a-worker", "a-worker2", "a-worker3"}
	if got := nodeNames(Config{Name: "a", Workers: 3}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	roles := KindConfig(Config{Name: "a", Workers: 1}).Nodes
	if len(roles) != 2 || roles[0].Role != v1alpha4.ControlPlaneRole || roles[1].Role != v1alpha4.WorkerRole {
		t.Errorf("roles: %+v", roles)
	}
}

func TestAuditPolicyFile(t *testing.T) {
	config := Config{Name: "seed", Kubeconfig: filepath.Join(t.TempDir(), "seed.kubeconfig")}
	if err := writeAuditPolicy(config); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(auditDir(config)); !os.IsNotExist(err) {
		t.Errorf("a policy was written without audited groups: %v", err)
	}
	config.Audited = []string{"system:serviceaccounts:some"}
	if err := writeAuditPolicy(config); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(auditDir(config), auditPolicyName))
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "audit-policy.yaml", string(got))
}

func TestParseAuditLog(t *testing.T) {
	const first = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":"list","user":{"username":"someone"},` +
		`"objectRef":{"resource":"nodes"},"responseStatus":{"metadata":{},"code":403}}` + "\n"
	for name, test := range map[string]struct {
		log    string
		events int
		fails  bool
	}{
		"nothing":                 {"", 0, false},
		"two events":              {first + first, 2, false},
		"an incomplete last line": {first + `{"kind":"Ev`, 1, false},
		"garbage":                 {first + "no JSON\n", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			events, err := parseAuditLog([]byte(test.log))
			if len(events) != test.events || (err != nil) != test.fails {
				t.Fatalf("%d events, error %v", len(events), err)
			}
			for _, event := range events {
				if event.User.Username != "someone" || event.ObjectRef.Resource != "nodes" || event.ResponseStatus.Code != 403 {
					t.Errorf("read as %+v", event)
				}
			}
		})
	}
}

func TestInternalKubeconfig(t *testing.T) {
	external := clientcmdapi.NewConfig()
	external.Clusters["kind-a"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:38747", CertificateAuthorityData: []byte("ca")}
	external.AuthInfos["kind-a"] = &clientcmdapi.AuthInfo{ClientKeyData: []byte("key")}
	data, err := clientcmd.Write(*external)
	if err != nil {
		t.Fatal(err)
	}
	internal, err := internalKubeconfig(data, "a-control-plane")
	if err != nil {
		t.Fatal(err)
	}
	got, err := clientcmd.Load(internal)
	if err != nil {
		t.Fatal(err)
	}
	if server := got.Clusters["kind-a"].Server; server != "https://a-control-plane:6443" {
		t.Errorf("server is %s", server)
	}
	if string(got.Clusters["kind-a"].CertificateAuthorityData) != "ca" || string(got.AuthInfos["kind-a"].ClientKeyData) != "key" {
		t.Error("trust or credentials are lost")
	}
	if _, err := internalKubeconfig([]byte("\t"), "a"); err == nil {
		t.Error("no error for invalid YAML")
	}
}
