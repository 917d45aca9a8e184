package kind

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckOwner(t *testing.T) {
	root := t.TempDir()
	folder := func(name string) State { return State(filepath.Join(root, name, DefaultDirectory, "one")) }
	for _, name := range []string{"here", "other", "recreated"} {
		if err := os.MkdirAll(string(folder(name)), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(folder("other").SeedKubeconfig(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "here"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name          string
		created, here State
		elsewhere     State // CreatedElsewhere
		refused       bool  // CheckOwner
	}{
		{"created here", folder("here"), folder("here"), "", false},
		{"created here, the folder is gone", folder("gone"), folder("gone"), "", false},
		{"created here, through a link", folder("link"), folder("here"), "", false},
		{"created by another checkout", folder("other"), folder("here"), folder("other"), true},
		{"created by another checkout, seen from a fresh one", folder("other"), folder("fresh"), folder("other"), true},
		{"created by a checkout that is gone", folder("gone"), folder("here"), folder("gone"), false},
		{"created by a checkout that is gone, Docker recreated its folder", folder("recreated"), folder("here"), folder("recreated"), false},
		{"no audit policy", "", folder("here"), "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bin, mounted := t.TempDir(), ""
			if tc.created != "" {
				mounted = filepath.Join(string(tc.created), "audit")
			}
			script := "#!/bin/sh\ncase $1 in ps) echo one-seed-control-plane running id ;; inspect) echo " + mounted + " ;; esac\n"
			if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			testbed := &Testbed{Prefix: "one", State: tc.here}
			if got, err := testbed.CreatedElsewhere(t.Context()); got != tc.elsewhere || err != nil {
				t.Errorf("created elsewhere: %q, %v; want %q", got, err, tc.elsewhere)
			}
			var other *OtherCheckoutError
			if err := testbed.CheckOwner(t.Context()); errors.As(err, &other) != tc.refused || err != nil && !tc.refused {
				t.Errorf("error %v, want one: %t", err, tc.refused)
			}
		})
	}
}

func TestOtherCheckoutErrorSaysWhatToDo(t *testing.T) {
	for want, at := range map[string]State{
		"/home/a/checkout": "/home/a/checkout/.testbed/one",
		"/elsewhere/one":   "/elsewhere/one",
	} {
		err := error(&OtherCheckoutError{Prefix: "one", State: at})
		for _, part := range []string{"testbed one belongs to " + want + ":", "testbed down", "--prefix"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in: %v", part, err)
			}
		}
	}
}
