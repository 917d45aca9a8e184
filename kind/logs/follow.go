package logs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

const (
	findInterval      = 2 * time.Second  // between two calls of find; ended streams are reopened after each call
	findTimeout       = 10 * time.Second // bounds one call of find
	unreadableTimeout = 2 * time.Minute  // how long all streams may be unreadable after one was readable
)

// Follow calls the function take for each line of the streams that the function find returns, one
// line at a time, until ctx ends. It calls find every two seconds.
//
// In new streams, Follow skips lines that are older than since. If find still returns an ended
// stream, for example of a restarted container, Follow reopens it after its last line. If the
// stream ended between lines with the same time, some may be lost. Follow returns an error if no
// stream can be read at the start, or later for two minutes.
func Follow(ctx context.Context, find func(context.Context) ([]Stream, error), since time.Time, take func(Line)) error {
	f := &follower{since: since, take: take, open: map[string]bool{}, last: map[string]time.Time{}, failed: map[string]error{}}
	ctx, stop := context.WithCancel(ctx)
	defer f.running.Wait()
	defer stop()
	for {
		streams, err := findStreams(ctx, find)
		f.openAll(ctx, streams)
		select {
		case <-ctx.Done():
		case <-time.After(findInterval):
		}
		if ctx.Err() != nil {
			return nil // any error comes from the end of ctx
		}
		if err := f.check(time.Now(), streams, err); err != nil {
			return err
		}
	}
}

func findStreams(ctx context.Context, find func(context.Context) ([]Stream, error)) ([]Stream, error) {
	ctx, cancel := progress.Within(ctx, findTimeout, "no answer")
	defer cancel()
	streams, err := find(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		err = fmt.Errorf("find logs: %w", err)
	}
	return streams, err
}

type follower struct {
	since   time.Time
	running sync.WaitGroup

	mu   sync.Mutex
	take func(Line)
	read time.Time // the last time when a stream could be read, or zero
	// By the name of the stream: whether it is open, the time of its last line, and its last error.
	open   map[string]bool
	last   map[string]time.Time
	failed map[string]error
}

func (f *follower) openAll(ctx context.Context, streams []Stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, stream := range streams {
		if f.open[stream.Name] {
			continue
		}
		window := Window{Since: f.since, Follow: true}
		if last, found := f.last[stream.Name]; found {
			window.Since = last.Add(1)
		}
		f.open[stream.Name] = true
		f.running.Go(func() { f.follow(ctx, stream, window) })
	}
}

func (f *follower) follow(ctx context.Context, stream Stream, window Window) {
	err := stream.read(ctx, window, func(line Line) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if line.Time.After(f.last[stream.Name]) {
			f.last[stream.Name] = line.Time
		}
		f.read = time.Now()
		f.take(line)
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, stream.Name)
	f.failed[stream.Name] = err
}

// check returns an error if no stream can be read. Follow calls it one findInterval after it has
// opened the streams. An ended stream is not an error, and neither is an empty list of streams.
func (f *follower) check(now time.Time, streams []Stream, err error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, stream := range streams {
		err = errors.Join(err, f.failed[stream.Name])
	}
	switch {
	case len(f.open) > 0 || err == nil:
		f.read = now
		return nil
	case f.read.IsZero():
		return err
	case now.Sub(f.read) < unreadableTimeout:
		return nil
	default:
		return fmt.Errorf("no log could be read for %s, run `testbed doctor`: %w", unreadableTimeout, err)
	}
}
