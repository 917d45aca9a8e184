package profile

import (
	"bytes"
	"errors"
	"io/fs"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/gardener-extensions/registry-cache/internal/golden"
)

func TestSecondsByComponent(t *testing.T) {
	shell := process{component: "sh", parent: 1, started: 10, own: 1, children: 5}
	child := process{component: "cp", parent: 2, started: 20, own: 3}
	later := func(p process, own, children float64) process {
		p.own, p.children = p.own+own, p.children+children
		return p
	}
	for _, tc := range []struct {
		name          string
		before, after map[int]process
		want          map[string]float64
	}{
		{"own time and that of children that lived in between", map[int]process{2: shell}, map[int]process{2: later(shell, 2, 4)},
			map[string]float64{"sh": 2, "sh" + endedSuffix: 4}},
		{"a new process", nil, map[int]process{2: shell}, map[string]float64{"sh": 1, "sh" + endedSuffix: 5}},
		{"a child that ended was counted while it ran", map[int]process{2: shell, 3: child}, map[int]process{2: later(shell, 0, 3.5)},
			map[string]float64{"sh": 0, "sh" + endedSuffix: 0.5}},
		{"nobody waited for the child", map[int]process{2: shell, 3: child}, map[int]process{2: shell},
			map[string]float64{"sh": 0, "sh" + endedSuffix: 0}},
		{"another process with the same PID", map[int]process{2: shell, 3: child},
			map[int]process{2: later(shell, 0, 3), 3: {component: "mv", parent: 2, started: 30, own: 0.5}},
			map[string]float64{"sh": 0, "sh" + endedSuffix: 0, "mv": 0.5, "mv" + endedSuffix: 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := secondsByComponent(tc.before, tc.after)
			for component, want := range tc.want {
				if got[component] != want {
					t.Errorf("%s: %v CPU seconds, want %v", component, got[component], want)
				}
			}
			if len(got) != len(tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

func TestHidden(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.ENOENT: true, syscall.ESRCH: true, syscall.EPERM: true, syscall.EACCES: true, syscall.EMFILE: false, nil: false,
	} {
		wrapped := err
		if err != nil {
			wrapped = &fs.PathError{Op: "open", Path: "/proc/7/stat", Err: err}
		}
		if got := hidden(wrapped); got != want {
			t.Errorf("%v: %v, want %v", wrapped, got, want)
		}
	}
}

func TestComponentOf(t *testing.T) {
	if got := componentOf(procfs.ProcStat{Comm: "kworker/0:1", Flags: kernelThread | 0x40}, nil); got != "kernel threads" {
		t.Errorf("a kernel thread: %q", got)
	}
	for _, tc := range []struct {
		comm string
		argv []string
		want string
	}{
		{"zombie", nil, "zombie"},
		{"kube-controller", []string{"kube-controller-manager", "--v=2"}, "kube-controller-manager"},
		{"registry-cache", []string{"/registry-cache", "serve", "config.yml"}, "registry-cache serve"},
		{"containerd-shim", []string{"/usr/bin/containerd-shim-runc-v2", "-namespace", "moby"}, "shim of Docker"},
		{"containerd-shim", []string{"/usr/local/bin/containerd-shim-runc-v2", "-namespace", "k8s.io"}, "shim on a node"},
		{"script", []string{"bash", "/script"}, "script"},
	} {
		if got := componentOf(procfs.ProcStat{Comm: tc.comm}, tc.argv); got != tc.want {
			t.Errorf("%s %q: %q, want %q", tc.comm, tc.argv, got, tc.want)
		}
	}
}

// tenSeconds returns ten samples, each one second long. The first has 2 CPU seconds, the others 1.
func tenSeconds() (Profile, func(second float64) time.Time) {
	p := Profile{components: map[string]float64{"kubelet": 6, "kubelet" + endedSuffix: 4.98, "cp": 0.02}}
	at := func(second float64) time.Time {
		return time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC).Add(time.Duration(second * float64(time.Second)))
	}
	for i := range 10 {
		s := sample{at(float64(i)), at(float64(i + 1)), 1}
		if i == 0 {
			s.seconds = 2
		}
		p.samples = append(p.samples, s)
	}
	return p, at
}

func TestSecondsIn(t *testing.T) {
	p, at := tenSeconds()
	for _, tc := range []struct {
		name  string
		spans []Span
		want  []float64
	}{
		{"everything", []Span{{"", at(-1), at(20)}}, []float64{11}},
		{"part of a sample", []Span{{"", at(0.5), at(1.5)}}, []float64{1.5}},
		{"before the profile", []Span{{"", at(-5), at(-4)}}, []float64{0}},
		{"one after the other", []Span{{"", at(0), at(2)}, {"", at(2), at(4)}}, []float64{3, 2}},
		{"at the same time", []Span{{"", at(2), at(6)}, {"", at(4), at(8)}}, []float64{3, 3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for i, got := range p.secondsIn(tc.spans) {
				if got != tc.want[i] {
					t.Errorf("span %d: %v CPU seconds, want %v", i, got, tc.want[i])
				}
			}
		})
	}
}

func TestWrite(t *testing.T) {
	p, at := tenSeconds()
	var out bytes.Buffer
	err := p.Write(&out, Group{"phase", []Span{{"up", at(0), at(4)}}}, Group{"scenario", []Span{{"pull-through", at(4), at(7)}, {"two-shoots", at(5), at(10)}}})
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "profile.txt", out.String())
}

// TestWriteWithoutTime: if no CPU time was used, every share is 0.
func TestWriteWithoutTime(t *testing.T) {
	for name, p := range map[string]Profile{"empty": {}, "idle": {components: map[string]float64{"kubelet": 0}}} {
		var out bytes.Buffer
		if err := p.Write(&out); err != nil {
			t.Fatal(err)
		}
		if want := "  CPU s  share  component\n    0.0  0.0 %  everything else\n"; out.String() != want {
			t.Errorf("%s: wrote %q, want %q", name, out.String(), want)
		}
	}
}

// TestProcesses measures a real process while it runs, and after its end as an ended child.
func TestProcesses(t *testing.T) {
	const work = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
	before, err := read()
	if err != nil {
		t.Fatal(err)
	}
	shell := exec.Command("bash", "-c", work+"; echo; read line")
	in, inErr := shell.StdinPipe()
	out, outErr := shell.StdoutPipe()
	if inErr != nil || outErr != nil {
		t.Fatal(inErr, outErr)
	}
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // the work is done
		t.Fatal(err)
	}
	running, err := read()
	if err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	_ = shell.Wait()
	after, err := read()
	if err != nil {
		t.Fatal(err)
	}
	pid := shell.Process.Pid
	if p := running.processes[pid]; p.component != "bash" || p.own < 0.05 || running.busy <= before.busy {
		t.Errorf("the running process: %+v, busy %v after %v", p, running.busy, before.busy)
	}
	if _, ok := after.processes[pid]; ok {
		t.Error("the ended process is still listed")
	}
	self := running.processes[pid].parent
	if was, now := running.processes[self].children, after.processes[self].children; now-was < 0.05 {
		t.Errorf("the time of ended children was %v and is %v, want the time of the process in it", was, now)
	}
}

// TestFailedReadings: a failed reading is reported, and the next reading includes the missed time.
// If the first reading fails, the profile does not include the time since boot.
func TestFailedReadings(t *testing.T) {
	failure := errors.New("no memory")
	at := func(busy float64) reading {
		return reading{busy: busy, processes: map[int]process{1: {component: "init", started: 1, own: busy}}}
	}
	for _, tc := range []struct {
		name     string
		readings []reading // a reading without processes fails
		want     float64
	}{
		{"the first", []reading{{}, at(1000), at(1002)}, 2},
		{"one in the middle", []reading{at(1000), {}, at(1003)}, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			next := 0
			p := &Profiler{read: func() (reading, error) {
				current := tc.readings[next]
				if next++; current.processes == nil {
					return reading{}, failure
				}
				return current, nil
			}, profile: Profile{components: map[string]float64{}}}
			p.last, p.err = p.read()
			for next < len(tc.readings) {
				p.sample(time.Now())
			}
			if got := p.profile; got.total() != tc.want || got.components["init"] != tc.want || !errors.Is(p.err, failure) {
				t.Errorf("%v CPU seconds, %v, error %v, want %v and %v", got.total(), got.components, p.err, tc.want, failure)
			}
		})
	}
}

// TestProfiler: the profile contains the CPU time of all readings.
func TestProfiler(t *testing.T) {
	var last float64
	p := start(func() (reading, error) {
		last++
		return reading{busy: last, processes: map[int]process{1: {component: "init", started: 1, own: last}}}, nil
	})
	p.sample(time.Now())
	p.sample(time.Now())
	profile, err := p.Stop()
	if err != nil || profile.total() < 3 || profile.components["init"] != profile.total() {
		t.Errorf("%v CPU seconds, %v of init, %v", profile.total(), profile.components, err)
	}
}
