package distribution

import (
	"crypto/x509"
	"os"
	"testing"

	"golang.org/x/mod/modfile"
)

const module = "github.com/distribution/distribution/v3"

// TestVersion: the stock image is built from the same version of distribution as the cache image.
func TestVersion(t *testing.T) {
	own, stock := required(t, "../../go.mod"), required(t, "module/go.mod")
	if own != stock {
		t.Errorf("module/go.mod has %s %s, the main module %s: go get -tool %s/cmd/registry@%s in the folder module", module, stock, own, module, own)
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
		if require.Mod.Path == module {
			return require.Mod.Version
		}
	}
	t.Fatalf("%s does not require %s", path, module)
	return ""
}

func TestAuthorities(t *testing.T) {
	if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM(caBundle()) {
		t.Error("no certificate in the bundle")
	}
}
