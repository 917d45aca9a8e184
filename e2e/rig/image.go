//go:build e2e

package rig

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

// Pushed is an image in an upstream. Its repository is its own, so all that the upstream's log has about the repository
// is about this image, and its content exists nowhere else.
type Pushed struct {
	Host, Repository string
	// Blobs are the digests that a pull from nothing must fetch.
	Blobs []string
}

func (i Pushed) Reference() string {
	return i.Host + "/" + i.Repository + ":latest"
}

// push puts a new random image into the upstream.
func push(ctx context.Context, p *Run, host string) (Pushed, error) {
	random, err := image.Random(p.Session.pause, imageLayers, imageLayerSize)
	if err != nil {
		return Pushed{}, err
	}
	hashes, err := image.Blobs(random)
	if err != nil {
		return Pushed{}, err
	}
	img := Pushed{Host: host, Repository: "e2e/" + strings.ToLower(rand.Text()[:10])}
	for _, hash := range hashes {
		img.Blobs = append(img.Blobs, hash.String())
	}
	registry, err := upstreamOf(p, host)
	if err != nil {
		return Pushed{}, err
	}
	if _, err := registry.Push(ctx, img.Repository, "latest", random); err != nil {
		return Pushed{}, fmt.Errorf("push a test image to %s: %w", host, err)
	}
	return img, nil
}

func upstreamOf(p *Run, host string) (*upstream.Registry, error) {
	registry := p.Session.Testbed.Upstream(host)
	if registry == nil {
		return nil, fmt.Errorf("the testbed has no upstream %s", host)
	}
	return registry, nil
}

// Requests returns what the upstream was asked for the image, without the pushes of the scenario itself.
func Requests(ctx context.Context, p *Run, img Pushed) (accesslog.Records, error) {
	registry, err := upstreamOf(p, img.Host)
	if err != nil {
		return nil, err
	}
	log, err := registry.Log(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the access log of %s: %w", img.Host, err)
	}
	return log.Repository(img.Repository).Pulls(), nil
}

// Push puts a new random image into the upstream, see push.
func (p *Run) Push(ctx context.Context, host string) Pushed {
	p.Helper()
	img, err := push(ctx, p, host)
	p.Check(err)
	return img
}

// Requests returns what the upstream was asked for the image, see requests.
func (p *Run) Requests(ctx context.Context, img Pushed) accesslog.Records {
	p.Helper()
	records, err := Requests(ctx, p, img)
	p.Check(err)
	return records
}

// FetchedOnce proves that the upstream saw each blob of the image exactly once, all from the asker. With the cache as
// asker it also proves that no node asked the upstream for anything.
func (p *Run) FetchedOnce(ctx context.Context, img Pushed, asker accesslog.Asker) accesslog.Evidence {
	p.Helper()
	records := p.Requests(ctx, img)
	gets := records.Blobs().Gets()
	perBlob := gets.By(asker).PerReference()
	for _, blob := range img.Blobs {
		if perBlob[blob] != 1 {
			p.Errorf("%s saw %d GETs by %s of blob %s, want 1", img.Host, perBlob[blob], asker, blob)
		}
	}
	if others := len(gets) - len(gets.By(asker)); others != 0 {
		p.Errorf("%s saw %d blob GETs of %s by others than %s: %v", img.Host, others, img.Repository, asker, gets.Askers())
	}
	if nodes := records.By(accesslog.AskerNode); asker == accesslog.AskerCache && len(nodes) != 0 {
		p.Errorf("%s was asked %d times by a node for %s, want never: %s %s", img.Host, len(nodes), img.Repository, nodes[0].Method, nodes[0].Path)
	}
	if len(perBlob) != len(img.Blobs) {
		p.Errorf("%s saw GETs of %d blobs of %s, want %d", img.Host, len(perBlob), img.Repository, len(img.Blobs))
	}
	if p.Failed() {
		p.FailNow()
	}
	return records.Evidence()
}
