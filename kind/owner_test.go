package kind

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPossessionOfATestbed(t *testing.T) {
	root := t.TempDir()
	folder := func(name string) State { return State(filepath.Join(root, name, DefaultDirectory, "one")) }
	for _, name := range []string{"own", "other", "shell"} {
		if err := os.MkdirAll(string(folder(name)), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(folder("other").SeedKubeconfig(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "own"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name      string
		made, own State
		running   bool
		want      possession
	}{
		{"nothing is there", "", folder("own"), false, Ours},
		{"made here", folder("own"), folder("own"), true, Ours},
		{"made here, and stopped", folder("own"), folder("own"), false, Ours},
		{"made here, and the folder is gone", folder("gone"), folder("gone"), true, Ours},
		{"made here, by a link", folder("link"), folder("own"), true, Ours},
		{"made for another one", folder("other"), folder("own"), true, Foreign},
		{"made for another one, from a fresh checkout", folder("other"), folder("fresh"), true, Foreign},
		{"made for another one, and stopped", folder("other"), folder("own"), false, left},
		{"made for one that is gone", folder("gone"), folder("own"), true, left},
		{"made for one of which Docker has made the folder anew", folder("shell"), folder("own"), true, left},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := possessionOf(tc.made, tc.own, tc.running); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestOtherCheckoutErrorSaysHowToGoOn(t *testing.T) {
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
