package extension

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestClusterHasASize checks that the CloudProfile is large. Otherwise the benchmark would not
// measure the cost of caching and decoding it.
func TestClusterHasASize(t *testing.T) {
	c, err := cluster(7)
	if err != nil {
		t.Fatal(err)
	}
	if size := len(c.Spec.CloudProfile.Raw) >> 10; size < 50 || size > 80 {
		t.Errorf("the CloudProfile has %d KiB; want about 60, as large providers have", size)
	}
}

// TestOperatingSystemConfig checks the kubelet unit and the size. Without the unit the webhook
// would do less work than in production.
func TestOperatingSystemConfig(t *testing.T) {
	config, err := operatingSystemConfig(7)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(config.Spec.Units, func(u extensionsv1alpha1.Unit) bool { return u.Name == "kubelet.service" }) {
		t.Error("no kubelet")
	}
	raw, err := json.Marshal(config)
	if err != nil || len(raw) < 20<<10 {
		t.Errorf("%d bytes, error %v", len(raw), err)
	}
}

func TestKubeconfigsShareNoConnection(t *testing.T) {
	config := clientcmdapi.NewConfig()
	config.Clusters["x"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1", CertificateAuthorityData: []byte("-----BEGIN CERTIFICATE-----")}
	kubeconfig, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	l := newLandscape(nil, 2, kubeconfig)
	var bundles [][]byte
	for i := range 2 {
		kubeconfig, err := l.kubeconfigOf(i)
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.Load(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		bundles = append(bundles, config.Clusters["x"].CertificateAuthorityData)
	}
	if bytes.Equal(bundles[0], bundles[1]) {
		t.Error("two shoots have the same CA bundle: client-go shares their connection")
	}
	if !bytes.Contains(bundles[0], []byte("\n-----BEGIN CERTIFICATE-----")) {
		t.Errorf("the certificate does not start a line: %q", bundles[0])
	}
}

func TestNamespaces(t *testing.T) {
	if !isShoot(namespaceOf(2999)) || isShoot("kube-system") || isShoot(Namespace) || isShoot("") {
		t.Error("isShoot confuses namespaces of shoots with others")
	}
}

// TestChart: the chart must contain the service account whose requests are counted.
func TestChart(t *testing.T) {
	objects, err := chart()
	if err != nil {
		t.Fatal(err)
	}
	var found bool
	for _, object := range objects {
		if object.GetKind() == "ServiceAccount" {
			found = "system:serviceaccount:"+object.GetNamespace()+":"+object.GetName() == User
		}
	}
	if !found {
		t.Errorf("the chart has no service account for %s", User)
	}
}
