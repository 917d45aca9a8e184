package upstream

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// logTimeout bounds the wait for answers that were still under way when the log was read.
const logTimeout = 30 * time.Second

// follower reads the output of a container on and on. The log of a long run has thousands of records, and is asked for
// hundreds of times: only what is new is read then.
type follower struct {
	mu     sync.Mutex
	reader *accesslog.Reader
	close  func()
}

// Log returns the access log since the container was created, complete up to now: every request that had arrived before
// the call is in it, once its answer has ended, for which Log waits up to 30 s.
//
// An engine passes on what a container prints with some delay, and a client has a whole answer before the server has
// recorded it. Log therefore asks the server to settle and reads until it sees the record of that very request.
func (i *instance) Log(ctx context.Context) (accesslog.Records, error) {
	i.log.mu.Lock()
	defer i.log.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	mark := rand.Text()
	if err := get(ctx, i.logAddress(), accesslog.SettlePath+"?"+mark, http.StatusOK); err != nil {
		return nil, fmt.Errorf("read access log of %s: %w", i.host, err)
	}
	// What follows may have ended since the last time, for example with the container before a restart; the engine has all
	// that was printed, so it is read from the beginning then.
	records, err := i.readLog(ctx, mark)
	if err != nil && ctx.Err() == nil {
		records, err = i.readLog(ctx, mark)
	}
	if err != nil {
		return nil, fmt.Errorf("read access log of %s: %w", i.host, err)
	}
	return records, nil
}

// readLog reads on until the mark. An error, or the end of the context, ends the follower.
func (i *instance) readLog(ctx context.Context, mark string) (accesslog.Records, error) {
	if i.log.reader == nil {
		if err := i.follow(ctx); err != nil {
			return nil, err
		}
	}
	stop := context.AfterFunc(ctx, i.log.close)
	records, err := i.log.reader.Until(mark)
	if !stop() || err != nil {
		i.log.end()
	}
	return records, err
}

// end ends it; the next Log begins anew.
func (f *follower) end() {
	if f.reader != nil {
		f.close()
		f.reader = nil
	}
}

// follow starts to read, until end is called. What nobody reads yet waits in the engine.
func (i *instance) follow(ctx context.Context) error {
	following, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	stream, err := i.docker.ContainerLogs(following, i.id, client.ContainerLogsOptions{ShowStdout: true, Follow: true})
	stop()
	if err != nil {
		cancel()
		return err
	}
	stdout, writer := io.Pipe()
	go func() {
		_, err := stdcopy.StdCopy(writer, io.Discard, stream)
		writer.CloseWithError(err)
	}()
	i.log.reader = accesslog.NewReader(stdout)
	i.log.close = func() {
		cancel()
		_ = stdout.Close()
		_ = stream.Close()
	}
	return nil
}

// Output copies what the container has printed so far: the access log to stdout, everything else to stderr. Unlike Log
// it also works when the container no longer runs.
func (i *instance) Output(ctx context.Context, stdout, stderr io.Writer) error {
	stream, err := i.docker.ContainerLogs(ctx, i.id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		return fmt.Errorf("read output of %s: %w", i.host, err)
	}
	defer stream.Close()
	if _, err := stdcopy.StdCopy(stdout, stderr, stream); err != nil {
		return fmt.Errorf("read output of %s: %w", i.host, err)
	}
	return nil
}

// logAddress is that of the published port that answers for the log by plain HTTP.
func (i *instance) logAddress() string {
	if _, ok := i.ports[ProxyPort]; ok {
		return i.localAddress(ProxyPort)
	}
	return i.localAddress(httpPort)
}
