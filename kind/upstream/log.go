package upstream

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/client"

	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// logTimeout bounds the wait for answers that were still under way when the log was read.
const logTimeout = 30 * time.Second

// Log returns the access log since the container was started, complete up to now: every request that had arrived before
// the call is in it, once its answer has ended, for which Log waits up to 30 s.
//
// An engine passes on what a container prints with some delay, and a client has a whole answer before the server has
// recorded it. Log therefore asks the server to settle and reads until it sees the record of that very request.
func (i *instance) Log(ctx context.Context) (accesslog.Records, error) {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	mark := rand.Text()
	if err := get(ctx, i.logAddress(), accesslog.SettlePath+"?"+mark, http.StatusOK); err != nil {
		return nil, fmt.Errorf("read access log of %s: %w", i.host, err)
	}
	stream, err := i.docker.ContainerLogs(ctx, i.id, client.ContainerLogsOptions{ShowStdout: true, Follow: true})
	if err != nil {
		return nil, fmt.Errorf("read access log of %s: %w", i.host, err)
	}
	defer stream.Close()
	stdout, writer := io.Pipe()
	defer func() { _ = stdout.Close() }()
	go func() {
		_, err := stdcopy.StdCopy(writer, io.Discard, stream)
		writer.CloseWithError(err)
	}()
	records, err := accesslog.ReadUntil(stdout, mark)
	if err != nil {
		return nil, fmt.Errorf("read access log of %s: %w", i.host, err)
	}
	return records, nil
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
