package image

import (
	"bytes"
	"encoding/pem"
	"path/filepath"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// distributionModule is the folder, below the repository's root, of the Go module that pins CNCF
// distribution.
const distributionModule = "kind/image/distribution"

// Distribution returns the description of CNCF distribution's stock image for Build. root is the
// root of the repository. As in the image that distribution publishes, the entry point is the
// binary /bin/registry, the user is root, and Mozilla's CA bundle is installed. This image has no
// shell and no default configuration.
func Distribution(root string) Binary {
	return Binary{
		Name:       "stock-registry",
		Package:    "github.com/distribution/distribution/v3/cmd/registry",
		Module:     filepath.Join(root, distributionModule),
		Path:       "/bin/registry",
		Entrypoint: []string{"registry"},
		Cmd:        []string{"serve", "/etc/distribution/config.yml"},
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "OTEL_TRACES_EXPORTER=none"},
		User:       "0:0",
		Entries:    []Entry{{Path: "/etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Content: caBundle()}},
	}
}

// caBundle returns Mozilla's CA certificates in PEM. Alpine's package installs the same list.
func caBundle() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		all.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
	}
	return all.Bytes()
}
