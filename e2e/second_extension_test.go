//go:build e2e

package e2e

import (
	"context"
	"os"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// onSecondExtension reports whether CONFIG names the file with the extension of e2e/testdata.
func onSecondExtension() bool { return path.Base(os.Getenv("CONFIG")) == "second-extension.yaml" }

// secondExtension proves that the testbed brings up another extension from a file: it builds the
// image, installs the chart, and gardener-node-agent writes what the extension's webhook adds.
func secondExtension() rig.Scenario {
	return rig.New("second-extension",
		rig.Prove("every worker has the file that the webhook adds", func(ctx context.Context, p *rig.Run) {
			for _, worker := range p.Workers() {
				p.Await(ctx, worker.Name()+" has the file", rig.AppliedTimeout, func(ctx context.Context) (bool, string, error) {
					text, err := rig.ReadFile(ctx, worker, "/etc/second-extension")
					return strings.TrimSpace(text) == "from the second extension", text, err
				})
			}
			p.Evidence("%d workers have the file", len(p.Workers()))
		}),

		rig.Prove("nothing of the registry cache is on the testbed", func(ctx context.Context, p *rig.Run) {
			err := p.Session.Seed.Get(ctx, client.ObjectKey{Name: cachetest.ExtensionNamespace}, &corev1.Namespace{})
			if !apierrors.IsNotFound(err) {
				p.Errorf("namespace %s: %v, want that it does not exist", cachetest.ExtensionNamespace, err)
			}
			for _, worker := range p.Workers() {
				if script := p.File(ctx, worker, nodeconfig.ScriptPath); !rig.IsAbsent(script) {
					p.Errorf("%s has the script of the registry cache", worker.Name())
				}
			}
			p.Evidence("no namespace and no script of the registry cache")
		}),
	)
}
