//go:build e2e

package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/image"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

const (
	imageLayers    = 2
	imageLayerSize = 2 << 20
)

// pushed is an image in an upstream. Its repository is its own, so all that the upstream's log has about the repository
// is about this image, and its content exists nowhere else.
type pushed struct {
	host, repository string
	// blobs are the digests that a pull from nothing must fetch.
	blobs []string
}

func (i pushed) reference() string {
	return i.host + "/" + i.repository + ":latest"
}

// push puts a new random image into the upstream.
func push(ctx context.Context, p *scenarioRun, host string) (pushed, error) {
	random, err := image.Random(p.suite.pause, imageLayers, imageLayerSize)
	if err != nil {
		return pushed{}, err
	}
	hashes, err := image.Blobs(random)
	if err != nil {
		return pushed{}, err
	}
	img := pushed{host: host, repository: "e2e/" + strings.ToLower(rand.Text()[:10])}
	for _, hash := range hashes {
		img.blobs = append(img.blobs, hash.String())
	}
	registry, err := upstreamOf(p, host)
	if err != nil {
		return pushed{}, err
	}
	if _, err := registry.Push(ctx, img.repository, "latest", random); err != nil {
		return pushed{}, fmt.Errorf("push a test image to %s: %w", host, err)
	}
	return img, nil
}

func upstreamOf(p *scenarioRun, host string) (*upstream.Registry, error) {
	registry := p.suite.testbed.Upstream(host)
	if registry == nil {
		return nil, fmt.Errorf("the testbed has no upstream %s", host)
	}
	return registry, nil
}

// requests returns what the upstream was asked for the image, without the pushes of the scenario itself.
func requests(ctx context.Context, p *scenarioRun, img pushed) (accesslog.Records, error) {
	registry, err := upstreamOf(p, img.host)
	if err != nil {
		return nil, err
	}
	log, err := registry.Log(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the access log of %s: %w", img.host, err)
	}
	return log.Repository(img.repository).Pulls(), nil
}

// Push puts a new random image into the upstream, see push.
func (p *scenarioRun) Push(ctx context.Context, host string) pushed {
	p.Helper()
	img, err := push(ctx, p, host)
	p.Check(err)
	return img
}

// Requests returns what the upstream was asked for the image, see requests.
func (p *scenarioRun) Requests(ctx context.Context, img pushed) accesslog.Records {
	p.Helper()
	records, err := requests(ctx, p, img)
	p.Check(err)
	return records
}

// FetchedOnce proves that the upstream saw each blob of the image exactly once, all from the asker. With the cache as
// asker it also proves that no node asked the upstream for anything.
func (p *scenarioRun) FetchedOnce(ctx context.Context, img pushed, asker accesslog.Asker) accesslog.Evidence {
	p.Helper()
	records := p.Requests(ctx, img)
	gets := records.Blobs().Gets()
	perBlob := gets.By(asker).PerReference()
	for _, blob := range img.blobs {
		if perBlob[blob] != 1 {
			p.Errorf("%s saw %d GETs by %s of blob %s, want 1", img.host, perBlob[blob], asker, blob)
		}
	}
	if others := len(gets) - len(gets.By(asker)); others != 0 {
		p.Errorf("%s saw %d blob GETs of %s by others than %s: %v", img.host, others, img.repository, asker, gets.Askers())
	}
	if nodes := records.By(accesslog.AskerNode); asker == accesslog.AskerCache && len(nodes) != 0 {
		p.Errorf("%s was asked %d times by a node for %s, want never: %s %s", img.host, len(nodes), img.repository, nodes[0].Method, nodes[0].Path)
	}
	if len(perBlob) != len(img.blobs) {
		p.Errorf("%s saw GETs of %d blobs of %s, want %d", img.host, len(perBlob), img.repository, len(img.blobs))
	}
	if p.Failed() {
		p.FailNow()
	}
	return records.Evidence()
}
