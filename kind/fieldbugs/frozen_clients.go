package fieldbugs

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
)

// openAndFreeze is a bash script: it opens $4 connections to the host $1 and port $2, requests the
// path $3 on each of them, and reads nothing.
const openAndFreeze = `for ((i = 0; i < $4; i++)); do
  exec {connection}<>"/dev/tcp/$1/$2"
  printf 'GET %s HTTP/1.1\r\nHost: cache\r\n\r\n' "$3" >&"$connection"
done
sleep infinity`

func frozenClients() Bug {
	const (
		clients, memory = 200, 128 << 20
		pulled          = 10 * time.Second
		cut             = 90 * time.Second // the cache closes a connection after a minute without progress
		unit            = "frozen-clients"
	)
	return Bug{
		ID: "s27", Slug: "frozen-clients", Title: "clients request a layer and do not read it",
		Reports: []string{"distribution#1182", "distribution#1533"},
		Symptom: "The memory of the cache grows with each client that does not read, and is never freed.",
		Fault:   "none: a process on a worker requests a layer on 200 connections and reads nothing",
		Expectation: "The cache stays below 128 MiB and serves other pulls within 10 s. It closes the connections within 90 s, after " +
			"a minute without progress.",
		Reproduce: func(ctx context.Context, r *Rig) error {
			img, err := r.Push(ctx, "alpha", "--size", "32Mi")
			if err != nil {
				return err
			}
			if _, err := r.requirePull(ctx, img.Reference, "a pull succeeds", "--node", "worker"); err != nil {
				return err
			}
			pod, err := r.cachePod(ctx, "alpha")
			if err != nil {
				return err
			}
			before, err := r.gauge(ctx, pod.Name, "process_open_fds")
			if err != nil {
				return err
			}
			r.Afterwards(func(ctx context.Context) error {
				_, err := r.Exec(ctx, "worker2", "systemctl", "stop", unit)
				return err
			})
			repository, _, _ := strings.Cut(strings.TrimPrefix(img.Reference, host("alpha")+"/"), ":")
			layer := img.Objects[len(img.Objects)-1]
			_, err = r.Exec(ctx, "worker2", "systemd-run", "--collect", "--unit", unit, "bash", "-c", openAndFreeze, "bash", pod.Status.PodIP,
				strconv.Itoa(v1alpha3.CachePort), "/v2/"+repository+"/blobs/"+layer.Digest, strconv.Itoa(clients))
			if err != nil {
				return err
			}
			if err := r.awaitGauge(ctx, pod.Name, "the cache has the connections", func(fds int) bool { return fds >= before+clients }); err != nil {
				return err
			}
			report, err := r.requireHit(ctx, img.Reference, "another pull is served from the store")
			if err != nil {
				return err
			}
			if err := r.Within("a pull beside the frozen clients", Slowest(report), pulled); err != nil {
				return err
			}
			resident, err := r.gauge(ctx, pod.Name, "process_resident_memory_bytes")
			if err != nil {
				return err
			}
			if err := r.Require("the cache stays below 128 MiB", resident < memory, "%d MiB", resident>>20); err != nil {
				return err
			}
			return r.Soon(ctx, "the cache closes the connections", cut, func(ctx context.Context) (bool, string, error) {
				fds, err := r.gauge(ctx, pod.Name, "process_open_fds")
				return fds < before+clients/4, fmt.Sprintf("%d open files, %d before", fds, before), err
			})
		},
	}
}

func (r *Rig) awaitGauge(ctx context.Context, pod, what string, fits func(fds int) bool) error {
	return r.Await(ctx, what, 20*time.Second, func(ctx context.Context) (bool, string, error) {
		fds, err := r.gauge(ctx, pod, "process_open_fds")
		return fits(fds), fmt.Sprintf("%d open files", fds), err
	})
}

// gauge returns a metric of a cache's pod, rounded down.
func (r *Rig) gauge(ctx context.Context, pod, metric string) (int, error) {
	path := fmt.Sprintf("/api/v1/namespaces/kube-system/pods/%s:%d/proxy/metrics", pod, v1alpha3.CacheDebugPort)
	text, err := r.Kubectl(ctx, "shoot", "get", "--raw", path)
	if err != nil {
		return 0, err
	}
	line := regexp.MustCompile(`(?m)^` + metric + ` (\S+)$`).FindStringSubmatch(text)
	if line == nil {
		return 0, fmt.Errorf("pod %s has no metric %s", pod, metric)
	}
	value, err := strconv.ParseFloat(line[1], 64)
	return int(value), err
}
