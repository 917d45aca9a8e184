//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// gardenPublished proves that gardenlet installs a release that `make publish` pushed to a registry
// of the testbed. gardenlet's own code pulls the chart by its digest, and nodes pull the images by
// their digests. Afterwards the extension of this checkout is installed again.
func gardenPublished() rig.Scenario {
	var source, objects string
	return rig.New("garden-published",
		rig.Prove("the extension of this checkout is uninstalled", func(ctx context.Context, p *rig.Run) {
			p.Reconcile(ctx)
			p.Afterwards(ctx, func(ctx context.Context) error {
				uninstall(ctx, p)
				return cachetest.UseImage(ctx, p.Session.Testbed, cachetest.Image(p.Session.Testbed))
			})
			uninstall(ctx, p)
		}),

		rig.Prove("a release is published to a registry of the testbed", func(ctx context.Context, p *rig.Run) {
			registry := p.Session.Testbed.Upstream(rig.Beta)
			folder := fmt.Sprintf("/release-%d", time.Now().Unix()) // a published version never changes
			source = registry.Host() + folder
			objects, _ = publish(ctx, p, registry.PushAddress()+folder, source)
			if !strings.Contains(objects, source+"/charts/registry-cache-extension") {
				p.Fatalf("the ControllerDeployment does not refer to %s:\n%s", source, objects)
			}
		}),

		rig.Prove("gardenlet installs it for a Shoot with caches, from there", func(ctx context.Context, p *rig.Run) {
			if code, text := kubectl(ctx, p, objects, "apply", "--server-side", "-f", "-"); code != 0 {
				p.Fatalf("apply: exit code %d: %s", code, text)
			}
			rig.Cached(rig.Alpha)(ctx, p)
			awaitHealthy(ctx, p)
			namespace, err := p.Session.Testbed.ExtensionNamespace(ctx)
			p.Check(err)
			fromRegistry(ctx, p, p.Session.Seed, namespace, nil, source+"/registry-cache-extension")
			fromRegistry(ctx, p, p.Session.Shoot, "kube-system", client.HasLabels{v1alpha3.LabelUpstreamHost}, source+"/registry-cache")
		}),

		rig.Prove("pulls go through the published cache, and a removal runs the published cleaner", func(ctx context.Context, p *rig.Run) {
			img := p.Push(ctx, rig.Alpha)
			p.TimedPull(ctx, p.Worker(0), img)
			p.Evidence("%s", p.FetchedOnce(ctx, img, accesslog.AskerCache))
			p.Reconcile(ctx)
			p.AwaitCaches(ctx)
			p.AwaitMirrors(ctx)
		}),
	)
}

// publish runs bin/publish, which `make e2e-garden` builds with the images, and returns the files
// garden.yaml and operator-extension.yaml. alias is the name of the registry in the clusters.
func publish(ctx context.Context, p *rig.Run, registry, alias string) (garden, operator string) {
	p.Helper()
	root, out := p.Session.Testbed.Root, filepath.Join(os.TempDir(), "published-"+filepath.Base(alias))
	p.Afterwards(ctx, func(context.Context) error { return os.RemoveAll(out) })
	command := exec.CommandContext(ctx, filepath.Join(root, "bin", "publish"), "--registry", registry, "--alias", alias, "--out", out)
	var failed bytes.Buffer
	command.Dir, command.Stderr = root, &failed
	if err := command.Run(); err != nil {
		p.Fatalf("publish the release: %v: %s", err, failed.String())
	}
	forGarden, err := os.ReadFile(filepath.Join(out, "garden.yaml"))
	p.Check(err)
	forOperator, err := os.ReadFile(filepath.Join(out, "operator-extension.yaml"))
	p.Check(err)
	return string(forGarden), string(forOperator)
}

// uninstall deletes the extension's registration and deployment, and waits until they are gone. No
// Shoot may use it.
func uninstall(ctx context.Context, p *rig.Run) {
	p.Helper()
	for _, kind := range []string{"controllerregistration", "controllerdeployment"} {
		if code, text := kubectl(ctx, p, "", "delete", kind, v1alpha3.ExtensionType, "--ignore-not-found", "--timeout=2m"); code != 0 {
			p.Fatalf("delete the %s: exit code %d: %s", kind, code, text)
		}
	}
}

// fromRegistry fails unless there are pods, and all run the image of this repository, by digest.
func fromRegistry(ctx context.Context, p *rig.Run, cluster rig.Access, namespace string, labels client.ListOption, repository string) {
	p.Helper()
	options := []client.ListOption{client.InNamespace(namespace)}
	if labels != nil {
		options = append(options, labels)
	}
	pods := &corev1.PodList{}
	p.Check(cluster.List(ctx, pods, options...))
	if len(pods.Items) == 0 {
		p.Fatalf("no pods in %s", namespace)
	}
	for _, pod := range pods.Items {
		for _, container := range pod.Spec.Containers {
			if !strings.HasPrefix(container.Image, repository) || !strings.Contains(container.Image, "@sha256:") {
				p.Fatalf("pod %s runs %s, want an image of %s by its digest", pod.Name, container.Image, repository)
			}
		}
	}
	p.Evidence("%s: %s", namespace, pods.Items[0].Spec.Containers[0].Image)
}
