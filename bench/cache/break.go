package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	// patience is how long a client waits for an upstream that hangs.
	patience = 30 * time.Second
	// tagAge is how old a tag must be, so that each cache asks the upstream again.
	tagAge            = 2 * time.Second
	cutSize, cutAfter = 32 << 20, 10 << 20
	fullSize          = 100 * MB
	fullVolume        = 64 << 20
	fullClients       = 16
)

// errSkipped says that this machine does not allow a fault.
type errSkipped struct{ error }

// hang asks for what is stored and what is not after the upstream stopped answering.
func (b *run) hang(ctx context.Context, name string) (answers []Answer, err error) {
	s, err := b.open(ctx, name, conditions{}, unprepared)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if stored, _ := download(ctx, 1, s.targets(b.tag)); stored[0].Err != nil {
		return nil, fmt.Errorf("store a tag: %w", stored[0].Err)
	}
	if name != Direct {
		err = s.fill(ctx, b.small)
	}
	select {
	case <-time.After(tagAge):
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.line.Hang()
	asked := []blob{b.small, b.tag, b.blobs[MB][0]}
	answers = make([]Answer, len(asked))
	var asking sync.WaitGroup
	for i, name := range []string{"a stored blob", "a stored tag", "another blob"} {
		asking.Go(func() { answers[i] = s.ask(ctx, name, 1, asked[i]) })
	}
	asking.Wait()
	return answers, nil
}

func (b *run) cuts(ctx context.Context, name string) (answers []Answer, err error) {
	s, err := b.open(ctx, name, conditions{CutAfter: cutAfter}, unprepared)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.askAlone(ctx, 1, b.blobs[cutSize][0]), nil
}

func (b *run) full(ctx context.Context, name string) (answers []Answer, err error) {
	s, err := b.open(ctx, name, conditions{}, mountSmall)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.askAlone(ctx, fullClients, b.blobs[fullSize][0]), nil
}

func unprepared(string) error { return nil }

func mountSmall(volume string) error {
	if err := unix.Mount("bench-cache", volume, "tmpfs", 0, fmt.Sprintf("size=%d", fullVolume)); err != nil {
		return errSkipped{fmt.Errorf("mount a tmpfs needs root: %w", err)}
	}
	return nil
}

// ask lets clients download a blob. They wait at most for the time of their patience.
func (s *stage) ask(ctx context.Context, asked string, clients int, blob blob) Answer {
	ctx, cancel := progress.Within(ctx, patience, "no answer")
	defer cancel()
	answers, _ := download(ctx, clients, s.targets(blob))
	return answerOf(asked, answers)
}

// askAlone is like ask, and counts the requests to the upstream.
func (s *stage) askAlone(ctx context.Context, clients int, blob blob) []Answer {
	before := s.line.Traffic()
	a := s.ask(ctx, "a blob", clients, blob)
	a.Upstream = new(s.line.Traffic().Since(before))
	return []Answer{a}
}
