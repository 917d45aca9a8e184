package kind

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLockKeepsASecondCommandOut(t *testing.T) {
	one := newLockFiles(t.TempDir(), "one", "/here")
	release, err := one.take()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.take(); !errors.Is(err, ErrBusy) {
		t.Errorf("second lock: %v, want ErrBusy", err)
	}
	if _, err := one.reserve(); !errors.Is(err, ErrBusy) {
		t.Errorf("reserved while it is being changed: %v, want ErrBusy", err)
	}
	release()
	release, err = one.take()
	if err != nil {
		t.Fatalf("lock after it was released: %v", err)
	}
	release()
}

func TestReservedTestbed(t *testing.T) {
	locks := t.TempDir()
	here, there := newLockFiles(locks, "one", "/here"), newLockFiles(locks, "one", "/there")
	done, err := here.reserve()
	if err != nil {
		t.Fatal(err)
	}
	release, err := here.take()
	if err != nil {
		t.Fatalf("the process that has reserved it: %v", err)
	}
	release()
	if _, err := there.reserve(); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "in /here") {
		t.Errorf("reserved twice: %v, want ErrBusy that names the directory", err)
	}
	// As the file would be if another process held the lock; process 1 is there always.
	other, err := json.Marshal(holder{PID: 1, Command: "e2e.test", Directory: "/here"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(here.run, other, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := there.take(); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "e2e.test") {
		t.Errorf("while another process has reserved it: %v, want ErrBusy that names it", err)
	}
	done()
	if release, err = there.take(); err != nil {
		t.Fatalf("after that process has ended: %v", err)
	}
	release()
}

// TestCheckoutsShareTheirTurn: names of clusters are the machine's, so two states of one prefix have one lock.
func TestCheckoutsShareTheirTurn(t *testing.T) {
	turnOf := func(prefix string) lockFiles {
		testbed, err := New(Options{Directory: t.TempDir(), Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		return testbed.locks
	}
	if a, b := turnOf("one"), turnOf("one"); a != b {
		t.Errorf("locks %+v and %+v, want the same", a, b)
	}
	seen := map[string]string{"engine.lock": "the engine"}
	for _, prefix := range []string{"one", "engine", "run", "prove", "one-run", "testbed-one", "prove-one"} {
		for _, path := range []string{turnOf(prefix).path, turnOf(prefix).run, turnOf(prefix).proof} {
			if other, taken := seen[filepath.Base(path)]; taken {
				t.Errorf("lock %s of %s and of %s", path, prefix, other)
			}
			seen[filepath.Base(path)] = prefix
		}
	}
}
