package extension

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/gardener-extensions/registry-cache/bench"
)

// ProcessOptions describe the process.
type ProcessOptions struct {
	Program    string   // path of the binary
	Arguments  []string // of the chart; Start overrides those that only work in a pod
	Kubeconfig []byte   // for the seed
	Namespace  string   // of the Leases and the webhook's certificates
	Folder     string   // for extension.log and the files that the process needs
}

// starts is how often Start starts a process that exits.
const starts = 3

// Start starts the extension and returns when it is ready. The caller must call Stop. Like a
// kubelet, it starts a process again that exits: Gardener's library (v1.147.1) writes the
// certificate of the webhook once more while the webhook server reads it, and then the extension
// can exit (extensions/pkg/webhook/certificates/reloader.go).
func Start(ctx context.Context, o ProcessOptions) (process *bench.Process, err error) {
	for range starts {
		exit := &exec.ExitError{}
		if process, err = startOnce(ctx, o); !errors.As(err, &exit) {
			break
		}
	}
	return process, err
}

func startOnce(ctx context.Context, o ProcessOptions) (*bench.Process, error) {
	ports, err := bench.FreePorts(3)
	if err != nil {
		return nil, err
	}
	kubeconfig := filepath.Join(o.Folder, "kubeconfig")
	if err := os.WriteFile(kubeconfig, o.Kubeconfig, 0o600); err != nil {
		return nil, fmt.Errorf("write the kubeconfig of the extension: %w", err)
	}
	return bench.Program{
		Name:        "extension",
		Path:        o.Program,
		Arguments:   arguments(o, kubeconfig, ports),
		Environment: []string{"LEADER_ELECTION_NAMESPACE=" + o.Namespace, "WEBHOOK_CONFIG_NAMESPACE=" + o.Namespace},
		Folder:      o.Folder,
		Ready:       "http://127.0.0.1:" + ports[0] + "/readyz",
	}.Start(ctx)
}

// arguments returns the arguments of the chart, followed by arguments that override some of them.
// If a flag occurs twice, its last value is used.
func arguments(o ProcessOptions, kubeconfig string, ports []string) []string {
	return append(append([]string(nil), o.Arguments...),
		"--kubeconfig="+kubeconfig,
		"--health-bind-address=127.0.0.1:"+ports[0],
		"--metrics-bind-address=127.0.0.1:"+ports[1],
		"--webhook-config-mode=url",
		"--webhook-config-url=127.0.0.1:"+ports[2],
		"--webhook-config-server-host=127.0.0.1",
		"--webhook-config-server-port="+ports[2],
		"--webhook-config-cert-dir="+filepath.Join(o.Folder, "certificates"),
	)
}
