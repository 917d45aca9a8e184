package finding

import (
	"fmt"
	"strings"
	"testing"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/diagnostics/bundle"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// text returns the problems and details of findings, one per line.
func text(all []Finding) string {
	var lines []string
	for _, f := range all {
		mark := "? "
		if f.Certain {
			mark = "! "
		}
		lines = append(lines, mark+f.Problem)
		lines = append(lines, f.Details...)
	}
	return strings.Join(lines, "\n")
}

// TestHealthy checks that a healthy testbed has no findings.
func TestHealthy(t *testing.T) {
	b := healthy().write(t)
	if got := text(Find(b)); got != "" {
		t.Errorf("findings:\n%s", got)
	}
	if len(b.Cached()) != 1 || len(b.Workers()) != 1 || len(b.Workers()[0].Mirrors) != 1 || len(b.Workers()[0].Probes) != 2 {
		t.Errorf("the bundle was not read: %+v", b)
	}
}

// configOfContainerd returns the registry part of `containerd config dump` for a containerd that
// pulls through the transfer service. The argument change has pairs: an old and a new text.
func configOfContainerd(path string, change ...string) string {
	const dump = "version = 4\n[plugins]\n  [plugins.'io.containerd.cri.v1.images']\n    disable_snapshot_annotations = true\n" +
		"    discard_unpacked_layers = false\n    max_concurrent_downloads = 3\n    image_pull_with_sync_fs = false\n    use_local_image_pull = false\n" +
		"    [plugins.'io.containerd.cri.v1.images'.registry]\n      config_path = 'PATH'\n"
	return strings.NewReplacer(append(change, "PATH", path)...).Replace(dump)
}

// TestHealthyFolders checks that there is no finding if containerd reads the hosts.toml files, or
// if its configuration does not show whether it reads them.
func TestHealthyFolders(t *testing.T) {
	const both = "/etc/containerd/certs.d:/etc/docker/certs.d"
	const old = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry]\nconfig_path = \"" + both + "\"\n"
	for name, config := range map[string]string{
		"alone":                        configOfContainerd("/etc/containerd/certs.d"),
		"with a slash":                 configOfContainerd("/etc/containerd/certs.d/"),
		"two, pulled by the CRI":       configOfContainerd(both, "pull = false", "pull = true"),
		"two, on a node of kind":       configOfContainerd(both, "layers = false", "layers = true"),
		"two, annotations":             configOfContainerd(both, "annotations = true", "annotations = false"),
		"two, five downloads":          configOfContainerd(both, "downloads = 3", "downloads = 5"),
		"two, sync":                    configOfContainerd(both, "fs = false", "fs = true"),
		"two, with auths":              configOfContainerd(both) + "    [plugins.'io.containerd.cri.v1.images'.registry.auths.x]\n",
		"two, of containerd 2.0":       configOfContainerd(both, "    use_local_image_pull = false\n", ""),
		"two, of containerd 1.7":       old,
		"none, which stands for these": configOfContainerd("", "pull = false", "pull = true"),
		"no plugin":                    "version = 3\n",
		"not TOML":                     "containerd: command not found",
	} {
		t.Run(name, func(t *testing.T) {
			o := healthy()
			o.files["node/"+worker+"/"+bundle.ConfigFile] = config
			if got := text(Find(o.write(t))); got != "" {
				t.Errorf("findings:\n%s", got)
			}
		})
	}
}

// TestVolumeNotWritable checks that only a recent failed write proves that a volume is not
// writable.
func TestVolumeNotWritable(t *testing.T) {
	const folder = "/var/lib/registry/docker/registry/v2/blobs/sha256/7d"
	for says, want := range map[string]string{
		"03:04:00 filesystem: mkdir " + folder + ": permission denied":                 "is not writable, last at 03:04:00: permission denied.",
		"03:02:10 filesystem: mkdir " + folder + ": permission denied":                 "is not writable",
		"03:04:00 filesystem: rename " + folder + " " + folder + ": permission denied": "is not writable",
		"03:04:00 filesystem: mkdir " + folder + ": read-only file system":             "is not writable, last at 03:04:00: it is read-only.",
		"03:04:00 write data.1: no space left on device":                               "is not writable, last at 03:04:00: it is full.",
		"03:02:04 filesystem: mkdir " + folder + ": permission denied":                 "",
		"03:04:00 filesystem: open " + folder + "/data: permission denied":             "",
		"03:04:00 openat registry-cache/tmp-A: read-only file system":                  "is not writable, last at 03:04:00: it is read-only.",
		"03:04:00 mkdirat docker/registry: permission denied":                          "is not writable",
		"03:04:00 openat docker/registry/v2/x: permission denied":                      "",
		"03:04:00 mkdir /var/lib/registrar: permission denied":                         "",
		"03:04:00 mkdir /tmp/x: read-only file system":                                 "",
	} {
		t.Run(says, func(t *testing.T) {
			at, message, _ := strings.Cut(says, " ")
			o := healthy()
			o.files["shoot/logs/kube-system/registry-alpha-0/registry.log"] = "2026-01-02T" + at + ".0Z level=error msg=x error=\"" + message + "\"\n"
			got := text(Find(o.write(t)))
			if certain := strings.Contains(got, "! The volume of registry-alpha-0 "); certain != (want != "") || !strings.Contains(got, want) {
				t.Errorf("want %q in:\n%s", want, got)
			}
		})
	}
}

// TestFind breaks one part of a healthy testbed at a time.
func TestFind(t *testing.T) {
	const in = "node/" + worker + "/"
	for _, tc := range []struct {
		name  string
		broke func(*objects)
		want  []string // parts of the findings
	}{
		{"a Service that was recreated", func(o *objects) {
			o.service.Spec.ClusterIP, o.service.Spec.ClusterIPs = "10.96.9.9", []string{"10.96.9.9"}
		}, []string{
			"! The Service of the cache of alpha.upstream.test has the address 10.96.9.9, but the Extension's status has 10.96.0.7",
			"! The hosts.toml on " + worker + " for alpha.upstream.test points to 10.96.0.7, which no Service has",
			"the Service registry-alpha has 10.96.9.9 and was created at 2026-01-02T03:03:05Z",
		}},
		{"no DNS", func(o *objects) { o.dns.Endpoints = nil }, []string{"! DNS does not work in the shoot, because the Service kube-dns has no ready endpoint: caches cannot resolve their upstreams."}},
		{"a webhook that is not registered", func(o *objects) { o.config.Spec.Units = o.config.Spec.Units[:1] }, []string{
			"! OperatingSystemConfig " + bundle.ShootNamespace + "/original has no unit configure-containerd-registries.service, although there are caches",
			"the seed has no MutatingWebhookConfiguration gardener-extension-registry-cache",
		}},
		{"a Service that is gone", func(o *objects) { o.service = nil }, []string{"! The cache of alpha.upstream.test has no Service"}},
		{"no hosts.toml", func(o *objects) {
			o.files[in+"certs.d.txt"] = "/etc/containerd/certs.d:\ntotal 0\n"
			o.files[in+"journal/configure-containerd-registries.log"] = "2026-01-02T03:04:04.0+0000 w configure.sh[1]: " + host + ": direct: " + endpoint + " answers 404\n"
		}, []string{
			"! " + worker + " has no hosts.toml for alpha.upstream.test", "the unit has the endpoint " + endpoint,
			"last message of the script: 03:04:04 alpha.upstream.test: direct: " + endpoint + " answers 404",
		}},
		{"an upstream that is direct", func(o *objects) {
			o.files[in+"certs.d.txt"] = "/etc/containerd/certs.d:\ntotal 0\n"
			o.files[in+"caches.txt"] = "30\n" + host + " direct " + endpoint + " answers 503\n"
		}, []string{"! " + worker + " has no hosts.toml for alpha.upstream.test", "state of the script: direct: " + endpoint + " answers 503"}},
		{"a loop that is dead", func(o *objects) { o.files[in+"caches.txt"] = "31\n" + host + " mirror " + endpoint + " answers\n" }, []string{
			"! The unit configure-containerd-registries.service on " + worker + " is active, but its loop is dead: the last round was 31s ago",
		}},
		{"a hosts.toml and no unit", func(o *objects) {
			o.files[in+"units.txt"] = strings.Replace(o.files[in+"units.txt"], "loaded", "not-found", 1)
		}, nil},
		{"a damaged hosts.toml", func(o *objects) { o.files[in+"certs.d.txt"] += "server = \n" }, []string{"! The hosts.toml on " + worker + " for alpha.upstream.test is damaged"}},
		{"a hosts.toml that was edited", func(o *objects) {
			o.files[in+"certs.d.txt"] = strings.Replace(o.files[in+"certs.d.txt"], `"pull", "resolve"`, `"resolve"`, 1)
			o.files[in+"journal/configure-containerd-registries.log"] = "2026-01-02T03:04:04.0+0000 w configure.sh[1]: " + host + ": done\n"
		}, []string{
			"! The hosts.toml on " + worker + " for alpha.upstream.test is not what the script writes",
			`line 6 is "  capabilities = [\"resolve\"]", want "  capabilities = [\"pull\", \"resolve\"]"`,
			"last message of the script: 03:04:04 alpha.upstream.test: done",
		}},
		{"a hosts.toml that was cut off", func(o *objects) {
			o.files[in+"certs.d.txt"] = strings.Replace(o.files[in+"certs.d.txt"], "  dial_timeout = \"500ms\"\n", "", 1)
		}, []string{`line 7 is missing, want "  dial_timeout = \"500ms\""`}},
		{"a hosts.toml for direct pulls", func(o *objects) {
			text, _, _ := strings.Cut(o.files[in+"certs.d.txt"], "\n[host.")
			o.files[in+"certs.d.txt"] = text
		}, []string{"! The hosts.toml on " + worker + " for alpha.upstream.test has no cache: the script got no answer from " + endpoint + "."}},
		{"an outdated unit", func(o *objects) {
			raw := &o.extension.Status.ProviderStatus.Raw
			*raw = []byte(strings.Replace(string(*raw), endpoint, "https://"+cacheIP+":5000", 1))
		}, []string{
			"! The unit configure-containerd-registries.service on " + worker + " has " + endpoint + " for alpha.upstream.test, but the Extension's status has https://" +
				cacheIP + ":5000: the node has not applied the newest OperatingSystemConfig.",
		}},
		{"files with blank lines between them", func(o *objects) { o.files[in+"certs.d.txt"] += "\n\n" }, []string{""}},
		{"an unmanaged hosts.toml", func(o *objects) {
			o.files[in+"certs.d.txt"] = "==> /etc/containerd/certs.d/" + host + "/hosts.toml <==\nserver = \"http://x\"\n"
		}, []string{"? The hosts.toml on " + worker + " for alpha.upstream.test is unmanaged"}},
		{"a hosts.toml that is left over", func(o *objects) { o.extension.Status.ProviderStatus = nil }, []string{"! The hosts.toml on " + worker + " for alpha.upstream.test is stale"}},
		{"a unit that failed", func(o *objects) {
			o.files[in+"units.txt"] = strings.Replace(o.files[in+"units.txt"], "active\nSubState=running\nResult=success\nNRestarts=0", "failed\nSubState=failed\nResult=exit-code\nNRestarts=7", 1)
		}, []string{"! The unit configure-containerd-registries.service on " + worker + " is failed (failed), result exit-code.", "restarted it 7 times"}},
		{"a node that does not answer", func(o *objects) { o.files[in+"units.txt"] = "" }, []string{"! The unit states of the node " + worker + " are unknown"}},
		{"a node that is not ready", func(o *objects) {
			o.nodes[0].Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Reason: "NodeStatusUnknown", Message: "gone"}
		}, []string{"! The node " + worker + " is not ready.", "NodeStatusUnknown: gone"}},
		{"a cache that does not answer a node", func(o *objects) {
			o.files[in+"probe.txt"] = host + " " + endpoint + " 000 2.001 Connection timed out after 2001 milliseconds\n"
		}, []string{"! " + endpoint + " does not answer " + worker + ", which asks it for alpha.upstream.test.", "curl: Connection timed out after 2001 milliseconds (after 2.00s)"}},
		{"a cache that answers with an error", func(o *objects) { o.files[in+"probe.txt"] = host + " " + endpoint + " 404 0.001 \n" }, []string{"answers " + worker + ", which asks it for alpha.upstream.test, with status 404."}},
		{"a slow cache", func(o *objects) { o.files[in+"probe.txt"] = host + " " + endpoint + " 200 1.5 \n" }, []string{"takes 1.50s to answer " + worker}},
		{"a wrong route", func(o *objects) { o.files[in+"network.txt"] = "10.244.2.0/24 dev cni0 proto kernel\n" }, []string{
			"! The route on " + worker + " to the pods of worker2 (10.244.2.0/24) does not go to that node.", "the route is 10.244.2.0/24 dev cni0 proto kernel",
		}},
		{"no route", func(o *objects) { o.files[in+"network.txt"] = "default via 172.18.0.1\n10.0.0.0/8 dev x\n" }, []string{"! " + worker + " has no route to the pods of worker2 (10.244.2.0/24)."}},
		{"a firewall", func(o *objects) {
			o.files["node/"+worker+"2/firewall.txt"] = "table ip nat {\n}\n"
			o.files[in+"firewall.txt"] = "table ip nat {\n\tchain x {\n\t}\n}\ntable ip mystery {\n}\n"
		}, []string{"? " + worker + " has firewall rules that no other worker has.\ntable ip mystery"}},
		{"a process that is stopped", func(o *objects) {
			o.files[in+"processes.txt"] = "PID STAT ELAPSED COMMAND\n1 Ss 10:00 /sbin/init\n7 Tsl 09:00 registry-cache serve /etc/config.yml\n"
		}, []string{"! Stopped processes on " + worker + " accept connections but never answer.", "\nregistry-cache serve /etc/config.yml"}},
		{"an endpoint that is another cache's", func(o *objects) {
			o.service.Annotations[v1alpha3.AnnotationUpstream] = "beta.upstream.test"
			status := strings.ReplaceAll(string(o.extension.Status.ProviderStatus.Raw), `"caches":[`, `"caches":[{"upstream":"beta.upstream.test","endpoint":"`+endpoint+`"},`)
			o.extension.Status.ProviderStatus.Raw = []byte(status)
		}, []string{"! The hosts.toml on " + worker + " for alpha.upstream.test points to 10.96.0.7, which is the cache of beta.upstream.test."}},
		{"a status that mixes caches up", func(o *objects) {
			service := "---\nmetadata: {name: %s, labels: {upstream-host: x}, annotations: {upstream: %s}}\nspec: {clusterIP: %s, clusterIPs: [%s]}\n"
			o.files["shoot/objects/services.yaml"] = fmt.Sprintf(service, "a", host, "10.96.9.9", "10.96.9.9") +
				fmt.Sprintf(service, "b", "beta.upstream.test", cacheIP, cacheIP)
		}, []string{"! The Extension's status has 10.96.0.7 for the cache of alpha.upstream.test, which is the address of the cache of beta.upstream.test."}},
		{"an unmanaged host that does not answer", func(o *objects) { o.files[in+"probe.txt"] = "x.test http://x.test 000 0.1 no such host\n" }, []string{
			"? http://x.test does not answer " + worker + ", which asks it for x.test.",
		}},
		{"an upstream that was replaced", func(o *objects) { o.files["upstream/"+host+"/state.txt"] = bundle.Unreadable + "No such container" }, []string{
			"! The upstream alpha.upstream.test is not running: output not readable: No such container.",
		}},
		{"containerd looks elsewhere", func(o *objects) { o.files[in+bundle.ConfigFile] = configOfContainerd("/etc/containerd/cert.d") }, []string{
			"! containerd on " + worker + " uses no cache: its config_path does not have /etc/containerd/certs.d, where the hosts.toml files are.",
			`config_path is "/etc/containerd/cert.d" in the file; containerd read the file when it started`,
		}},
		{"containerd looks nowhere", func(o *objects) {
			o.files[in+bundle.ConfigFile] = configOfContainerd("") + "    [plugins.'io.containerd.cri.v1.images'.registry.mirrors.x]\n"
		}, []string{"! containerd on " + worker + " uses no cache: it has no config_path."}},
		{"a transfer service with the default", func(o *objects) { o.files[in+bundle.ConfigFile] = configOfContainerd("") }, []string{
			"! containerd on " + worker + " uses no cache: its transfer service reads config_path as a single folder (containerd#12415).",
		}},
		{"a folder before ours", func(o *objects) {
			o.files[in+bundle.ConfigFile] = configOfContainerd("/etc/docker/certs.d:/etc/containerd/certs.d", "pull = false", "pull = true")
		}, []string{"? containerd on " + worker + " can miss caches: its config_path has another folder before /etc/containerd/certs.d, whose files win."}},
		{"a full disk", func(o *objects) { o.files[in+"disk.txt"] = "overlay 10G 10G 1M 99% /\n" }, []string{"! File systems on " + worker + " are full.", "/ (99%)"}},
		{"a cache without a ready pod", func(o *objects) {
			o.slice.Endpoints[0].Conditions.Ready = new(false)
			o.pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
				Name: "registry", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 10s"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error"}}, RestartCount: 3,
			}}
		}, []string{
			"! The cache registry-alpha has 0 ready pods of 1.", "container registry is waiting, CrashLoopBackOff: back-off 10s", "ended with exit code 2 (Error)",
			"! The Service registry-alpha has no ready endpoint: connections to 10.96.0.7 are refused.",
		}},
		{"a pod that is nowhere", func(o *objects) {
			o.pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available"}}
			o.claim.Status.Phase = corev1.ClaimPending
		}, []string{"pod registry-alpha-0 is not scheduled: 0/3 nodes are available", "! The PersistentVolumeClaim kube-system/registry-alpha is Pending, not bound."}},
		{"an Extension with an error", func(o *objects) {
			o.extension.Status.LastError = &gardencorev1beta1.LastError{Description: "spec.providerConfig.caches: Required value"}
		}, []string{"! Extension shoot--local--local/registry-cache has an error.", "spec.providerConfig.caches: Required value"}},
		{"an operation that hangs", func(o *objects) {
			o.extension.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: "Reconcile", State: "Processing", Description: "waiting"}
		}, []string{"? The last operation of Extension shoot--local--local/registry-cache has not succeeded: Reconcile Processing.", "waiting"}},
		{"no extension", func(o *objects) { o.deployment.Status.ReadyReplicas = 0 }, []string{
			"! Deployment extension-registry-cache/gardener-extension-registry-cache of the seed has 0 ready pods of 1.",
		}},
		{"an upstream that is down", func(o *objects) { o.files["upstream/"+host+"/state.txt"] = "Exited (137) 5 seconds ago" }, []string{
			"! The upstream alpha.upstream.test is not running: Exited (137) 5 seconds ago.",
		}},
		{"a fault", func(o *objects) {
			o.files["faults.json"] = `[{"id":"f1","target":"cache/alpha.upstream.test","kind":"blackhole"},` +
				`{"id":"f2","target":"cache/alpha.upstream.test","kind":"refuse","ends":"2026-01-02T03:04:00Z"}]`
		}, []string{"! Fault f1 is injected: cache/alpha.upstream.test"}},
		{"a hibernated Shoot", func(o *objects) {
			o.nodes[0].Status.Conditions[0].Status = corev1.ConditionUnknown
			o.files[in+"units.txt"], o.service = "", nil
			o.cluster = &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "shoot--local--local"}}
			o.cluster.Spec.Shoot = runtime.RawExtension{Raw: []byte(`{"spec":{"hibernation":{"enabled":true}}}`)}
		}, []string{""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := healthy()
			tc.broke(o)
			got := text(Find(o.write(t)))
			if got == "" && len(tc.want) > 0 && tc.want[0] != "" {
				t.Error("nothing was found")
			}
			for _, want := range tc.want {
				if !strings.Contains(got, want) || want == "" && got != "" {
					t.Errorf("%q is not in:\n%s", want, got)
				}
			}
		})
	}
}

// TestRequests reads access logs and journals.
func TestRequests(t *testing.T) {
	soon := collected.Add(-time.Minute)
	asked := accesslog.Record{
		Time: soon, Method: "GET", Kind: accesslog.KindBlob, Repository: "shop/web", Status: 503, Asker: accesslog.AskerCache, RemoteAddr: "172.18.0.4:1",
	}
	old, node, slow, probe := asked, asked, asked, asked
	old.Time = collected.Add(-time.Hour)
	node.Status, node.Asker, node.RemoteAddr = 200, accesslog.AskerNode, "172.18.0.3:9"
	slow.Status, slow.Seconds = 200, 6
	probe.Status, probe.Method = 404, "HEAD"
	o := healthy()
	var log strings.Builder
	for _, r := range []accesslog.Record{asked, asked, old, node, slow, probe} {
		log.WriteString(record(t, r))
	}
	o.files["upstream/"+host+"/access.jsonl"] = log.String() + "half a li"
	stamp := "2026-01-02T03:03:%s.0+0000 w containerd[1]: time=\"x\" level=%s msg=\"%s\"%s\n"
	journal := []string{"00", "info", `PullImage \"a/b:c\"`, "", "12", "error", `PullImage \"a/b:c\" failed`, ` error="rpc: \"x\": EOF"`,
		"13", "info", `PullImage \"a/slow:c\"`, "", "29", "info", `PullImage \"a/slow:c\" returns image reference \"y\"`, "",
		"30", "info", `PullImage \"a/open:c\"`, "", "31", "info", "trying next host", ` error="dial: \"x\": i/o timeout" host=10.96.0.7:5000`}
	var lines strings.Builder
	for i := 0; i < len(journal); i += 4 {
		fmt.Fprintf(&lines, stamp, journal[i], journal[i+1], journal[i+2], journal[i+3])
	}
	o.files["node/"+worker+"/journal/containerd.log"] = lines.String()
	o.files["shoot/logs/kube-system/registry-alpha-0/registry.log"] = "2026-01-02T03:03:50.0Z level=error msg=\"write data.1: no space left on device\"\n"
	got := text(Find(o.write(t)))
	for _, want := range []string{
		"? The upstream alpha.upstream.test answered requests with errors since 02:49:05.\n2 times, last at 03:03:05: status 503 for a blob to the cache on worker2\n",
		"? The upstream alpha.upstream.test took more than 5 s to answer requests since 02:49:05.\nat 03:03:05: GET of a blob to the cache on worker2\n",
		"? Nodes asked alpha.upstream.test directly since 02:49:05, although they have a mirror for it: they did not ask the cache, or it did not serve them.\nat 03:03:05: worker",
		"? On " + worker + " pulls failed since 02:49:05.\nat 03:03:12: a/b:c: EOF\n",
		"at 03:03:30: a/open:c had not ended after 35.0s\nat 03:03:29: a/slow:c took 16.0s\n",
		"10.96.0.7:5000: i/o timeout",
		"! The volume of registry-alpha-0 is not writable, last at 03:03:50: it is full.",
		"? registry-alpha-0 logged errors since 02:49:05.\nat 03:03:50: write data.1: no space left on device",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in:\n%s", want, got)
		}
	}
}
