package pull

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sync/errgroup"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/cache"
	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/hostsfile"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// Run makes workers of the shoot pull an image from an upstream by their container runtime, and
// tells who served each part of it; see package pull for what that rests on. It needs Up or Attach
// and changes nothing but what the nodes have stored.
//
// A mistake in the options is an *InvalidError, and nothing was pulled. A pull that fails is no
// error of Pull: it is in the report, see Report.Err. Any other error ends it; the report has what
// was found until then, and is never nil.
func Run(ctx context.Context, t *kind.Testbed, options Options) (*Report, error) {
	report := NewReport(Image{Reference: options.Image})
	plan, err := options.Plan(t.Upstreams.Hosts(), cluster.Names(t.Shoot.Workers()))
	if err != nil {
		return report, err
	}
	work := &pulling{Testbed: t, Options: options, image: plan.Image, registry: t.Upstream(plan.Image.Host)}
	work.describe(ctx)
	report = NewReport(work.image)
	for _, batch := range plan.Batches {
		evidence, err := work.run(ctx, batch)
		if err != nil {
			return report, err
		}
		report.Add(Attribute(evidence))
	}
	report.Judge(cacheAddresses(ctx, t, plan.Image.Host))
	return report, nil
}

// cacheAddresses are those of the caches of an upstream now; nil if the API server does not tell.
func cacheAddresses(ctx context.Context, t *kind.Testbed, host string) []string {
	ctx, cancel := bound(ctx)
	defer cancel()
	services, _, err := cache.List(ctx, t.Shoot)
	if err != nil {
		return nil
	}
	return cache.Addresses(services, host)
}

// pulling is one call of Run.
type pulling struct {
	*kind.Testbed
	Options
	image    Image
	registry *upstream.Registry
}

// describe asks the upstream for the parts of the image. An upstream that cannot answer is what
// many a pull is about: it is noted and no error.
func (p *pulling) describe(ctx context.Context) {
	err := p.registry.Describe(ctx, p.image.Repository, p.image.Identifier, func(index *v1.Descriptor, img v1.Image) (err error) {
		p.image.Objects, err = Describe(index, img)
		return err
	})
	if err != nil {
		p.image.Problem = err.Error()
	}
}

// run pulls on all nodes of the batch at once and collects the evidence.
func (p *pulling) run(ctx context.Context, batch Batch) (Evidence, error) {
	evidence := Evidence{Image: p.image, Attempts: make([]Attempt, len(batch.Nodes))}
	// Nodes are looked at before the log is read: what one of them does in between counts as what it
	// asked for.
	err := p.each(ctx, batch, evidence.Attempts, p.prepare)
	if err != nil {
		return evidence, err
	}
	before, logErr := p.registry.Log(ctx)
	if err := p.each(ctx, batch, evidence.Attempts, p.pullOnce); err != nil {
		return evidence, err
	}
	if logErr == nil {
		evidence.Records, logErr = p.recordsSince(ctx, before)
	}
	if logErr != nil {
		evidence.LogProblem = logErr.Error()
	}
	if ctx.Err() != nil {
		return evidence, context.Cause(ctx)
	}
	return evidence, nil
}

// recordsSince reads the log again and returns what is new.
func (p *pulling) recordsSince(ctx context.Context, before accesslog.Records) (accesslog.Records, error) {
	after, err := p.registry.Log(ctx)
	if err != nil {
		return nil, err
	}
	return since(before, after)
}

// since returns what the later reading of a log has more. It has less where the container was made
// anew in between.
func since(before, after accesslog.Records) (accesslog.Records, error) {
	if len(after) < len(before) {
		return nil, fmt.Errorf("the access log was reset during the pull: %d records, %d before", len(after), len(before))
	}
	return after[len(before):], nil
}

// each does something on all nodes of the batch at once.
func (p *pulling) each(ctx context.Context, batch Batch, attempts []Attempt,
	do func(context.Context, *cluster.Node, *Attempt) error,
) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, name := range batch.Nodes {
		attempts[i].Node, attempts[i].Round = name, batch.Round
		group.Go(func() error {
			node := p.worker(name)
			if err := do(ctx, node, &attempts[i]); err != nil {
				return fmt.Errorf("round %d on %s: %w", batch.Round, name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (p *pulling) worker(name string) *cluster.Node {
	workers := p.Shoot.Workers()
	return workers[slices.IndexFunc(workers, func(n *cluster.Node) bool { return n.Name() == name })]
}

// prepare brings the node into the state that the pull starts from, and notes it.
func (p *pulling) prepare(ctx context.Context, node *cluster.Node, attempt *Attempt) (err error) {
	if p.Fresh {
		if err := forget(ctx, node, p.image); err != nil {
			return err
		}
	}
	if attempt.Mirrors, err = mirrorsOf(ctx, node, p.image.Host); err != nil {
		return err
	}
	attempt.Before, err = contentOf(ctx, node)
	return err
}

// pullOnce pulls, as a step of its own, and notes what the node has then.
func (p *pulling) pullOnce(ctx context.Context, node *cluster.Node, attempt *Attempt) error {
	var broken error // not of the pull, but of what it takes to know
	_ = p.Recorder.Step(ctx, fmt.Sprintf("pull, round %d on %s", attempt.Round, node.Name()), func(ctx context.Context) error {
		attempt.Took, attempt.Failure, broken = runOn(ctx, node, p.image, p.Timeout)
		if broken == nil && attempt.Failure != "" {
			return errors.New(attempt.Failure)
		}
		return broken
	})
	if broken != nil {
		return broken
	}
	var err error
	attempt.After, err = contentOf(ctx, node)
	return err
}

// mirrorsOf returns what the node asks before an upstream, in containerd's order: the file of the
// host, or that of all hosts.
func mirrorsOf(ctx context.Context, node *cluster.Node, host string) ([]string, error) {
	ctx, cancel := bound(ctx)
	defer cancel()
	for _, folder := range []string{host, "_default"} {
		content, err := node.ReadFile(ctx, path.Join(nodeconfig.CertsDir, folder, nodeconfig.HostsFile))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return hostsfile.Parse(host, content).Hosts, nil
	}
	return nil, nil
}
