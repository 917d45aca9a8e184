package cleaner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// restartTimeout limits the restart of the unit, which the end of Clean's context does not stop.
const restartTimeout = 30 * time.Second

// Request describes what to remove from the node.
type Request struct {
	// Upstreams are the upstreams to remove: their hosts.toml, and their arguments in the unit.
	Upstreams []string
	// All removes every upstream and every hosts.toml with nodeconfig.Marker. It overrides Upstreams.
	All bool
	// Endpoints are the URLs of removed caches, as <scheme>://<host>[:<port>]. A hosts.toml that
	// gardener-node-agent wrote for one of them is also removed.
	Endpoints []string
}

// Validate returns an error if there is nothing to remove, if an upstream is not a valid file name,
// or if an endpoint is not the URL of a cache.
func (r Request) Validate() error {
	if len(r.Upstreams) == 0 && !r.All {
		return errors.New("nothing to clean: name at least one upstream, or ask for all")
	}
	for _, upstream := range r.Upstreams {
		if upstream == "" || upstream == "." || upstream == ".." || strings.ContainsAny(upstream, "/\x00") {
			return fmt.Errorf("upstream %q is not <host>[:<port>]", upstream)
		}
	}
	for _, endpoint := range r.Endpoints {
		parsed, err := url.Parse(endpoint)
		if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" || parsed.Scheme+"://"+parsed.Host != endpoint {
			return fmt.Errorf("endpoint %q is not http(s)://<host>[:<port>]", endpoint)
		}
	}
	return nil
}

// Units is the part of systemd that Clean needs. A unit unknown to systemd counts as stopped.
type Units interface {
	// Stop returns after the last process of the unit has ended.
	Stop(ctx context.Context, unit string) error
	// Start returns when the unit is active.
	Start(ctx context.Context, unit string) error
	// Reload makes systemd reload all unit files.
	Reload(ctx context.Context) error
}

// Node is the node to clean.
type Node struct {
	// Root is the node's root directory. Clean changes nothing outside, not even through symbolic
	// links.
	Root *os.Root
	// Units is the node's systemd.
	Units Units
	// Log receives one line for each change, and for each file that is skipped.
	Log io.Writer
}

// Clean carries out the request. It stops the unit first, so that a script that waits for a cache
// cannot write a hosts.toml afterwards. If the unit does not stop, Clean changes nothing. Otherwise
// it removes the upstreams from the unit, and removes the files. At the end it starts the unit
// again, even after an error or if ctx is done: systemd completes a requested stop even if nobody
// waits for it. Only a unit that Clean cannot parse remains stopped. If another process replaces
// the unit in the meantime, Clean returns an error. Clean can be repeated after any error.
//
// Clean keeps the unit and the script, even without upstreams. They belong to gardener-node-agent,
// which reports a missing unit as unhealthy while the last OperatingSystemConfig contains it.
func Clean(ctx context.Context, node Node, request Request) (err error) {
	if err := request.Validate(); err != nil {
		return err
	}
	mayStart := true
	defer func() {
		if mayStart {
			err = errors.Join(err, node.startUnit(context.WithoutCancel(ctx)))
		}
	}()
	if err := node.Units.Stop(ctx, nodeconfig.UnitName); err != nil {
		return err
	}
	// Read the unit after the stop: gardener-node-agent may have replaced it during the stop.
	unit, err := node.readUnit()
	if err != nil {
		return err
	}
	if unit != "" {
		changed, unknown := request.removeFrom(unit)
		if unknown != nil {
			mayStart = false
			node.logf("%s stays stopped until gardener-node-agent writes it again: %v", nodeconfig.UnitName, unknown)
		} else if err := node.rewriteUnit(ctx, unit, changed); err != nil {
			return err
		}
	}
	leftovers := node.removeEach(path.Join(nodeconfig.CertsDir, nodeconfig.TempPattern), node.removeRegular)
	return errors.Join(leftovers, node.removeRequested(request))
}

// startUnit starts the unit if it is on the node.
func (n Node) startUnit(ctx context.Context) error {
	if _, err := n.Root.Lstat(inRoot(nodeconfig.UnitPath)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, restartTimeout)
	defer cancel()
	return n.Units.Start(ctx, nodeconfig.UnitName)
}

// removeFrom returns the unit without the upstreams of the request. If it cannot parse the unit, it
// returns an error, or a unit without upstreams if the request is for all upstreams.
func (r Request) removeFrom(unit string) (string, error) {
	if !r.All {
		return nodeconfig.WithoutUpstreams(unit, r.Upstreams)
	}
	registries, err := nodeconfig.ParseUnit(unit)
	if err != nil {
		return nodeconfig.Unit(nil, 0), nil //nolint:nilerr // an unknown unit is replaced with one without upstreams
	}
	var all []string
	for _, registry := range registries {
		all = append(all, registry.Upstream)
	}
	return nodeconfig.WithoutUpstreams(unit, all)
}

func (n Node) removeRequested(request Request) error {
	removeHosts := func(file string) error { return n.removeHosts(file, request.Endpoints) }
	if request.All {
		return n.removeEach(path.Join(nodeconfig.CertsDir, "*", nodeconfig.HostsFile), removeHosts)
	}
	var errs []error
	for _, upstream := range request.Upstreams {
		errs = append(errs, removeHosts(nodeconfig.HostsPath(upstream)))
	}
	return errors.Join(errs...)
}

// readUnit returns the content of the unit file, or "" if it does not exist.
func (n Node) readUnit() (string, error) {
	content, err := n.Root.ReadFile(inRoot(nodeconfig.UnitPath))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the unit: %w", err)
	}
	return string(content), nil
}

// rewriteUnit replaces the content of the unit file if needed. If the file has changed since it was
// read, rewriteUnit changes nothing and returns an error. It always makes systemd reload the file:
// an earlier cleaner may have ended before it could do so.
func (n Node) rewriteUnit(ctx context.Context, read, content string) error {
	if read != content {
		if err := replaceFile(n.Root, inRoot(nodeconfig.UnitPath), read, content); err != nil {
			return fmt.Errorf("rewrite the unit: %w", err)
		}
		n.logf("rewrote %s", nodeconfig.UnitPath)
	}
	return n.Units.Reload(ctx)
}

func (n Node) logf(format string, arguments ...any) {
	fmt.Fprintf(n.Log, format+"\n", arguments...)
}
