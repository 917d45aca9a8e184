package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/command"
)

// probeTimeout bounds one question to the engine. One on a busy machine takes seconds to answer; the person who has none
// is to know in less than 10 s.
const probeTimeout = 8 * time.Second

// managedLabel marks, in the engine's own description, an engine that Ensure started.
const managedLabel = "registry-cache.testbed=managed"

// info is what we read of `docker info`.
type info struct {
	ServerVersion string
	CgroupVersion string
	DockerRootDir string
	OSType        string
	Labels        []string
	Containers    int
	ServerErrors  []string
}

// probe asks the engine that the docker command reaches, by the context or DOCKER_HOST in effect, to describe itself.
// The docker command is what kind uses, too: what it does not reach is of no use.
func probe(ctx context.Context) (*Engine, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, probeTimeout, fmt.Errorf("the docker engine gave no answer in %s", probeTimeout))
	defer cancel()

	out, err := command.Output(ctx, "docker", "info", "--format", "{{json .}}")
	if err != nil {
		return nil, err
	}
	found, err := parseInfo([]byte(out))
	if err != nil {
		return nil, err
	}
	version, err := command.Output(ctx, "docker", "version", "--format", "{{.Server.APIVersion}}")
	if err != nil {
		return nil, err
	}
	found.APIVersion = strings.TrimSpace(version)
	endpoint := endpointInUse(ctx)
	found.Local = isLocal(endpoint)
	found.SysResource = sysResource(endpoint)
	return found, nil
}

// parseInfo reads the JSON that `docker info` prints. Some clients print what they know, and the reason, when the
// engine does not answer, and exit with 0.
func parseInfo(data []byte) (*Engine, error) {
	var described info
	if err := json.Unmarshal(data, &described); err != nil {
		return nil, fmt.Errorf("decoding docker info: %w", err)
	}
	if described.ServerVersion == "" {
		return nil, errors.New(strings.Join(append(described.ServerErrors, "docker info names no server version"), "; "))
	}
	if described.OSType != "" && described.OSType != "linux" {
		return nil, fmt.Errorf("the docker engine runs %s containers, linux is needed", described.OSType)
	}
	found := &Engine{
		Version:       described.ServerVersion,
		CgroupVersion: 1, // engines before 20.10 say nothing and know version 1 only
		DataRoot:      described.DockerRootDir,
		Managed:       slices.Contains(described.Labels, managedLabel),
		containers:    described.Containers,
	}
	if described.CgroupVersion == "2" {
		found.CgroupVersion = 2
	}
	return found, nil
}
