//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/e2e/rig"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

const frozenUnit = "frozen-clients"

// openAndFreeze is a bash script: it opens $4 connections to the host $1 and port $2, requests the
// path $3 on each of them, and reads nothing.
const openAndFreeze = `for ((i = 0; i < $4; i++)); do
  exec {connection}<>"/dev/tcp/$1/$2"
  printf 'GET %s HTTP/1.1\r\nHost: cache\r\n\r\n' "$3" >&"$connection"
done
sleep infinity`

// frozenClients proves that clients that do not read the answers to their requests cost a cache
// little memory, do not delay other pulls, and are disconnected.
func frozenClients() rig.Scenario {
	const (
		clients, memory = 200, 128 << 20
		pulledWithin    = 10 * time.Second
		closedWithin    = 90 * time.Second // the cache closes a connection after a minute without progress
	)
	var img rig.Pushed
	var pod *corev1.Pod
	var before int
	return rig.New("frozen-clients",
		rig.Prove("many clients request a stored layer and read nothing", func(ctx context.Context, p *rig.Run) {
			rig.Cached(rig.Alpha, rig.Beta)(ctx, p)
			img = p.PushLayers(ctx, rig.Alpha, 2, 32<<20)
			p.TimedPull(ctx, p.Worker(0), img)
			p.FetchedOnce(ctx, img, accesslog.AskerCache)
			pod = podOf(ctx, p, rig.Alpha)
			before = gauge(ctx, p, pod, "process_open_fds")
			stop := func(ctx context.Context) error {
				_, err := p.Worker(1).Script(ctx, `systemctl stop "$1" 2>/dev/null || true`, frozenUnit)
				return err
			}
			p.Check(stop(ctx)) // of an earlier run
			p.Afterwards(ctx, stop)
			_, err := p.Worker(1).Exec(ctx, "systemd-run", "--collect", "--unit", frozenUnit, "bash", "-c", openAndFreeze, "bash", pod.Status.PodIP,
				strconv.Itoa(v1alpha3.CachePort), "/v2/"+img.Repository+"/blobs/"+img.Blobs[len(img.Blobs)-1], strconv.Itoa(clients))
			p.Check(err)
			p.Await(ctx, "the cache counts all connections", 20*time.Second, func(ctx context.Context) (bool, string, error) {
				open := gauge(ctx, p, pod, "process_open_fds")
				return open >= before+clients, fmt.Sprintf("%d open files, %d before", open, before), nil
			})
		}),

		rig.Prove("another pull is a hit and quick, and the cache stays small", func(ctx context.Context, p *rig.Run) {
			if took := proveHit(ctx, p, img); took > pulledWithin {
				p.Fatalf("the pull took %s, want at most %s", rig.Seconds(took), pulledWithin)
			}
			resident := gauge(ctx, p, pod, "process_resident_memory_bytes")
			if resident >= memory {
				p.Fatalf("the cache has %d MiB of memory, want less than %d", resident>>20, memory>>20)
			}
			p.Evidence("%d frozen clients: %d MiB", clients, resident>>20)
		}),

		rig.Prove("the cache closes the connections", func(ctx context.Context, p *rig.Run) {
			start := time.Now()
			p.Check(rig.AwaitEvery(ctx, time.Second, "the connections are closed", closedWithin, func(ctx context.Context) (bool, string, error) {
				open := gauge(ctx, p, pod, "process_open_fds")
				return open < before+clients/4, fmt.Sprintf("%d open files, %d before", open, before), nil
			}))
			p.Evidence("closed after %s", rig.Seconds(time.Since(start)))
		}),
	)
}

// gauge returns a metric of a cache's pod, rounded down.
func gauge(ctx context.Context, p *rig.Run, pod *corev1.Pod, metric string) int {
	p.Helper()
	clientset, err := kubernetes.NewForConfig(p.Session.Shoot.Config)
	p.Check(err)
	text, err := clientset.CoreV1().Pods(pod.Namespace).ProxyGet("http", pod.Name, strconv.Itoa(v1alpha3.CacheDebugPort), "metrics", nil).DoRaw(ctx)
	p.Check(err)
	line := regexp.MustCompile(`(?m)^` + metric + ` (\S+)$`).FindSubmatch(text)
	if line == nil {
		p.Fatalf("pod %s has no metric %s", pod.Name, metric)
	}
	value, err := strconv.ParseFloat(string(line[1]), 64)
	p.Check(err)
	return int(value)
}
