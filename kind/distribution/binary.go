package distribution

import (
	"bytes"
	"encoding/pem"
	"path/filepath"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/gardener-extensions/registry-cache/kind/image"
)

// Folder of the build module below the root of the repository.
const moduleFolder = "kind/distribution/module"

// Binary is what the stock image is built from, for image.Build in the repository at root. As in the original the binary
// is /bin/registry, it is the entry point, the user is root, and the certificates of the well-known authorities are there.
// What the original has and this one lacks: Alpine, that is a shell, and the default configuration.
func Binary(root string) image.Binary {
	return image.Binary{
		Name:       "stock-registry",
		Package:    "github.com/distribution/distribution/v3/cmd/registry",
		Module:     filepath.Join(root, moduleFolder),
		Path:       "/bin/registry",
		Entrypoint: []string{"registry"},
		Cmd:        []string{"serve", "/etc/distribution/config.yml"},
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "OTEL_TRACES_EXPORTER=none"},
		User:       "0:0",
		Entries:    []image.Entry{{Path: "/etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Content: authorities()}},
	}
}

// authorities are those of Mozilla's list, which Alpine's package has too.
func authorities() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		all.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
	}
	return all.Bytes()
}
