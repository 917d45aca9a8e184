package report

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func meminfo(totalKiB, availableKiB uint64) []byte {
	return fmt.Appendf(nil, "MemTotal: %d kB\nMemFree: 1 kB\nMemAvailable: %d kB\nHugePages_Total: 0\n", totalKiB, availableKiB)
}

func TestUsedMemory(t *testing.T) {
	tests := []struct {
		name string
		text []byte
		want uint64
		err  bool
	}{
		{"used is total minus available", meminfo(1000, 400), 600 * 1024, false},
		{"no MemAvailable", []byte("MemTotal: 1000 kB\n"), 0, true},
		{"more available than there is", meminfo(1000, 1001), 0, true},
		{"empty", nil, 0, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := usedMemory(tc.text)
			if got != tc.want || (err != nil) != tc.err {
				t.Errorf("got %d, %v; want %d, error %v", got, err, tc.want, tc.err)
			}
		})
	}
}

func TestUsedIsStartAndHighest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var available atomic.Uint64
		available.Store(900)
		m := sampleMemory(func() ([]byte, error) { return meminfo(1000, available.Load()), nil })
		defer m.Stop()
		for _, kib := range []uint64{500, 950} {
			available.Store(kib)
			<-time.After(2 * samplingInterval)
		}
		if start, peak, err := m.Used(); start != 100*1024 || peak != 500*1024 || err != nil {
			t.Errorf("used at start %d, at most %d, %v; want %d and %d", start, peak, err, 100*1024, 500*1024)
		}
	})
}

func TestUsedReportsThatMemoryCouldNotBeRead(t *testing.T) {
	m := sampleMemory(func() ([]byte, error) { return nil, errors.New("gone") })
	defer m.Stop()
	if _, _, err := m.Used(); err == nil {
		t.Error("no error")
	}
}
