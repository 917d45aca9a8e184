//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

const (
	// writtenWithin bounds the time until the script restores a changed hosts.toml. The script checks
	// the file every 6 to 6.5 s.
	writtenWithin = 30 * time.Second
	// openedFile is a hard link to hosts.toml. After an atomic replacement it still has the old
	// content.
	openedFile = "/etc/containerd/e2e-hosts.toml"
	changeMade = "# changed by somebody\n"
)

// hostsFile proves that hosts.toml is replaced atomically, so that no pull reads a partial file.
// The scenario also proves that hosts.toml contains the upstream's URL: a node that cannot reach
// the cache pulls from this URL.
func hostsFile() rig.Scenario {
	return rig.New("hosts-file",
		rig.Prove("alpha and beta are cached", rig.Cached(rig.Alpha, rig.Beta)),
		rig.Prove("a changed file is replaced atomically", func(ctx context.Context, p *rig.Run) {
			worker := p.Worker(0)
			right := p.Hosts(ctx, worker, rig.Alpha)
			p.Afterwards(ctx, func(ctx context.Context) error { return removeOpened(ctx, worker) })
			start := time.Now()
			_, err := worker.Script(ctx, `ln -f -T -- "$1" "$2"; printf '%s' "$3" >>"$1"`, rig.HostsPath(rig.Alpha), openedFile, changeMade)
			p.Check(err)
			awaitFile(ctx, p, worker, rig.HostsPath(rig.Alpha), right)
			if seen := p.File(ctx, worker, openedFile); seen != right+changeMade {
				p.Fatalf("hosts.toml was written in place: a process that has it open reads\n%s", seen)
			}
			p.Evidence("restored atomically after %s", rig.Seconds(time.Since(start)))
		}),

		rig.Prove("past the cache a node asks the upstream where hosts.toml says it is", func(ctx context.Context, p *rig.Run) {
			p.Break(ctx, "cache/"+rig.Alpha, spec.Refuse)
			img := p.Push(ctx, rig.Alpha)
			p.TimedPull(ctx, p.Worker(0), img)
			evidence := p.FetchedOnce(ctx, img, accesslog.AskerNode)

			elsewhere := p.Requests(ctx, img).By(accesslog.AskerNode).Filter(func(r accesslog.Record) bool { return r.Scheme != "http" })
			if len(elsewhere) > 0 {
				p.Fatalf("the node asked %s://%s, want http://%s, the server of its hosts.toml: %s %s",
					elsewhere[0].Scheme, rig.Alpha, rig.Alpha, elsewhere[0].Method, elsewhere[0].Path)
			}
			p.Evidence("direct pull by the server line: %s", evidence)
		}),
	)
}

// awaitFile waits until a file on a node has this content.
func awaitFile(ctx context.Context, p *rig.Run, node *cluster.Node, path, want string) {
	p.Helper()
	p.Check(rig.AwaitEvery(ctx, rig.NodeInterval, path+" is restored", writtenWithin, func(ctx context.Context) (bool, string, error) {
		content, err := rig.ReadFile(ctx, node, path)
		return content == want, content, err
	}))
}

func removeOpened(ctx context.Context, worker *cluster.Node) error {
	if _, err := worker.Exec(ctx, "rm", "-f", "--", openedFile); err != nil {
		return fmt.Errorf("remove the hard link to hosts.toml: %w", err)
	}
	return nil
}
