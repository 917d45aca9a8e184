package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	smallBlob    = MB
	fillInterval = 50 * time.Millisecond
	fillTimeout  = time.Minute
)

// stage is a contender on an empty volume, with a line of its own.
type stage struct {
	line   *line
	runs   *contender
	volume string
}

// open starts a contender and downloads one small blob, so that it has done everything once.
func (b *run) open(ctx context.Context, name string, line conditions, prepare func(volume string) error) (s *stage, err error) {
	s = &stage{volume: filepath.Join(b.Folder, "volumes", name)}
	if err := errors.Join(s.clear(), os.MkdirAll(s.volume, 0o755), prepare(s.volume)); err != nil {
		return nil, fmt.Errorf("prepare an empty volume: %w", err)
	}
	if s.line, err = openLine(b.registry.URL, line); err != nil {
		return nil, err
	}
	s.runs, err = startContender(ctx, name, b.Programs, site{Upstream: s.line.URL, Volume: s.volume, Folder: b.Folder})
	if err == nil {
		answers, _ := download(ctx, 1, s.targets(b.small))
		err = answers[0].Err
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *stage) close() (err error) {
	if s.runs != nil {
		err = s.runs.Stop()
	}
	return errors.Join(err, s.line.Close(), s.clear())
}

// clear removes the volume, also the file system of a fault that an interrupted run left.
func (s *stage) clear() error {
	_ = unix.Unmount(s.volume, unix.MNT_DETACH) // EINVAL or ENOENT if there is none
	return os.RemoveAll(s.volume)
}

func (s *stage) targets(blobs ...blob) []target {
	var targets []target
	for _, blob := range blobs {
		targets = append(targets, target{URL: s.runs.URL + blob.Path, Size: blob.Size})
	}
	return targets
}

// fill downloads until the upstream is not asked anymore: a cache may store a blob after it
// answered.
func (s *stage) fill(ctx context.Context, blob blob) error {
	err := wait.PollUntilContextTimeout(ctx, fillInterval, fillTimeout, true, func(ctx context.Context) (bool, error) {
		before := s.line.Traffic().Requests
		answers, _ := download(ctx, 1, s.targets(blob))
		return s.line.Traffic().Requests == before, answers[0].Err
	})
	if err != nil {
		return fmt.Errorf("the contender has not stored a blob of %s within %s: %w", Size(blob.Size), fillTimeout, err)
	}
	return nil
}

// once measures one contender once.
func (b *run) once(ctx context.Context, row Row, name string) (r Result, err error) {
	blobs, err := b.blobsOf(ctx, row.Size, row.different())
	if err != nil {
		return r, err
	}
	s, err := b.open(ctx, name, conditions{Delay: row.Delay, Rate: row.Rate}, unprepared)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	targets := s.targets(blobs...)
	if row.State == Warm {
		if name != Direct {
			err = s.fill(ctx, blobs[0])
		}
		for len(targets) < row.Blobs {
			targets = append(targets, targets[0])
		}
	}
	if err != nil {
		return r, err
	}
	return s.measure(ctx, row.Clients, targets)
}

// measure runs the clients and returns what they, the contender and the line measured.
func (s *stage) measure(ctx context.Context, clients int, targets []target) (r Result, err error) {
	if err := s.runs.ResetPeak(); err != nil {
		return r, err
	}
	idle, err := s.runs.Usage()
	if err != nil {
		return r, err
	}
	before := s.line.Traffic()
	answers, took := download(ctx, clients, targets)
	after, err := s.runs.Usage()
	if err != nil {
		return r, err
	}
	r, bytes := summary(answers, took)
	r.CPUPerGB = (after.CPU - idle.CPU).Seconds() / max(float64(bytes), 1) * GB
	r.Peak = float64(after.Peak)
	traffic := s.line.Traffic().Since(before)
	r.UpstreamRequests, r.UpstreamBytes = float64(traffic.Requests), float64(traffic.Bytes)
	return r, context.Cause(ctx)
}
