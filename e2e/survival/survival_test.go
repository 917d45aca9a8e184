//go:build e2e

package survival

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// upBound bounds `testbed up`. The first `testbed up` also loads the node image.
	upBound = 8 * time.Minute
	// fullBound bounds the time until `testbed up` detects a full disk.
	fullBound = 90 * time.Second
	// verbBound bounds a verb that might have to start the engine first. If the engine was killed, its
	// next start first stops the containers that still run.
	verbBound = 2 * time.Minute
	// worksBound bounds the time from the end of `testbed up` until pulls go through the caches.
	worksBound = 90 * time.Second
)

// TestSurvival runs its parts one after another. Each part takes minutes. The first failed part
// ends the test.
func TestSurvival(t *testing.T) {
	if _, err := os.Stat(writtenFolder); err != nil {
		t.Fatal("this test would kill the engine and fill the disks of this machine; run: make e2e-survival")
	}
	m := &machine{seen: map[string]bool{}}
	m.before = takeInventory(t)
	t.Cleanup(func() { _ = exec.Command("bin/testbed", "--prefix", prefix, "down").Run() })

	ran := 0
	for _, part := range []struct {
		name string
		run  func(*testing.T, *machine)
	}{
		{"no space for the engine", noRoom},
		{"the engine's disk fills during up", diskFills},
		{"up is killed", killedUp},
		{"the engine dies between verbs", engineDies},
		{"a full disk and killed verbs", killedVerbs},
	} {
		if !t.Run(part.name, func(t *testing.T) { ran++; part.run(t, m) }) {
			t.FailNow()
		}
	}
	if ran == 0 {
		t.Error("no part was selected")
	}
}

// noRoom runs `testbed up` without space for images, and then on a full disk, where the engine
// might fail to start. On the full disk `testbed down` must succeed or report that the disk is
// full.
func noRoom(t *testing.T, m *machine) {
	filler := fill(t, dataRoot, 200<<20)
	m.refuses(t)
	m.must(t, verbBound, "down")

	fill(t, dataRoot, 0)
	m.refuses(t)
	if v, code := m.run(t, verbBound, "down"); code != 0 && !diskFull.MatchString(v.prose.String()) {
		t.Errorf("down: exit code %d", code)
	}
	free(t, filler)
	m.down(t)
}

// diskFills fills the disk when `testbed up` has checked the space and is starting a cluster.
func diskFills(t *testing.T, m *machine) {
	v := m.start(t, upBound, "up")
	m.await(t, v, hasContainer(t, "-seed-control-plane"))
	filler, full := fill(t, dataRoot, 0), time.Now()
	<-v.ended
	took := time.Since(full).Round(100 * time.Millisecond)
	t.Logf("up on a full disk: %v after %s\n%s", v.process.ProcessState, took, v.prose.String())
	if v.process.ProcessState.ExitCode() != 3 || took > fullBound || !diskFull.MatchString(v.prose.String()) {
		t.Errorf("up does not report within %s that the disk is full", fullBound)
	}
	m.must(t, verbBound, "down") // the disk is still full
	free(t, filler)
	m.nothingLeft(t)
}

// killedUp kills `testbed up` when the first node of the shoot exists.
func killedUp(t *testing.T, m *machine) {
	m.kill(t, hasContainer(t, "-shoot-control-plane"), "up")
	m.down(t)
	m.down(t) // without a testbed
}

// engineDies ends the engine, with SIGKILL or SIGTERM, before each of several verbs.
func engineDies(t *testing.T, m *machine) {
	m.must(t, upBound, "up")
	image := m.works(t)
	for _, args := range [][]string{{"status", "--json"}, {"pull", image}, {"fault", "add", "cache/alpha", "refuse"}, {"fault", "list"}} {
		signalEngine(t, syscall.SIGKILL)
		m.endsInTime(t, args...)
	}
	m.must(t, upBound, "up")
	m.works(t)

	signalEngine(t, syscall.SIGTERM)
	m.endsInTime(t, "status", "--json")
	signalEngine(t, syscall.SIGTERM)
	m.must(t, upBound, "up")
	m.works(t)

	signalEngine(t, syscall.SIGKILL)
	m.down(t)
}

// killedVerbs kills verbs that change a running testbed, one of them on a full disk.
func killedVerbs(t *testing.T, m *machine) {
	m.must(t, upBound, "up")
	stopping := func() bool {
		return exec.CommandContext(t.Context(), "docker", "exec", prefix+"-shoot-worker2", "systemctl", "is-active", "--quiet", "kubelet.service").Run() != nil
	}
	m.kill(t, stopping, "fault", "add", "node/worker2", "loss")
	if faults := m.must(t, verbBound, "fault", "list", "--json"); strings.Count(faults, `"loss"`) != 1 {
		t.Errorf("the fault of a killed process is not listed: %s", faults)
	}
	fill(t, state, 0)
	if clusters := m.clusters(t); clusters != 2 {
		t.Errorf("status on a full disk shows %d clusters", clusters)
	}
	m.kill(t, func() bool { return !hasContainer(t, "-seed-control-plane")() }, "down")
	signalEngine(t, syscall.SIGKILL)
	m.must(t, verbBound, "down")
	free(t, state+"/filler")
	m.nothingLeft(t)
}

// diskFull matches the error of a verb on a full disk.
var diskFull = regexp.MustCompile(`the disk is full: `)

// noRoomLeft matches the error of `testbed up` about Docker's disk.
var noRoomLeft = regexp.MustCompile(`(GiB free|MiB are left) at ` + dataRoot)

// refuses proves that `testbed up` ends in time with an environment error about Docker's disk.
func (m *machine) refuses(t *testing.T) {
	t.Helper()
	if v, code := m.run(t, fullBound, "up"); code != 3 || !noRoomLeft.MatchString(v.prose.String()) {
		t.Errorf("up ends with %d and does not report that %s has no space", code, dataRoot)
	}
}

// works waits until a pull goes through a cache, and returns the image. `testbed up` waits for the
// mirrors as well, but succeeds even if some are still missing after two minutes.
func (m *machine) works(t *testing.T) (image string) {
	t.Helper()
	for began := time.Now(); ; {
		image = m.must(t, verbBound, "push")
		report := m.must(t, verbBound, "pull", image)
		if strings.Contains(report, "cache miss") && strings.Contains(report, "no fallback") {
			return image
		}
		if time.Since(began) > worksBound {
			t.Fatalf("the caches do not work in %s:\n%s", worksBound, report)
		}
	}
}

// endsInTime proves that a verb ends in time, and that the error of a failed verb suggests `testbed
// up`.
func (m *machine) endsInTime(t *testing.T, args ...string) {
	t.Helper()
	v, code := m.run(t, verbBound, args...)
	switch {
	case code == 0:
	case code != 1 && code != 3:
		t.Errorf("exit code %d", code)
	case !strings.Contains(v.prose.String()+v.answer.String(), "testbed up"):
		t.Errorf("the error does not suggest `testbed up`")
	}
}

// clusters returns how many clusters `testbed status` shows.
func (m *machine) clusters(t *testing.T) int {
	t.Helper()
	var status struct{ Clusters []json.RawMessage }
	if err := json.Unmarshal([]byte(m.must(t, verbBound, "status", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	return len(status.Clusters)
}
