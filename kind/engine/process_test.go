package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/procfs"
)

func TestProcess(t *testing.T) {
	process, err := procfs.Self()
	if err != nil {
		t.Skip("no /proc here")
	}
	self, err := process.Comm()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, content, program string
		want                   int
	}{
		{"alive", fmt.Sprintf("%d\n", os.Getpid()), self, os.Getpid()},
		{"the ID belongs to another program", fmt.Sprint(os.Getpid()), "dockerd", 0},
		{"gone", "4194305", "dockerd", 0},
		{"incomplete", "", "dockerd", 0},
		{"not a process ID", "-1", "dockerd", 0},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pid")
			if err := os.WriteFile(file, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := runningPID(file, tc.program); got != tc.want || err != nil {
				t.Errorf("got %d, %v; want %d", got, err, tc.want)
			}
			if err := removeStale(file, tc.program); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) != (tc.want == 0) {
				t.Errorf("stat of the pid file after removeStale: %v", err)
			}
		})
	}
	t.Run("no file", func(t *testing.T) {
		if got, err := runningPID(filepath.Join(t.TempDir(), "pid"), "dockerd"); got != 0 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
	})
}
