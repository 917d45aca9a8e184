package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/util"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

// readHost reads the state of the host. The parameter reason is why its engine does not answer.
func readHost(ctx context.Context, reason error) (host, error) {
	h := host{
		client:   hasProgram("docker"),
		daemon:   hasProgram("dockerd"),
		apt:      hasProgram("apt-get"),
		endpoint: endpointInUse(ctx),
		answer:   command.Tail(reason.Error(), 1),
		root:     os.Geteuid() == 0,
		systemd:  util.IsRunningSystemd(),
	}
	h.listening = listens(ctx, h.endpoint)
	if startedBefore() {
		return h, nil
	}
	var err error
	if h.unmanaged, err = runningPID(pidFile, "dockerd"); err != nil {
		return host{}, fmt.Errorf("look for dockerd: %w", err)
	}
	return h, nil
}

func hasProgram(name string) bool {
	_, err := lookIn(searchPath(), name)
	return err == nil
}

func endpointInUse(ctx context.Context) string {
	// The current context takes DOCKER_HOST and DOCKER_CONTEXT into account.
	out, err := command.Output(ctx, "docker", "context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
	if endpoint := strings.TrimSpace(out); err == nil && endpoint != "" {
		return endpoint
	}
	return cmp.Or(os.Getenv("DOCKER_HOST"), defaultEndpoint)
}

// socketPath returns the path of a Unix domain socket endpoint.
func socketPath(endpoint string) (path string, local bool) {
	return strings.CutPrefix(endpoint, "unix://")
}

// listens reports whether a local endpoint accepts a connection, or refuses it for lack of
// permission.
func listens(ctx context.Context, endpoint string) bool {
	path, local := socketPath(endpoint)
	if !local {
		return false
	}
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
	if err != nil {
		return errors.Is(err, fs.ErrPermission)
	}
	_ = conn.Close()
	return true
}
