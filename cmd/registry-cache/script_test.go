package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

const (
	cachesOfNode   = 20
	measuredRounds = 10 // a round takes some six seconds
	ticksPerSecond = 100
)

// BenchmarkScript measures the script of a node with 20 caches, and the curl processes that it
// starts. One process serves all caches, since only the node's side is measured.
func BenchmarkScript(b *testing.B) {
	for _, scheme := range []string{"http", "https"} {
		b.Run(scheme, func(b *testing.B) {
			cache, ca, _ := startCache(b, scheme)
			n := startScript(b, cache, ca)
			n.awaitRounds(b, 1)
			start, before := time.Now(), n.stat(b)
			for b.Loop() {
				n.awaitRounds(b, measuredRounds)
			}
			after := n.stat(b)
			if state, err := os.ReadFile(n.state); strings.Count(string(state), " mirror ") != cachesOfNode {
				b.Fatalf("not all caches are mirrors: %s%v", state, err)
			}
			ticks := float64(after.UTime+after.STime+uint(after.CUTime+after.CSTime)) - float64(before.UTime+before.STime+uint(before.CUTime+before.CSTime))
			b.ReportMetric(100*ticks/ticksPerSecond/time.Since(start).Seconds(), "%core")
			b.ReportMetric(float64(after.ResidentMemory())/(1<<20), "MiB")
		})
	}
}

// node is a process that runs the script of a node.
type node struct {
	process procfs.Proc
	state   string // the file that the script writes in each round
}

func startScript(b *testing.B, cache *servedCache, ca []byte) *node {
	b.Helper()
	health, err := url.Parse(cache.debugURL)
	if err != nil {
		b.Fatal(err)
	}
	script, run := filepath.Join(b.TempDir(), "script.sh"), b.TempDir()
	if err := os.WriteFile(script, []byte(nodeconfig.Script()), nodeconfig.ScriptMode); err != nil {
		b.Fatal(err)
	}
	arguments := []string{script}
	for i := range cachesOfNode {
		upstream := fmt.Sprintf("%d.upstream.test", i)
		arguments = append(arguments, nodeconfig.Registry{
			Upstream: upstream, Endpoint: cache.url, UpstreamURL: "https://" + upstream, EndpointCA: ca,
		}.Argument())
	}
	cmd := exec.Command("bash", arguments...)
	cmd.Env = append(os.Environ(), "CERTS_DIR="+b.TempDir(), "RUN_DIR="+run, "HEALTH_PORT="+health.Port())
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { // a signal that it can catch, so that its children also end
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	process, err := procfs.NewProc(cmd.Process.Pid)
	if err != nil {
		b.Fatal(err)
	}
	return &node{process: process, state: filepath.Join(run, "state")}
}

func (n *node) stat(b *testing.B) procfs.ProcStat {
	b.Helper()
	stat, err := n.process.Stat()
	if err != nil {
		b.Fatal(err)
	}
	return stat
}

func (n *node) awaitRounds(b *testing.B, count int) {
	b.Helper()
	for range count {
		last, _ := os.Stat(n.state)
		err := wait.PollUntilContextTimeout(b.Context(), 100*time.Millisecond, patience, true, func(context.Context) (bool, error) {
			next, err := os.Stat(n.state)
			return err == nil && (last == nil || !next.ModTime().Equal(last.ModTime())), nil
		})
		if err != nil {
			b.Fatalf("no new state file within %s: %v", patience, err)
		}
	}
}
