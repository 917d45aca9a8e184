package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/capability"

	"github.com/gardener-extensions/registry-cache/kind/command"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// probeTimeout bounds one request to the engine. On a busy machine, an answer takes seconds. A user
// without an engine should get an error in less than 10 s.
const probeTimeout = 8 * time.Second

// managedLabel is the engine label that marks an engine started by Ensure.
const managedLabel = "registry-cache.testbed=managed"

// info contains the fields of `docker info` that parseInfo uses.
type info struct {
	ServerVersion, DockerRootDir, OSType string

	Labels, ServerErrors []string
	Containers           int
}

// probe returns the engine that the docker command reaches, which kind also uses.
func probe(ctx context.Context) (*Engine, error) {
	ctx, cancel := progress.Within(ctx, probeTimeout, "the docker engine did not answer")
	defer cancel()

	out, err := command.Output(ctx, "docker", "info", "--format", "{{json .}}")
	if err != nil {
		return nil, err
	}
	found, err := parseInfo([]byte(out))
	if err != nil {
		return nil, err
	}
	_, found.Local = socketPath(endpointInUse(ctx))
	// Containers receive only capabilities in the engine's bounding set. On the same machine, that
	// is usually the bounding set of this process.
	bound, err := capability.GetBound(capability.CAP_SYS_RESOURCE)
	found.SysResource = !found.Local || bound || err != nil
	return found, nil
}

// parseInfo reads the JSON output of `docker info`. If the engine does not answer, some clients
// print only ServerErrors and other fields of the client, and exit with 0.
func parseInfo(data []byte) (*Engine, error) {
	var described info
	if err := json.Unmarshal(data, &described); err != nil {
		return nil, fmt.Errorf("decoding docker info: %w", err)
	}
	if described.ServerVersion == "" {
		return nil, errors.New(strings.Join(append(described.ServerErrors, "docker info has no server version"), "; "))
	}
	if described.OSType != "" && described.OSType != "linux" {
		return nil, fmt.Errorf("the docker engine runs %s containers, want linux", described.OSType)
	}
	return &Engine{
		Version:    described.ServerVersion,
		DataRoot:   described.DockerRootDir,
		Managed:    slices.Contains(described.Labels, managedLabel),
		containers: described.Containers,
	}, nil
}
