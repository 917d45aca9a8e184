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
	// followPace is how often logs are looked for, and so how long one that has ended stays closed.
	followPace = 2 * time.Second
	// findTimeout bounds one look.
	findTimeout = 10 * time.Second
	// followPatience is how long none may be readable that could be read before.
	followPatience = 2 * time.Minute
)

// Follow hands the lines of all streams that find returns on as they come, until ctx ends, which is no error. It asks find again and
// again: a stream that has ended, for example with its container, is opened again behind its last line if find still has its name,
// and one that is new is opened too, from since on. So one of several lines of exactly the same time may be lost where a stream ended.
// The error is what was wrong, when no stream could be read at the first attempt, or none for two minutes. take is called for one line
// at a time.
func Follow(ctx context.Context, find func(context.Context) ([]Stream, error), since time.Time, take func(Line)) error {
	f := &follower{since: since, take: take, open: map[string]bool{}, last: map[string]time.Time{}, failed: map[string]error{}}
	ctx, stop := context.WithCancel(ctx)
	defer f.running.Wait()
	defer stop()
	for {
		streams, err := look(ctx, find)
		f.openAll(ctx, streams)
		select {
		case <-ctx.Done():
		case <-time.After(followPace):
		}
		if ctx.Err() != nil {
			return nil // it was to go on until now, and what ended with ctx failed for that
		}
		if err := f.hopeless(time.Now(), streams, err); err != nil {
			return err
		}
	}
}

// look is find within a time.
func look(ctx context.Context, find func(context.Context) ([]Stream, error)) ([]Stream, error) {
	ctx, cancel := progress.Within(ctx, findTimeout, "no answer")
	defer cancel()
	streams, err := find(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		err = fmt.Errorf("look for logs: %w", err)
	}
	return streams, err
}

// follower is one call of Follow.
type follower struct {
	since   time.Time
	running sync.WaitGroup

	mu   sync.Mutex
	take func(Line)
	// read is when one was last; zero if none could be.
	read time.Time
	// By name: open says which streams are, last is the time of the last line, failed is why the last attempt to read ended.
	open   map[string]bool
	last   map[string]time.Time
	failed map[string]error
}

// openAll opens the streams that are not open.
func (f *follower) openAll(ctx context.Context, streams []Stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, stream := range streams {
		if f.open[stream.Name] {
			continue
		}
		window := Window{Since: f.since, Follow: true}
		if last, found := f.last[stream.Name]; found {
			window.Since = last.Add(1) // logs may begin earlier than asked for: what is before is left out
		}
		f.open[stream.Name] = true
		f.running.Go(func() { f.follow(ctx, stream, window) })
	}
}

// follow reads one stream until it ends.
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
	if err != nil {
		err = fmt.Errorf("log of %s: %w", stream.Name, err)
	}
	f.failed[stream.Name] = err
}

// hopeless judges an attempt a while after it: what was wrong, if that is no use to go on with. That a log has ended, or that there is
// none now, is nothing wrong.
func (f *follower) hopeless(now time.Time, streams []Stream, found error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	wrong := found
	for _, stream := range streams {
		wrong = errors.Join(wrong, f.failed[stream.Name])
	}
	switch {
	case len(f.open) > 0 || wrong == nil:
		f.read = now
		return nil
	case f.read.IsZero():
		return wrong
	case now.Sub(f.read) < followPatience:
		return nil
	default:
		return fmt.Errorf("no log could be read for %s, `testbed doctor` tells how the testbed is: %w", followPatience, wrong)
	}
}
