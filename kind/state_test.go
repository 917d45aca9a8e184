package kind

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOwnerOf(t *testing.T) {
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
		running       bool
		want          Owner
	}{
		{"no testbed", "", folder("here"), false, ThisCheckout},
		{"created here", folder("here"), folder("here"), true, ThisCheckout},
		{"created here, stopped", folder("here"), folder("here"), false, ThisCheckout},
		{"created here, the folder is gone", folder("gone"), folder("gone"), true, ThisCheckout},
		{"created here, through a link", folder("link"), folder("here"), true, ThisCheckout},
		{"created by another checkout", folder("other"), folder("here"), true, OtherCheckout},
		{"created by another checkout, seen from a fresh one", folder("other"), folder("fresh"), true, OtherCheckout},
		{"created by another checkout, stopped", folder("other"), folder("here"), false, NoCheckout},
		{"created by a checkout that is gone", folder("gone"), folder("here"), true, NoCheckout},
		{"created by a checkout that is gone, Docker recreated its folder", folder("recreated"), folder("here"), true, NoCheckout},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := ownerOf(tc.created, tc.here, tc.running); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestOtherCheckoutErrorSaysWhatToDo(t *testing.T) {
	for want, at := range map[string]State{
		"/home/a/checkout": "/home/a/checkout/.testbed/one",
		"/elsewhere/one":   "/elsewhere/one",
	} {
		err := error(&OtherCheckoutError{Prefix: "one", Directory: at.Directory()})
		for _, part := range []string{"testbed one belongs to " + want + ":", "testbed down", "--prefix"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in: %v", part, err)
			}
		}
	}
}
