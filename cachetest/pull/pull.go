// Package pull pulls images on nodes and finds the source of each object of an image: the store of
// a cache, the upstream through a cache, the upstream directly, or the node, which already had it.
//
// The evidence is the upstream's access log during the pull, and the content of the node's
// containerd before and after it. An object that is new on the node, and that no client fetched
// from the upstream, is a cache hit. The logs and metrics of caches are not used. Attribute, Report
// and Options must not access clusters.
package pull

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// Run pulls an image from an upstream on workers of the shoot, one after another, and finds who
// served each object. It changes nothing except the images on the nodes. The testbed must be
// attached.
//
// Run returns an *InvalidError for invalid options. It returns no error for a failed pull, see
// Report.Err. The report is never nil. With an error, it contains the earlier pulls.
func Run(ctx context.Context, t *kind.Testbed, options Options) (*Report, error) {
	report := NewReport(Image{Reference: options.Image})
	image, nodes, err := options.Plan(t.Upstreams.Hosts(), cluster.Names(t.Shoot.Workers()))
	if err != nil {
		return report, err
	}
	r := &runner{Testbed: t, Options: options, image: image, registry: t.Upstream(image.Host)}
	err = r.registry.Describe(ctx, image.Repository, image.Identifier, func(index *v1.Descriptor, img v1.Image) (err error) {
		r.image.Objects, err = Describe(index, img)
		return err
	})
	if err != nil { // pull anyway: an upstream that does not answer is often the reason for the pull
		r.image.Problem = err.Error()
	}
	report = NewReport(r.image)
	for _, name := range nodes {
		evidence, err := r.run(ctx, t.Shoot.Node(name))
		if err != nil {
			return report, fmt.Errorf("%s: %w", name, err)
		}
		report.Add(Attribute(evidence))
	}
	report.Verdict = report.verdict(cacheAddresses(ctx, t, image.Host))
	return report, nil
}

// cacheAddresses returns the addresses of an upstream's cache, or nil if they are unknown.
func cacheAddresses(ctx context.Context, t *kind.Testbed, host string) []string {
	ctx, cancel := withTimeout(ctx, answerTimeout)
	defer cancel()
	services, _, err := cachetest.List(ctx, t.Shoot)
	if err != nil {
		return nil
	}
	return cachetest.Addresses(services, host)
}

type runner struct {
	*kind.Testbed
	Options
	image    Image
	registry *upstream.Registry
}

// run pulls on one node. It prepares the node before it reads the log: otherwise, requests of the
// node during the preparation would count as requests of the pull.
func (r *runner) run(ctx context.Context, node *cluster.Node) (Evidence, error) {
	evidence := Evidence{Image: r.image, Node: node.Name()}
	if err := r.prepare(ctx, node, &evidence); err != nil {
		return evidence, err
	}
	before, logErr := r.registry.Log(ctx)
	if err := r.pull(ctx, node, &evidence); err != nil {
		return evidence, err
	}
	if logErr == nil {
		var after accesslog.Records
		if after, logErr = r.registry.Log(ctx); logErr == nil {
			evidence.Records, logErr = newRecords(before, after)
		}
	}
	if logErr != nil {
		evidence.LogProblem = logErr.Error()
	}
	return evidence, context.Cause(ctx)
}

// newRecords compares two states of one log and returns the records that only the later state
// contains, or an error if the log was reset, for example because the container was recreated.
func newRecords(before, after accesslog.Records) (accesslog.Records, error) {
	if len(after) < len(before) {
		return nil, fmt.Errorf("the access log was reset during the pull: %d records, %d before", len(after), len(before))
	}
	return after[len(before):], nil
}

// prepare removes the image from the node for a fresh pull, and records the state before the pull.
func (r *runner) prepare(ctx context.Context, node *cluster.Node, evidence *Evidence) (err error) {
	if r.Fresh {
		if err := forget(ctx, node, r.image); err != nil {
			return err
		}
	}
	if evidence.Mirrors, err = mirrorsOf(ctx, node, r.image.Host); err != nil {
		return err
	}
	evidence.Before, err = readState(ctx, node)
	return err
}

// pull pulls once, as a step, and records the state afterwards.
func (r *runner) pull(ctx context.Context, node *cluster.Node, evidence *Evidence) (err error) {
	_ = r.Recorder.Step(ctx, "pull on "+node.Name(), func(ctx context.Context) error {
		evidence.Took, evidence.Failure, err = pullOn(ctx, node, r.image, r.Timeout)
		if err == nil && evidence.Failure != "" {
			return errors.New(evidence.Failure)
		}
		return err
	})
	if err != nil {
		return err
	}
	evidence.After, err = readState(ctx, node)
	return err
}

// mirrorsOf returns the hosts that containerd on the node tries before the upstream, in order. They
// are in the upstream's hosts.toml or, if there is none, in the one in the folder _default.
func mirrorsOf(ctx context.Context, node *cluster.Node, host string) ([]string, error) {
	ctx, cancel := withTimeout(ctx, answerTimeout)
	defer cancel()
	for _, folder := range []string{host, "_default"} {
		content, err := node.ReadFile(ctx, path.Join(nodeconfig.CertsDir, folder, nodeconfig.HostsFile))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return nodeconfig.ParseHosts(host, content).Hosts, nil
	}
	return nil, nil
}
