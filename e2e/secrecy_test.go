//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
)

// proveSecret proves that credentials show nowhere but in Secrets: not in logs, not in the description of the caches and
// the Extension, not in what is on a node, not in what the upstream recorded.
func proveSecret(ctx context.Context, p *scenarioRun, registry *upstream.Registry, all ...upstream.Credentials) {
	p.Helper()
	places := map[string]string{
		"log of the extension": logs(ctx, p, p.suite.seed, kind.ExtensionNamespace, nil),
		"log of the caches":    logs(ctx, p, p.suite.shoot, metav1.NamespaceSystem, client.HasLabels{upstreamHostLabel}),
		"pods and sets":        describeCaches(ctx, p),
		"Extension":            asJSON(p, p.Extension(ctx)),
		"access log":           output(ctx, p, registry),
	}
	for _, worker := range p.Workers() {
		// A process may end while its command line is read.
		files, err := worker.Script(ctx, "cat "+scriptPath+" "+unitPath+" "+certsDir+"/*/hosts.toml; { cat /proc/[0-9]*/cmdline 2>/dev/null || true; } | tr '\\0' ' '")
		p.Check(err)
		places["files and processes of "+worker.Name()] = files
	}
	for place, text := range places {
		if len(text) == 0 {
			p.Errorf("%s is empty: that nothing is found there proves nothing", place)
		}
		for _, c := range all {
			for _, trace := range traces(c) {
				if i := strings.Index(text, trace); i >= 0 {
					p.Errorf("%s shows credentials: ...%s", place, text[max(0, i-100):i])
				}
			}
		}
	}
	p.Evidence("credentials in none of %d places", len(places))
}

// traces are the forms in which credentials of newCredentials would be found.
func traces(c upstream.Credentials) []string {
	const random = 12
	return []string{
		string(c.Username[len(c.Username)-random:]), string(c.Password[:random]), string(c.Password[len(c.Password)-random:]),
		base64.StdEncoding.EncodeToString(c.Password),
		base64.StdEncoding.EncodeToString(append(append(bytes.Clone(c.Username), ':'), c.Password...)),
	}
}

// logs returns what the containers of the pods have printed.
func logs(ctx context.Context, p *scenarioRun, cluster access, namespace string, selector client.ListOption) string {
	p.Helper()
	clientset, err := kubernetes.NewForConfig(cluster.config)
	p.Check(err)
	options := []client.ListOption{client.InNamespace(namespace)}
	if selector != nil {
		options = append(options, selector)
	}
	pods := &corev1.PodList{}
	p.Check(cluster.List(ctx, pods, options...))
	var all strings.Builder
	for _, pod := range pods.Items {
		for _, container := range pod.Spec.Containers {
			printed, err := clientset.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container.Name}).DoRaw(ctx)
			p.Check(err)
			all.Write(printed)
		}
	}
	return all.String()
}

// describeCaches returns everything about the caches' pods and what makes them, without the Secrets.
func describeCaches(ctx context.Context, p *scenarioRun) string {
	p.Helper()
	inKubeSystem, ours := client.InNamespace(metav1.NamespaceSystem), client.HasLabels{upstreamHostLabel}
	pods, sets, maps := &corev1.PodList{}, &appsv1.StatefulSetList{}, &corev1.ConfigMapList{}
	p.Check(p.suite.shoot.List(ctx, pods, inKubeSystem, ours))
	p.Check(p.suite.shoot.List(ctx, sets, inKubeSystem, ours))
	p.Check(p.suite.shoot.List(ctx, maps, inKubeSystem))
	return asJSON(p, pods) + asJSON(p, sets) + asJSON(p, maps)
}

func asJSON(p *scenarioRun, object any) string {
	p.Helper()
	text, err := json.Marshal(object)
	p.Check(err)
	return string(text)
}

func output(ctx context.Context, p *scenarioRun, registry *upstream.Registry) string {
	p.Helper()
	var stdout, stderr bytes.Buffer
	p.Check(registry.Output(ctx, &stdout, &stderr))
	return stdout.String() + stderr.String()
}
