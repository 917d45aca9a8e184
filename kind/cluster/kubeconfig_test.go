package cluster

import (
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

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
