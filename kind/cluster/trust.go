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
	trustedFile  = "/usr/local/share/ca-certificates/registry-cache-testbed.crt"
	trustTimeout = time.Minute
)

// trust adds the CA to the node's trust store. It restarts containerd, which reads the store once,
// only if something changed.
func (n *Node) trust(ctx context.Context, ca []byte) error {
	if len(ca) == 0 {
		return nil
	}
	ctx, cancel := progress.Within(ctx, trustTimeout, "not done")
	defer cancel()
	present, err := n.ReadFile(ctx, trustedFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if bytes.Equal(present, ca) {
		return nil
	}
	// The file is written last: after an interruption, the next call does everything again.
	staged := trustedFile + ".new.crt"
	if err := n.WriteFile(ctx, staged, 0o644, ca); err != nil {
		return err
	}
	const script = `mv -fT -- "$1" "$2"
update-ca-certificates >/dev/null 2>&1 || { rm -f -- "$2"; update-ca-certificates; exit 1; }
systemctl restart containerd.service || { rm -f -- "$2"; exit 1; }`
	if _, err := n.Script(ctx, script, staged, trustedFile); err != nil {
		return fmt.Errorf("adding the testbed's CA to the node's trust store: %w", err)
	}
	return nil
}
