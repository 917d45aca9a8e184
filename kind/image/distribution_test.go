package image

import (
	"crypto/x509"
	"os"
	"testing"

	"golang.org/x/mod/modfile"
)

const distribution = "github.com/distribution/distribution/v3"

// TestDistributionVersion: the stock image and the cache image use the same version of
// distribution.
func TestDistributionVersion(t *testing.T) {
	own, stock := required(t, "../../go.mod"), required(t, "distribution/go.mod")
	if own != stock {
		t.Errorf("distribution/go.mod has %s %s, the main module %s: go get -tool %s/cmd/registry@%s in the folder distribution", distribution, stock, own, distribution, own)
	}
}

func required(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse(path, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, require := range file.Require {
		if require.Mod.Path == distribution {
			return require.Mod.Version
		}
	}
	t.Fatalf("%s does not require %s", path, distribution)
	return ""
}

func TestCABundle(t *testing.T) {
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(caBundle()) {
		t.Error("no certificate in the bundle")
	}
}
