package extension

import (
	"bytes"
	"encoding/json"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// TestSizes checks that objects are as large as in production. Otherwise the benchmark would not
// measure the cost of caching and decoding them.
func TestSizes(t *testing.T) {
	for name, test := range map[string]struct {
		object   any
		min, max int // KiB
	}{
		"Cluster, for its CloudProfile": {cluster(7), 50, 80},
		"OperatingSystemConfig":         {operatingSystemConfig(7), 38, 46},
	} {
		raw, err := json.Marshal(test.object)
		if size := len(raw) >> 10; err != nil || size < test.min || size > test.max {
			t.Errorf("%s: %d KiB, error %v; want %d to %d", name, size, err, test.min, test.max)
		}
	}
}

func TestKubeconfigsShareNoConnection(t *testing.T) {
	config := clientcmdapi.NewConfig()
	config.Clusters["x"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1", CertificateAuthorityData: []byte("-----BEGIN CERTIFICATE-----")}
	kubeconfig, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	var clusters []*clientcmdapi.Cluster
	for i, server := range []string{"", "https://127.0.0.1:2"} {
		kubeconfig, err := kubeconfigOf(i, kubeconfig, server)
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.Load(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		clusters = append(clusters, config.Clusters["x"])
	}
	if bytes.Equal(clusters[0].CertificateAuthorityData, clusters[1].CertificateAuthorityData) {
		t.Error("two shoots have the same CA bundle: client-go shares their connection")
	}
	if !bytes.Contains(clusters[0].CertificateAuthorityData, []byte("\n-----BEGIN CERTIFICATE-----")) {
		t.Errorf("the certificate does not start a line: %q", clusters[0].CertificateAuthorityData)
	}
	if clusters[0].Server != "https://127.0.0.1:1" || clusters[1].Server != "https://127.0.0.1:2" {
		t.Errorf("servers %s and %s", clusters[0].Server, clusters[1].Server)
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
