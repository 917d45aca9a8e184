package engine

import (
	"context"
	"fmt"
	"strings"

	"github.com/gardener-extensions/registry-cache/kind/debian"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// Engine describes a reachable Docker Engine.
type Engine struct {
	// Version is the engine's version, for example 20.10.24.
	Version string
	// APIVersion is the highest version of Docker's API that the engine speaks, for example 1.41.
	APIVersion string
	// CgroupVersion is 1 or 2.
	CgroupVersion int
	// DataRoot is the directory, on the engine's host, where images and volumes lie.
	DataRoot string
	// SysResource tells whether a privileged container gets CAP_SYS_RESOURCE, without which neither a negative
	// oom_score_adj nor a raised hard limit can be set.
	SysResource bool
	// Managed tells whether Ensure started the engine.
	Managed bool
	// Local tells whether the engine runs on this machine, as far as its endpoint says.
	Local bool

	containers int
}

// Ensure returns the engine that the docker command reaches. Where there is none and the host is Debian or Ubuntu and
// we are root, the engine is installed and started first, in at most some minutes. Otherwise the error is a *Missing,
// in under 10 s. Concurrent calls, also of other processes, wait for each other.
func Ensure(ctx context.Context) (*Engine, error) {
	found, client, err := lookAround(ctx)
	if err != nil || found != nil {
		return found, err
	}
	if _, missing := decide(client); missing != nil {
		return nil, missing
	}

	unlock, err := acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	// Another process may have been faster.
	found, client, err = lookAround(ctx)
	if err != nil || found != nil {
		return found, err
	}
	plan, missing := decide(client)
	if missing != nil {
		return nil, missing
	}
	if err := carryOut(ctx, plan); err != nil {
		return nil, fmt.Errorf("setting up a docker engine: %w", err)
	}
	return probe(ctx)
}

// Running returns the engine that answers, or nil. It changes nothing.
func Running(ctx context.Context) *Engine {
	found, err := probe(ctx)
	if err != nil {
		return nil
	}
	return found
}

// Attach returns the reachable engine; an engine that Ensure had started and that has died is started again. It
// returns nil where none runs, and installs nothing: it is for looking at, or taking down, what is there. One that may run
// and that cannot be asked, as it hangs, is not ours to use or was chosen and is out of reach, is a *Missing: nobody knows
// then what it has.
func Attach(ctx context.Context) (*Engine, error) {
	found, seen, err := lookAround(ctx)
	if err != nil || found != nil {
		return found, err
	}
	start, missing := revive(seen, startedBefore())
	switch {
	case start:
		return Ensure(ctx)
	case missing != nil:
		return nil, missing
	}
	return nil, nil
}

// lookAround returns the reachable engine, or else what was seen on the host.
func lookAround(ctx context.Context) (*Engine, host, error) {
	found, err := probe(ctx)
	if err == nil {
		progress.Note(ctx, "engine %s", found.Version)
		return found, host{}, nil
	}
	if ctx.Err() != nil {
		return nil, host{}, context.Cause(ctx)
	}
	seen, hostErr := readHost(ctx, err)
	return nil, seen, hostErr
}

func install(ctx context.Context, packages []string) error {
	if err := debian.Install(ctx, packages...); err != nil {
		return err
	}
	if hasProgram("docker") {
		return nil
	}
	return debian.Install(ctx, "docker-cli") // a package of its own since Debian 13
}

// carryOut installs and starts the engine and returns when it answers.
func carryOut(ctx context.Context, p plan) error {
	if len(p.install) > 0 {
		progress.Note(ctx, "installed %s", strings.Join(p.install, ", "))
		if err := install(ctx, p.install); err != nil {
			return err
		}
	}
	flags := daemonFlags(p.shim)
	if p.shim {
		progress.Note(ctx, "runc shim: the host lacks %s", strings.Join(p.lacking, ", "))
		if err := buildShim(ctx); err != nil {
			return err
		}
	}
	if p.systemd {
		return startService(ctx, p.shim, flags)
	}
	return startDaemon(ctx, flags)
}
