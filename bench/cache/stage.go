package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	smallBlob    = MB // no row has this size
	fillInterval = 50 * time.Millisecond
	fillTimeout  = time.Minute
	// patience bounds how long a client waits for an upstream that hangs.
	patience = 5 * time.Second
	// tagAge is the age at which each cache asks the upstream for a tag again.
	tagAge = 2 * time.Second
)

// stage is a contender on an empty volume, with a line of its own.
type stage struct {
	*contender
	line   *line
	volume string
}

// once measures one contender in one round of a row.
func (b *run) once(ctx context.Context, row Row, name string) (r Result, err error) {
	different := row.Blobs
	if row.State == Warm {
		different = 1
	}
	blobs := []blob{b.tag}
	if !row.Tag {
		if blobs, err = b.pushed(ctx, row.Size, different); err != nil {
			return r, err
		}
	}
	s, err := b.open(ctx, row, name)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if row.State == Warm {
		if name != Direct {
			if err := s.store(ctx, blobs, row.Tag); err != nil {
				return r, err
			}
		}
		blobs = slices.Repeat(blobs, row.Blobs)
	}
	if row.Fault == Hangs {
		select {
		case <-time.After(tagAge):
		case <-ctx.Done():
			return r, context.Cause(ctx)
		}
		s.line.hanging.Store(true)
	}
	return s.measure(ctx, row, blobs)
}

// open starts a contender and downloads one small blob, so that all code has run once.
func (b *run) open(ctx context.Context, row Row, name string) (s *stage, err error) {
	s = &stage{volume: filepath.Join(b.Folder, "volumes", name)}
	if err := emptyVolume(s.volume); err != nil {
		return nil, err
	}
	if row.Fault == Full {
		if err := unix.Mount("bench-cache", s.volume, "tmpfs", 0, fmt.Sprintf("size=%d", fullVolume)); err != nil {
			return nil, fmt.Errorf("mount a tmpfs: %w", err)
		}
	}
	small, err := b.pushed(ctx, smallBlob, 1)
	if err == nil {
		s.line, err = openLine(b.upstream.URL, row)
	}
	if err == nil {
		s.contender, err = startContender(ctx, name, b.Programs, site{Upstream: s.line.URL, Volume: s.volume, Folder: b.Folder})
	}
	if err == nil {
		answers, _ := download(ctx, 1, s.URL, small)
		err = answers[0].Err
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stage) close() (err error) {
	err = s.contender.stop()
	if s.line != nil {
		err = errors.Join(err, s.line.Close())
	}
	return errors.Join(err, emptyVolume(s.volume))
}

// emptyVolume empties the folder, and unmounts the file system of a fault.
func emptyVolume(folder string) error {
	_ = unix.Unmount(folder, unix.MNT_DETACH) // EINVAL or ENOENT if there is none
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
		return fmt.Errorf("prepare an empty volume: %w", err)
	}
	return nil
}

// store downloads until the contender no longer asks the upstream: a cache may store a blob after
// its answer. A tag is downloaded once, because a cache may ask the upstream for it each time.
func (s *stage) store(ctx context.Context, blobs []blob, tag bool) error {
	err := wait.PollUntilContextTimeout(ctx, fillInterval, fillTimeout, true, func(ctx context.Context) (bool, error) {
		before := s.line.requests.Load()
		answers, _ := download(ctx, 1, s.URL, blobs)
		return tag || s.line.requests.Load() == before, answers[0].Err
	})
	if err != nil {
		return fmt.Errorf("the contender has not stored %s within %s: %w", blobs[0].Path, fillTimeout, err)
	}
	return nil
}

// measure runs the clients and returns what they, the contender and the line measured.
func (s *stage) measure(ctx context.Context, row Row, blobs []blob) (r Result, err error) {
	idle, err := s.usage()
	if err != nil {
		return r, err
	}
	requests, bytes := s.line.requests.Load(), s.line.bytes.Load()
	clients := ctx
	if row.Fault == Hangs {
		var cancel context.CancelFunc
		clients, cancel = progress.Within(ctx, patience, "no answer")
		defer cancel()
	}
	answers, took := download(clients, row.Clients, s.URL, blobs)
	after, err := s.usage()
	if err != nil {
		return r, err
	}
	r, delivered := summary(answers, took)
	r.CPUPerGB = (after.CPU - idle.CPU).Seconds() / max(float64(delivered), 1) * GB
	r.Peak = float64(after.Peak)
	r.UpstreamRequests, r.UpstreamBytes = float64(s.line.requests.Load()-requests), float64(s.line.bytes.Load()-bytes)
	return r, context.Cause(ctx) // to a client, an interrupt is a failed download
}
