package report

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestReadUsage(t *testing.T) {
	const stat = "cpu  100 200 300 4000 500 60 70 80 30 20\ncpu0 100 200 300 4000 500 60 70 80 30 20\n"
	tests := []struct {
		name, meminfo, stat string
		want                reading
		err                 bool
	}{
		{"used is total minus available; busy is all but idle and iowait", "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\n", stat,
			reading{usedMemory: 600 * 1024, busy: 8.1}, false},
		{"no MemAvailable", "MemTotal: 1000 kB\n", stat, reading{}, true},
		{"more available than there is", "MemTotal: 1000 kB\nMemAvailable: 1001 kB\n", stat, reading{}, true},
		{"no meminfo", "", stat, reading{}, true},
		{"no CPU time", "MemTotal: 1000 kB\nMemAvailable: 400 kB\n", "cpu x\n", reading{}, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			proc := t.TempDir()
			for name, text := range map[string]string{"meminfo": tc.meminfo, "stat": tc.stat} {
				if err := os.WriteFile(filepath.Join(proc, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := readUsage(proc)
			got.busy = tenths(got.busy)
			if got != tc.want || (err != nil) != tc.err {
				t.Errorf("got %+v, %v; want %+v, error %v", got, err, tc.want, tc.err)
			}
		})
	}
}

func TestSampler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readings := []reading{{100, 10}, {500, 10.75}, {50, 12}, {60, 12.5}}
		var next atomic.Int32
		s := startSampler(func() (reading, error) { return readings[next.Add(1)-1], nil })
		<-time.After(3*samplingInterval + samplingInterval/2)
		s.Stop()
		usage, err := s.Usage()
		if want := (Usage{StartMemoryBytes: 100, PeakMemoryBytes: 500, CPUSeconds: 2.5}); usage != want || err != nil {
			t.Errorf("got %+v, %v; want %+v", usage, err, want)
		}
	})
}

func TestSamplerReportsThatItCannotRead(t *testing.T) {
	s := startSampler(func() (reading, error) { return reading{}, errors.New("gone") })
	defer s.Stop()
	if _, err := s.Usage(); err == nil {
		t.Error("no error")
	}
}
