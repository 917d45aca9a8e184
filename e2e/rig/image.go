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

// Pushed is an image in an upstream, with random content and a repository of its own. So each
// request for the repository in the upstream's log is for this image.
type Pushed struct {
	Host, Repository string
	// Blobs are the digests that a pull on an empty node must fetch.
	Blobs []string
}

// Reference returns the reference of the image with its tag.
func (i Pushed) Reference() string {
	return i.Host + "/" + i.Repository + ":latest"
}

// push pushes a new random image to the upstream.
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

// Requests returns the requests for the image in the upstream's log, without the scenario's own
// pushes.
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

// Push pushes a new random image to the upstream.
func (p *Run) Push(ctx context.Context, host string) Pushed {
	p.Helper()
	img, err := push(ctx, p, host)
	p.Check(err)
	return img
}

// Requests returns the requests for the image in the upstream's log, without the scenario's own
// pushes.
func (p *Run) Requests(ctx context.Context, img Pushed) accesslog.Records {
	p.Helper()
	records, err := Requests(ctx, p, img)
	p.Check(err)
	return records
}

// FetchedOnce proves that the asker, and no other client, fetched each blob of the image from the
// upstream exactly once. For the cache it also proves that no node sent any request to the
// upstream.
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
		p.Errorf("%s saw %d blob GETs of %s by clients other than %s: %v", img.Host, others, img.Repository, asker, gets.Askers())
	}
	if nodes := records.By(accesslog.AskerNode); asker == accesslog.AskerCache && len(nodes) != 0 {
		p.Errorf("%s got %d requests from nodes for %s, want none: %s %s", img.Host, len(nodes), img.Repository, nodes[0].Method, nodes[0].Path)
	}
	if len(perBlob) != len(img.Blobs) {
		p.Errorf("%s saw GETs of %d blobs of %s, want %d", img.Host, len(perBlob), img.Repository, len(img.Blobs))
	}
	if p.Failed() {
		p.FailNow()
	}
	return records.Evidence()
}
