package logs

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/shell"
)

func TestLogCommandLines(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC)
	for _, tc := range []struct {
		name string
		argv []string
		want string
	}{
		{
			"a journal", journalArgv("n", "kubelet.service", Window{}),
			"docker exec --interactive n journalctl --no-pager --quiet --output=short-iso-precise --unit=kubelet.service",
		},
		{
			"a journal that is followed", journalArgv("n", "u", Window{Since: since, Follow: true}),
			"docker exec --interactive n bash -c " + followJournal + " bash --unit=u --since=@1767323045.600000",
		},
		{
			"all of a journal, followed", journalArgv("n", "u", Window{Follow: true}),
			"docker exec --interactive n bash -c " + followJournal + " bash --unit=u --lines=all",
		},
		{"a container", dockerLogsArgv("c", Window{}), "docker logs --timestamps c"},
		{
			"a container that is followed", dockerLogsArgv("c", Window{Since: since, Follow: true}),
			"docker logs --timestamps --since=2026-01-02T03:04:05.6Z --follow c",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := strings.Join(tc.argv, " "); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestRunProgram checks that the error contains only the beginning of standard error.
func TestRunProgram(t *testing.T) {
	err := shell.Capture(t.Context(), []string{"sh", "-c", "echo no such unit >&2; yes | head -c 100000 >&2; exit 3"}, io.Discard)
	if err == nil || !strings.HasPrefix(err.Error(), "sh: exit code 3: no such unit") || len(err.Error()) > 2*shell.MaxBeginning {
		t.Errorf("error %.200v", err)
	}
	// The input of a program stays open until the program ends.
	if err := shell.Capture(t.Context(), []string{"sh", "-c", "! timeout 0.1 cat"}, io.Discard); err != nil {
		t.Errorf("the input ended: %v", err)
	}
}

// TestFinder: an unknown component is an error. A missing log is not, since it may appear later.
func TestFinder(t *testing.T) {
	streams, err := finder(&kind.Testbed{}, Options{Component: Upstream, Name: "alpha"})(t.Context())
	if len(streams) != 0 || err != nil {
		t.Errorf("%d streams, error %v", len(streams), err)
	}
	if _, err := finder(&kind.Testbed{}, Options{Component: "etcd"})(t.Context()); err == nil {
		t.Error("an unknown component is no error")
	}
}
