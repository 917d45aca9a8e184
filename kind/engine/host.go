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
	"github.com/moby/sys/capability"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

// readHost reads the state of the host. The argument answer is why the engine cannot be used.
func readHost(ctx context.Context, answer error) (host, error) {
	h := host{
		client:   hasProgram("docker"),
		daemon:   hasProgram("dockerd"),
		apt:      hasProgram("apt-get"),
		endpoint: endpointInUse(ctx),
		answer:   command.Tail(answer.Error(), 1),
		root:     os.Geteuid() == 0,
		systemd:  util.IsRunningSystemd(),
	}
	h.listening = listens(ctx, h.endpoint)

	var err error
	if !startedBefore() {
		if h.unmanaged, err = runningPID(pidFile, "dockerd"); err != nil {
			return host{}, fmt.Errorf("looking for dockerd: %w", err)
		}
	}
	h.missingCaps, err = missingCapabilities()
	return h, err
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

// missingCapabilities returns the capabilities that the kernel supports but that are not in this
// process's bounding set.
func missingCapabilities() ([]string, error) {
	known, err := capability.ListSupported()
	if err != nil {
		return nil, fmt.Errorf("listing the kernel's capabilities: %w", err)
	}
	var missing []string
	for _, c := range known {
		bound, err := capability.GetBound(c)
		if err != nil {
			return nil, fmt.Errorf("reading the bounding set for %s: %w", c, err)
		}
		if !bound {
			missing = append(missing, c.String())
		}
	}
	return missing, nil
}
