package kind

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPossessionOfATestbed(t *testing.T) {
	root := t.TempDir()
	folder := func(name string) state { return state(filepath.Join(root, name, DefaultDirectory, "one")) }
	for _, name := range []string{"own", "other", "shell"} {
		if err := os.MkdirAll(string(folder(name)), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(folder("other").seedKubeconfig(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "own"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name      string
		made, own state
		running   bool
		want      possession
	}{
		{"nothing is there", "", folder("own"), false, ours},
		{"made here", folder("own"), folder("own"), true, ours},
		{"made here, and stopped", folder("own"), folder("own"), false, ours},
		{"made here, and the folder is gone", folder("gone"), folder("gone"), true, ours},
		{"made here, by a link", folder("link"), folder("own"), true, ours},
		{"made for another one", folder("other"), folder("own"), true, foreign},
		{"made for another one, from a fresh checkout", folder("other"), folder("fresh"), true, foreign},
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

// TestClaim: who has something to remove for a testbed that is his learns of it, and not of one that is refused.
func TestClaim(t *testing.T) {
	for _, tc := range []struct {
		name    string
		replace bool
		claimed int
	}{{"another directory's", false, 0}, {"another directory's, to be replaced", true, 1}} {
		t.Run(tc.name, func(t *testing.T) {
			claimed := 0
			testbed, err := New(Options{Root: t.TempDir(), Replace: tc.replace, Claimed: func() { claimed++ }})
			if err != nil {
				t.Fatal(err)
			}
			foreignTestbed(t, testbed)
			if err := testbed.claim(t.Context()); errors.As(err, new(*ForeignError)) == tc.replace || claimed != tc.claimed {
				t.Errorf("claimed %d times, error %v", claimed, err)
			}
		})
	}
}

func TestForeignErrorSaysHowToGoOn(t *testing.T) {
	for want, at := range map[string]state{
		"/home/a/checkout": "/home/a/checkout/.testbed/one",
		"/elsewhere/one":   "/elsewhere/one",
	} {
		err := error(&ForeignError{Prefix: "one", Directory: at.directory()})
		for _, part := range []string{"testbed one belongs to " + want + ":", "testbed down", "--prefix"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in: %v", part, err)
			}
		}
	}
}
