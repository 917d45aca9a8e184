package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	// trustedFile is where update-ca-certificates, which gardener-node-agent runs, finds the CA.
	trustedFile  = "/usr/local/share/ca-certificates/registry-cache-testbed.crt"
	trustTimeout = time.Minute
)

// addTrusted appends the CA in the file $1 to the CA bundle $3 and moves the file to $2. It does
// not run update-ca-certificates, because that starts openssl for each of Debian's 140 CAs, while
// curl and Go read only the bundle. $2 is written last, so after an interruption the next call
// repeats everything.
const addTrusted = `
staged=$1 trusted=$2 bundle=$3
if ! [[ $(<"$bundle") == *"$(<"$staged")"* ]]; then
  cat -- "$bundle" "$staged" >"$bundle.new"
  mv -fT -- "$bundle.new" "$bundle"
fi
systemctl restart containerd.service
mv -fT -- "$staged" "$trusted"
`

// trustCA adds the CA to the node's trust store. If the CA is new there, trustCA restarts
// containerd, which reads the store only when it starts.
func (n *Node) trustCA(ctx context.Context, ca []byte) error {
	ctx, cancel := progress.Within(ctx, trustTimeout, "not done")
	defer cancel()
	present, err := n.ReadFile(ctx, trustedFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if bytes.Equal(present, ca) {
		return nil
	}
	staged := trustedFile + ".new"
	if err := n.WriteFile(ctx, staged, 0o644, ca); err != nil {
		return err
	}
	if _, err := n.Script(ctx, addTrusted, staged, trustedFile, "/etc/ssl/certs/ca-certificates.crt"); err != nil {
		return fmt.Errorf("adding the testbed's CA to the node's trust store: %w", err)
	}
	return nil
}
