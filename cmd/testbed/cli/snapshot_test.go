package cli

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/internal/program"
	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/snapshot"
)

func TestWrongUseOfSnapshot(t *testing.T) {
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"no verb", []string{}, "name a command"},
		{"no name", []string{"save"}, "usage: testbed snapshot save NAME"},
		{"two names", []string{"restore", "a", "b"}, "usage: testbed snapshot restore NAME"},
		{"a name that leads elsewhere", []string{"save", "../a"}, `invalid snapshot name "../a"`},
		{"one that is not there", []string{"restore", "missing"}, "snapshot missing not found"},
		{"deleting one that is not there", []string{"delete", "missing"}, "snapshot missing not found"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, out, stderr := run(t, "", append([]string{"--prefix", nobodys, "snapshot"}, tc.args...)...)
			if code != program.ExitUsage || !strings.Contains(stderr, tc.want) || out != "" {
				t.Errorf("exit code %d, standard output %q, standard error %q; want %d and %q", code, out, stderr, program.ExitUsage, tc.want)
			}
		})
	}
	if code, out, _ := run(t, "", "--prefix", nobodys, "snapshot", "list", "--json"); code != program.ExitFine || out != "[]\n" {
		t.Errorf("none: exit code %d, standard output %q", code, out)
	}
}

// TestPlanDeletion: the dry run names a snapshot that is there, and leaves it.
func TestPlanDeletion(t *testing.T) {
	options := kind.Options{Directory: t.TempDir(), Prefix: "one"}
	saveEmpty(t, &options, "warm")
	var out, stderr bytes.Buffer
	std := program.Streams{Out: &out, Err: &stderr}
	for range 2 { // the second one finds it again
		code := program.Run(t.Context(), newSnapshotCommand(&options, std), std, []string{"delete", "warm", "--dry-run"})
		if code != program.ExitFine {
			t.Fatalf("exit code %d, %s", code, &stderr)
		}
	}
	if want := strings.Repeat("delete snapshot warm\n", 2); out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
}

// saveEmpty saves a snapshot of a testbed without caches, where `testbed snapshot` looks for it.
func saveEmpty(t *testing.T, options *kind.Options, name string) {
	t.Helper()
	draft, err := snapshot.Store(filepath.Join(options.Directory, options.Prefix) + ".snapshots").Begin(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := draft.Commit(); err != nil {
		t.Fatal(err)
	}
}

func TestWriteSnapshots(t *testing.T) {
	one := snapshot.Snapshot{Name: "warm", Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local), Volumes: []snapshot.Volume{
		{Claim: "cache-volume-registry-a-0", Upstream: "a.test", Bytes: 5 << 20}, {Claim: "cache-volume-registry-b-0", Upstream: "b.test", Bytes: 10240},
	}}
	var out bytes.Buffer
	if err := writeSnapshots(&out, []snapshot.Snapshot{one}); err != nil {
		t.Fatal(err)
	}
	if err := writeSnapshot(&out, &one, false); err != nil {
		t.Fatal(err)
	}
	want := `NAME  SAVED                SIZE     VOLUMES
warm  2026-01-02 03:04:05  5.01MiB  2
warm      5.01MiB
  a.test  5MiB   cache-volume-registry-a-0
  b.test  10KiB  cache-volume-registry-b-0
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}
