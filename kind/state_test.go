package kind

import (
	"errors"
	"path/filepath"
	"testing"
)

func TestLockKeepsASecondCommandOut(t *testing.T) {
	s := state(filepath.Join(t.TempDir(), "one"))
	unlock, err := s.lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.lock(); !errors.Is(err, ErrBusy) {
		t.Errorf("second lock: %v, want ErrBusy", err)
	}
	unlock()
	unlock, err = s.lock()
	if err != nil {
		t.Errorf("lock after unlock: %v", err)
	}
	unlock()
}
