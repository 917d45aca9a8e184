package upstream

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// follower reads the output of a container continuously. A long run calls Log hundreds of times for
// thousands of records. The follower reads each record only once.
type follower struct {
	mu     sync.Mutex
	reader *accesslog.Reader
	close  func()
}

// Log returns the access log since the container was created. It contains every request that
// arrived before the call, unless a fault holds it. Log waits up to 30 s for requests to end.
//
// The engine delays output, and a client can receive an entire response before the server records
// the request. Log therefore sends a request to SettlePath and reads until the record of that
// request.
func (i *instance) Log(ctx context.Context) (accesslog.Records, error) {
	i.log.mu.Lock()
	defer i.log.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	mark := rand.Text()
	if err := get(ctx, i.logAddress(), accesslog.SettlePath+"?"+mark); err != nil {
		return nil, fmt.Errorf("read access log of %s: %w", i.host, err)
	}
	// The stream may have ended since the last call, for example because the container restarted. The
	// engine keeps all output, so the second attempt reads it from the beginning.
	records, err := i.readLog(ctx, mark)
	if err != nil && ctx.Err() == nil {
		records, err = i.readLog(ctx, mark)
	}
	if err != nil {
		return nil, fmt.Errorf("read access log of %s: %w", i.host, err)
	}
	return records, nil
}

// readLog reads up to the request with the mark. An error or the end of ctx closes the stream.
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

// end closes the stream. The next Log opens a new one.
func (f *follower) end() {
	if f.reader != nil {
		f.close()
		f.reader = nil
	}
}

// follow opens the stream, which is open until end is called. The engine buffers output that is not
// read yet.
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

// Output copies what the container has printed: the access log to stdout, the rest to stderr.
// Unlike Log, Output does not need a running container.
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

func (i *instance) logAddress() string {
	if _, ok := i.ports[ProxyPort]; ok {
		return i.localAddress(ProxyPort)
	}
	return i.localAddress(httpPort)
}
