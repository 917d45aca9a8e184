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
			reading{usedMemory: 600 * 1024, totalMemory: 1000 * 1024, busy: 8.1, elapsed: 53.1}, false},
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
			got.busy, got.elapsed = tenths(got.busy), tenths(got.elapsed)
			if got != tc.want || (err != nil) != tc.err {
				t.Errorf("got %+v, %v; want %+v, error %v", got, err, tc.want, tc.err)
			}
		})
	}
}

func TestSampler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		readings := []reading{
			{usedMemory: 100, totalMemory: 1000, busy: 10, elapsed: 100},
			{usedMemory: 500, totalMemory: 1000, busy: 10.75, elapsed: 101},
			{usedMemory: 50, totalMemory: 1000, busy: 10.75, elapsed: 102},
			{usedMemory: 60, totalMemory: 1000, busy: 10.75, elapsed: 102},
		}
		var next atomic.Int32
		s := startSampler(func() (reading, error) { return readings[next.Add(1)-1], nil })
		<-time.After(3*samplingInterval + samplingInterval/2)
		s.Stop()
		usage, err := s.Usage()
		if usage.StartMemoryBytes != 100 || usage.PeakMemoryBytes != 500 || usage.TotalMemoryBytes != 1000 || err != nil {
			t.Errorf("got %+v, %v; want 100 bytes at the start, at most 500 of 1000", usage, err)
		}
		want := []Sample{{MemoryBytes: 500, CPU: 0.75}, {MemoryBytes: 50}, {MemoryBytes: 60}}
		for i, sample := range usage.Samples {
			want[i].Time = start.Add(time.Duration(i+1) * samplingInterval)
			if !sample.Time.Equal(want[i].Time) || sample.MemoryBytes != want[i].MemoryBytes || sample.CPU != want[i].CPU {
				t.Errorf("sample %d is %+v, want %+v", i, sample, want[i])
			}
		}
		if len(usage.Samples) != len(want) {
			t.Errorf("%d samples, want %d", len(usage.Samples), len(want))
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
