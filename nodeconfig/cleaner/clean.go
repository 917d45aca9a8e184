package cleaner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// restartTimeout bounds the restart of the unit, which also happens when the clean-up itself has run out of time.
const restartTimeout = 30 * time.Second

// Request says what to remove from the node.
type Request struct {
	// Upstreams lose their cache: their hosts.toml is removed and the unit configures them no more.
	Upstreams []string
	// All says that every upstream loses its cache, whatever Upstreams says: every hosts.toml that carries our mark is
	// removed.
	All bool
}

// Validate refuses a request that asks for nothing or whose upstreams are no names of directories.
func (r Request) Validate() error {
	if len(r.Upstreams) == 0 && !r.All {
		return errors.New("nothing to clean: name at least one upstream, or ask for all")
	}
	for _, upstream := range r.Upstreams {
		if upstream == "" || upstream == "." || upstream == ".." || strings.ContainsAny(upstream, "/\x00") {
			return fmt.Errorf("upstream %q is not <host>[:<port>]", upstream)
		}
	}
	return nil
}

// Units is what Clean needs of systemd. A unit that systemd does not know counts as stopped.
type Units interface {
	// Stop returns when no process of the unit is left.
	Stop(ctx context.Context, unit string) error
	// Start returns when the unit is active.
	Start(ctx context.Context, unit string) error
	// Reload makes systemd read all unit files again.
	Reload(ctx context.Context) error
}

// Node is the node to clean.
type Node struct {
	// Root is the node's root directory. No file outside it is touched, not even through a symbolic link.
	Root *os.Root
	// Units is the node's systemd.
	Units Units
	// Log receives one line for each change.
	Log io.Writer
}

// Clean does what request asks for. The unit is stopped first, so that no script that still waits for a cache can write
// a hosts.toml afterwards; if it cannot be stopped nothing is changed. It is started again without the upstreams, also if a
// file could not be removed. A unit that somebody else replaces in the meantime is not written over, which is an error.
// Clean can be repeated after any error.
//
// Unit and script stay, even if nothing is left for them to configure: they belong to gardener-node-agent, which would
// report a unit as unhealthy that is missing while it is in the last OperatingSystemConfig.
func Clean(ctx context.Context, node Node, request Request) (err error) {
	if err := request.Validate(); err != nil {
		return err
	}
	if err := node.Units.Stop(ctx, nodeconfig.UnitName); err != nil {
		return err
	}
	// What was read before the stop, which takes its time, may be replaced by gardener-node-agent by now.
	unit, err := node.readUnit()
	if err != nil {
		return err
	}
	changed, known := unit, false
	if unit != "" {
		var unknown error
		if changed, unknown = request.without(unit); unknown != nil {
			node.logf("%s is left stopped until it is laid down anew: %v", nodeconfig.UnitName, unknown)
		}
		known = unknown == nil
	}
	if known {
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restartTimeout)
			defer cancel()
			err = errors.Join(err, node.Units.Start(ctx, nodeconfig.UnitName))
		}()
	}
	if known && changed != unit {
		if err := node.rewriteUnit(ctx, unit, changed); err != nil {
			return err
		}
	}
	return errors.Join(node.removeTemporaryFiles(), node.removeRequested(request))
}

// without returns the unit without what is removed. A unit that cannot be read is an error, unless everything goes: then it
// is replaced.
func (r Request) without(unit string) (string, error) {
	if !r.All {
		return nodeconfig.WithoutUpstreams(unit, r.Upstreams)
	}
	registries, err := nodeconfig.ParseUnit(unit)
	if err != nil {
		return nodeconfig.Unit(nil, 0), nil //nolint:nilerr // whatever it ran, it runs the script for no upstream now
	}
	var all []string
	for _, registry := range registries {
		all = append(all, registry.Upstream)
	}
	return nodeconfig.WithoutUpstreams(unit, all)
}

func (n Node) removeRequested(request Request) error {
	if request.All {
		return n.removeAllHosts()
	}
	var errs []error
	for _, upstream := range request.Upstreams {
		errs = append(errs, n.removeHosts(nodeconfig.HostsPath(upstream)))
	}
	return errors.Join(errs...)
}

// readUnit returns the content of the unit's file, empty if there is none.
func (n Node) readUnit() (string, error) {
	content, err := n.Root.ReadFile(inRoot(nodeconfig.UnitPath))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the unit: %w", err)
	}
	return string(content), nil
}

// rewriteUnit replaces the unit's file, unless it is not what was read any more.
func (n Node) rewriteUnit(ctx context.Context, read, content string) error {
	if err := replaceFile(n.Root, inRoot(nodeconfig.UnitPath), read, content); err != nil {
		return fmt.Errorf("cannot rewrite the unit: %w", err)
	}
	n.logf("rewrote %s", nodeconfig.UnitPath)
	return n.Units.Reload(ctx)
}

func (n Node) logf(format string, arguments ...any) {
	fmt.Fprintf(n.Log, format+"\n", arguments...)
}
