//go:build e2e

package rig

import (
	"context"
	"fmt"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// Unmanaged files below certs.d: the mirror configuration of a registry without a cache, and a note
// beside a hosts.toml of the extension.
const (
	foreignHosts = nodeconfig.CertsDir + "/foreign.example.test/hosts.toml"
	foreignNote  = nodeconfig.CertsDir + "/" + Alpha + "/operator-note.txt"
)

var foreignFiles = map[string]string{
	foreignHosts: "server = \"https://foreign.example.test\"\n",
	foreignNote:  "kept by the operator of the node\n",
}

// Foreign holds the fingerprints of the unmanaged files on all workers.
type Foreign map[string]string

// PutForeignFiles writes unmanaged files to every worker, until the scenario ends.
func PutForeignFiles(ctx context.Context, p *Run) Foreign {
	p.Helper()
	fingerprints := Foreign{}
	for _, worker := range p.Workers() {
		p.Afterwards(ctx, func(ctx context.Context) error { return removeForeignFiles(ctx, worker) })
		for path, content := range foreignFiles {
			p.Check(worker.WriteFile(ctx, path, 0o644, []byte(content)))
			fingerprints[worker.Name()+path] = p.Fingerprint(ctx, worker, path)
		}
	}
	return fingerprints
}

// ProveUntouched proves that the files have not changed.
func (f Foreign) ProveUntouched(ctx context.Context, p *Run) {
	p.Helper()
	for _, worker := range p.Workers() {
		for path := range foreignFiles {
			if now := p.Fingerprint(ctx, worker, path); now != f[worker.Name()+path] {
				p.Errorf("%s on %s has changed: was %s, is %s", path, worker.Name(), f[worker.Name()+path], now)
			}
		}
	}
	p.Evidence("%d unmanaged files unchanged", len(f))
}

const removeForeignScript = `
rm -f ` + foreignHosts + ` ` + foreignNote + `
rmdir $(dirname ` + foreignHosts + `) $(dirname ` + foreignNote + `) 2>/dev/null || true`

func removeForeignFiles(ctx context.Context, worker *cluster.Node) error {
	if _, err := worker.Script(ctx, removeForeignScript); err != nil {
		return fmt.Errorf("remove the unmanaged files: %w", err)
	}
	return nil
}
