package gardenlet

import (
	"context"

	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// Machine is a machine of the shoot's worker pool: a node of the kind cluster that serves as shoot.
type Machine interface {
	gardener.Node
	// StopMachine ends the machine: nothing runs on it any more, as if it were gone. Its disk stays as it is. A machine
	// that is stopped already is no error.
	StopMachine(ctx context.Context) error
	// StartMachine starts a stopped machine as a fresh one: nothing is left of what an operating system config laid down,
	// and the kubelet registers the node.
	StartMachine(ctx context.Context) error
}
