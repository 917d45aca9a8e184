//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/cachetest"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/fault/spec"
	"github.com/gardener-extensions/registry-cache/kind/upstream"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// credentials proves that a cache sends its upstream the credentials that the Shoot refers to,
// before and after a rotation, and that the credentials do not leak.
func credentials() rig.Scenario {
	var registry *upstream.Registry
	var img rig.Pushed
	refer, old, current := rig.References{}, newCredentials(), newCredentials()
	cache := cachetest.Cache(rig.Private)
	cache.SecretReferenceName = ptr.To("first")
	caches := []v1alpha3.RegistryCache{cachetest.Cache(rig.Alpha), cachetest.Cache(rig.Beta), cache}
	return rig.New("credentials",
		rig.Prove("an upstream requires credentials", func(ctx context.Context, p *rig.Run) {
			p.Check(rig.UndoLeftovers(ctx, p))
			registry = p.Upstream(ctx, p.Session.Testbed.UpstreamOptions(rig.Private))
			accept(ctx, p, registry, old)
			proveAsksForCredentials(ctx, p)
		}),

		rig.Prove("its cache sends the credentials", func(ctx context.Context, p *rig.Run) {
			refer["first"] = p.Secret(ctx, secretOf(old), nil)
			p.Configure(ctx, refer, caches...)
			img = pullAuthorized(ctx, p)
		}),

		rig.Prove("a public upstream receives no credentials", func(ctx context.Context, p *rig.Run) {
			public := p.Push(ctx, rig.Alpha)
			p.TimedPull(ctx, p.Worker(0), public)
			p.FetchedOnce(ctx, public, accesslog.AskerCache)
			if shown := p.Requests(ctx, public).Filter(authorized); len(shown) != 0 {
				p.Fatalf("%s got credentials: %+v", rig.Alpha, shown[0])
			}
		}),

		rig.Prove("a new reference rotates the credentials", func(ctx context.Context, p *rig.Run) {
			accept(ctx, p, registry, old, current)
			refer["second"] = p.Secret(ctx, secretOf(current), nil)
			caches[2].SecretReferenceName = ptr.To("second")
			p.Configure(ctx, refer, caches...)
			accept(ctx, p, registry, current)
			proveStillPulls(ctx, p, img)
			p.Evidence("new reference: old credentials revoked, pulls on")
		}),

		rig.Prove("a new Secret under the same reference rotates the credentials", func(ctx context.Context, p *rig.Run) {
			latest := newCredentials()
			accept(ctx, p, registry, current, latest)
			refer["second"] = p.Secret(ctx, secretOf(latest), nil)
			p.Configure(ctx, refer, caches...)
			accept(ctx, p, registry, latest)
			proveStillPulls(ctx, p, img)
			p.Evidence("same reference, new Secret: old credentials revoked, pulls on")
			proveSecret(ctx, p, registry, old, current, latest)
		}),

		rig.Prove("a bad Secret under the same reference is refused, and the cache keeps the credentials", func(ctx context.Context, p *rig.Run) {
			refer["second"] = p.Secret(ctx, map[string][]byte{"username": []byte("@robot")}, nil)
			shoot, err := p.Session.ShootWith(refer, caches...)
			p.Check(err)
			p.Refused(ctx, shoot, "caches[2].secretReferenceName", `lacks the key "password"`)
			proveStillPulls(ctx, p, img)
			p.Evidence("bad Secret refused: pulls on")
		}).InFullLane(),
	)
}

// newCredentials returns the name of a robot account, and a password that bad quoting or splitting
// would corrupt. The password begins and ends with random letters, so that a leaked part is found.
func newCredentials() basicAuth {
	password := rand.Text()[:12] + `'$#&:"` + " \\%s`\n\xff\xfe" + rand.Text()[:12]
	return basicAuth{"@robot-" + rand.Text()[:12], password}
}

// basicAuth are credentials for HTTP basic authentication.
type basicAuth struct{ username, password string }

// accept makes the upstream require credentials, and accept only these.
func accept(ctx context.Context, p *rig.Run, registry *upstream.Registry, all ...basicAuth) {
	p.Helper()
	var sums []string
	for _, c := range all {
		sum := sha256.Sum256([]byte(c.username + ":" + c.password))
		sums = append(sums, hex.EncodeToString(sum[:]))
	}
	required, err := spec.New("upstream/"+rig.Private, string(spec.Credentials), map[string][]string{"accept": sums})
	p.Check(err)
	p.Check(registry.SetFaults(ctx, required.Begin("f1", time.Now())))
}

func secretOf(c basicAuth) map[string][]byte {
	return map[string][]byte{"username": []byte(c.username), "password": []byte(c.password)}
}

func authorized(r accesslog.Record) bool { return r.Authorization }

// proveAsksForCredentials proves that the upstream refuses a node without credentials.
func proveAsksForCredentials(ctx context.Context, p *rig.Run) {
	p.Helper()
	out, err := p.Worker(0).Exec(ctx, "curl", "--silent", "--show-error", "--max-time", "10", "--output", "/dev/null",
		"--write-out", "%{http_code}", "http://"+rig.Private+"/v2/")
	p.Check(err)
	if out != "401" {
		p.Fatalf("%s answers %s without credentials, want 401: this proves nothing", rig.Private, out)
	}
}

// pullAuthorized pushes a new image, and returns it. It proves that a node pulls this image in
// time, and that the cache fetched each blob once, with credentials.
func pullAuthorized(ctx context.Context, p *rig.Run) rig.Pushed {
	p.Helper()
	img := p.Push(ctx, rig.Private)
	took := p.TimedPull(ctx, p.Worker(0), img)
	if took > runningWithin {
		p.Fatalf("a pull of the protected upstream took %s, want at most %s", rig.Seconds(took), runningWithin)
	}
	evidence := p.FetchedOnce(ctx, img, accesslog.AskerCache)
	served := p.Requests(ctx, img).Blobs().Gets().Filter(authorized).
		Filter(func(r accesslog.Record) bool { return r.Status == http.StatusOK })
	if len(served) != len(img.Blobs) {
		p.Fatalf("%d of %d blobs were served to a client with credentials", len(served), len(img.Blobs))
	}
	p.Evidence("protected upstream: %s, pulled in %s", evidence, rig.Seconds(took))
	return img
}

// proveStillPulls proves that the cache fetches new images after a rotation, and has kept the blobs
// that it stored earlier.
func proveStillPulls(ctx context.Context, p *rig.Run, before rig.Pushed) {
	p.Helper()
	pullAuthorized(ctx, p)
	p.TimedPull(ctx, p.Worker(1), before)
	p.FetchedOnce(ctx, before, accesslog.AskerCache)
}

// proveSecret proves that only Secrets contain the credentials. The search covers logs, the objects
// of the caches, the Extension, the nodes and the upstream's log.
func proveSecret(ctx context.Context, p *rig.Run, registry *upstream.Registry, all ...basicAuth) {
	p.Helper()
	places := map[string]string{
		"log of the extension": logs(ctx, p, p.Session.Seed, p.ExtensionNamespace(ctx), nil),
		"log of the caches":    logs(ctx, p, p.Session.Shoot, metav1.NamespaceSystem, client.HasLabels{v1alpha3.LabelUpstreamHost}),
		"pods and sets":        describeCaches(ctx, p),
		"Extension":            asJSON(p, p.Extension(ctx)),
		"access log":           output(ctx, p, registry),
	}
	for _, worker := range p.Workers() {
		// A process might exit while its command line is being read.
		files, err := worker.Script(ctx, "cat "+nodeconfig.ScriptPath+" "+nodeconfig.UnitPath+" "+nodeconfig.CertsDir+"/*/hosts.toml; { cat /proc/[0-9]*/cmdline 2>/dev/null || true; } | tr '\\0' ' '")
		p.Check(err)
		places["files and processes of "+worker.Name()] = files
	}
	for place, text := range places {
		if len(text) == 0 {
			p.Errorf("%s is empty, so this proves nothing", place)
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

// traces returns parts and encodings of the credentials. Only Secrets may contain such a text.
func traces(c basicAuth) []string {
	const random = 12
	return []string{
		c.username[len(c.username)-random:], c.password[:random], c.password[len(c.password)-random:],
		base64.StdEncoding.EncodeToString([]byte(c.password)),
		base64.StdEncoding.EncodeToString([]byte(c.username + ":" + c.password)),
	}
}

// logs returns the logs of all containers of the pods.
func logs(ctx context.Context, p *rig.Run, cluster rig.Access, namespace string, selector client.ListOption) string {
	p.Helper()
	clientset, err := kubernetes.NewForConfig(cluster.Config)
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

// describeCaches returns pods and StatefulSets of caches, and kube-system's ConfigMaps, as JSON.
func describeCaches(ctx context.Context, p *rig.Run) string {
	p.Helper()
	inKubeSystem, ofCaches := client.InNamespace(metav1.NamespaceSystem), client.HasLabels{v1alpha3.LabelUpstreamHost}
	pods, sets, maps := &corev1.PodList{}, &appsv1.StatefulSetList{}, &corev1.ConfigMapList{}
	p.Check(p.Session.Shoot.List(ctx, pods, inKubeSystem, ofCaches))
	p.Check(p.Session.Shoot.List(ctx, sets, inKubeSystem, ofCaches))
	p.Check(p.Session.Shoot.List(ctx, maps, inKubeSystem))
	return asJSON(p, pods) + asJSON(p, sets) + asJSON(p, maps)
}

func asJSON(p *rig.Run, object any) string {
	p.Helper()
	text, err := json.Marshal(object)
	p.Check(err)
	return string(text)
}

func output(ctx context.Context, p *rig.Run, registry *upstream.Registry) string {
	p.Helper()
	var stdout, stderr bytes.Buffer
	p.Check(registry.Output(ctx, &stdout, &stderr))
	return stdout.String() + stderr.String()
}
