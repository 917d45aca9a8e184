// Package cache compares the cache with a stock distribution, nginx and downloads without a cache.
// Rows differ in the line to the upstream, the blob size, the number of clients and the fault.
//
// A slow contender is not an error. The report shows which goals are held.
//
// Measurements must not depend on how a contender works: they count seconds, bytes and requests.
package cache

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/gardener-extensions/registry-cache/bench"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const rowTimeout = 5 * time.Minute // for each round

// Options configure a run.
type Options struct {
	Programs map[string]string // paths by name of the contender
	Versions map[string]string
	Folder   string // for volumes, configurations and logs
	Quick    bool   // measure fewer rows, each only once
	Progress *progress.Recorder
}

// Measure measures all rows. All processes are stopped at the end, even if ctx is canceled.
func Measure(ctx context.Context, o Options) (report Report, err error) {
	report = Report{Date: time.Now().UTC().Format(time.DateOnly), Versions: o.Versions, Rounds: 3, SHA256PerGB: measureSHA256()}
	if o.Quick {
		report.Rounds = 1
	}
	if report.Machine, err = bench.Machine(); err != nil {
		return report, err
	}
	b := &run{Options: o, blobs: map[int64][]blob{}}
	defer func() { err = errors.Join(err, b.upstream.stop(), os.RemoveAll(filepath.Join(o.Folder, "volumes"))) }()
	if err := o.Progress.Step(ctx, "upstream", b.startUpstream); err != nil {
		return report, err
	}
	for _, row := range rows {
		if o.Quick && !row.quick {
			continue
		}
		rounds := report.Rounds
		if row.Fault != "" {
			rounds = 1
		}
		err := o.Progress.Step(ctx, row.Name(), func(ctx context.Context) error {
			results, err := b.measure(ctx, row, rounds)
			if row.Fault == Full && errors.Is(err, fs.ErrPermission) {
				progress.Skip(ctx, "a small volume needs root: %v", err)
				return nil
			}
			report.Rows = append(report.Rows, Measured{Row: row, Results: results})
			return err
		})
		if err != nil {
			return report, fmt.Errorf("%s: %w", row.Name(), err)
		}
	}
	return report, nil
}

// measureSHA256 hashes 1 GB and returns the seconds.
func measureSHA256() float64 {
	began, hash, block := time.Now(), sha256.New(), make([]byte, MB)
	for range GB / MB {
		hash.Write(block)
	}
	return time.Since(began).Seconds()
}

type run struct {
	Options
	upstream *contender
	image    name.Reference   // in the upstream; its repository contains all blobs
	blobs    map[int64][]blob // by size
	tag      blob
}

func (b *run) startUpstream(ctx context.Context) (err error) {
	volume := filepath.Join(b.Folder, "volumes", Upstream)
	if err = emptyVolume(volume); err == nil {
		b.upstream, err = startContender(ctx, Upstream, b.Programs, site{Volume: volume, Folder: b.Folder})
	}
	if err != nil {
		return err
	}
	b.image, err = name.ParseReference(strings.TrimPrefix(b.upstream.URL, "http://")+"/library/app:latest", name.Insecure)
	if err == nil {
		b.tag, err = pushImage(ctx, b.image)
	}
	return err
}

// pushed returns n different blobs of this size. All rows and contenders share them, because each
// measurement starts with an empty volume.
func (b *run) pushed(ctx context.Context, size int64, n int) ([]blob, error) {
	for len(b.blobs[size]) < n {
		blob, err := push(ctx, b.image.Context(), size)
		if err != nil {
			return nil, err
		}
		b.blobs[size] = append(b.blobs[size], blob)
	}
	return b.blobs[size][:n], nil
}

// blob is content of the upstream, which every contender serves at the same path.
type blob struct {
	Path string
	Size int64
}

// push stores a blob of random bytes. It is then in the page cache for all contenders.
func push(ctx context.Context, to name.Repository, size int64) (blob, error) {
	content := make([]byte, size)
	_, _ = rand.Read(content) // never fails
	layer := static.NewLayer(content, types.DockerLayer)
	digest, err := layer.Digest()
	if err == nil {
		err = remote.WriteLayer(to, layer, remote.WithContext(ctx))
	}
	if err != nil {
		return blob{}, fmt.Errorf("push a blob of %d bytes to the upstream: %w", size, err)
	}
	return blob{Path: "/v2/" + to.RepositoryStr() + "/blobs/" + digest.String(), Size: size}, nil
}

// pushImage stores an image without layers and returns its manifest by tag.
func pushImage(ctx context.Context, to name.Reference) (blob, error) {
	size, err := empty.Image.Size()
	if err == nil {
		err = remote.Write(to, empty.Image, remote.WithContext(ctx))
	}
	if err != nil {
		return blob{}, fmt.Errorf("push an image to the upstream: %w", err)
	}
	return blob{Path: "/v2/" + to.Context().RepositoryStr() + "/manifests/" + to.Identifier(), Size: size}, nil
}

// measure returns the medians of all rounds. Each round starts with a different contender.
func (b *run) measure(ctx context.Context, row Row, rounds int) (map[string]Result, error) {
	ctx, cancel := progress.Within(ctx, rowTimeout*time.Duration(rounds), "the row did not finish")
	defer cancel()
	all := map[string][]Result{}
	for round := range rounds {
		for i := range Contenders {
			name := Contenders[(i+round)%len(Contenders)]
			result, err := b.once(ctx, row, name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			all[name] = append(all[name], result)
		}
	}
	results := map[string]Result{}
	for _, name := range Contenders {
		results[name] = median(all[name])
		progress.Note(ctx, "%s %.0f MB/s", name, results[name].Throughput/MB)
	}
	return results, nil
}
