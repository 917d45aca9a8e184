package pull

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// shell is a Node that runs scripts locally. Its programs come first in PATH.
type shell struct{ programs string }

func (s shell) Script(ctx context.Context, script string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", append([]string{"-euo", "pipefail", "-c", script, "bash"}, args...)...)
	cmd.Env = []string{"PATH=" + s.programs + ":" + os.Getenv("PATH"), "CALLS=" + filepath.Join(s.programs, "calls")}
	out, err := cmd.Output()
	return string(out), err
}

func (s shell) calls(t *testing.T) string {
	t.Helper()
	calls, err := os.ReadFile(filepath.Join(s.programs, "calls"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(calls)
}

// newShell returns a shell whose programs are the given shell scripts.
func newShell(t *testing.T, programs map[string]string) shell {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Fatal("bash not found: the scripts need it")
	}
	s := shell{programs: t.TempDir()}
	for name, body := range programs {
		if err := os.WriteFile(filepath.Join(s.programs, name), []byte("#!/bin/sh\n"+body), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// ctr is a script that prints what ctr of containerd 2.3 prints on a node.
const ctr = `
case "$*" in
"--namespace=k8s.io content list --quiet") printf 'sha256:aa\nsha256:bb\n' ;;
"plugins list") cat <<'END' ;;
TYPE                            ID                  PLATFORMS      STATUS
io.containerd.content.v1        content             -              ok
io.containerd.snapshotter.v1    blockfile           linux/amd64    skip
io.containerd.snapshotter.v1    overlayfs           linux/amd64    ok
io.containerd.snapshotter.v1    zfs                 linux/amd64    error
END
"--namespace=k8s.io snapshots --snapshotter overlayfs list") cat <<'END' ;;
KEY        PARENT     KIND
sha256:dd             Committed
0a1b2c     sha256:dd  Active
END
"--namespace=k8s.io images list") cat <<'END' ;;
REF                             TYPE                                       DIGEST    SIZE    PLATFORMS   LABELS
alpha.upstream.test/shop/web:v1 application/vnd.oci.image.manifest.v1+json sha256:aa 4.1 KiB linux/amd64 io.cri-containerd.image=managed
alpha.upstream.test/shop/web:v2 application/vnd.oci.image.manifest.v1+json sha256:ee 4.1 KiB linux/amd64 io.cri-containerd.image=managed
registry.k8s.io/pause:3.10      application/vnd.oci.image.manifest.v1+json sha256:ff 4.1 KiB linux/amd64 io.cri-containerd.image=managed
sha256:bb                       application/vnd.oci.image.manifest.v1+json sha256:aa 4.1 KiB linux/amd64 io.cri-containerd.image=managed
sha256:99                       application/vnd.oci.image.manifest.v1+json sha256:ee 4.1 KiB linux/amd64 io.cri-containerd.image=managed
END
"--namespace=k8s.io images remove "*) echo "$@" >>"$CALLS"; [ -z "$FAIL" ] ;;
*) echo "unexpected: ctr $*" >&2; exit 1 ;;
esac
`

func TestLook(t *testing.T) {
	node := newShell(t, map[string]string{"ctr": ctr, "hostname": "echo '172.18.0.4 fc00::4 '"})
	got, err := readState(t.Context(), node)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Addresses) != 2 || got.Addresses[1] != netip.MustParseAddr("fc00::4") {
		t.Errorf("addresses %v", got.Addresses)
	}
	if len(got.Content) != 2 || !got.Content["sha256:aa"] || len(got.Snapshots) != 2 || !got.Snapshots["sha256:dd"] {
		t.Errorf("content %v, snapshots %v", got.Content, got.Snapshots)
	}
}

// TestLookFails checks that a failed list is an error and does not count as empty.
func TestLookFails(t *testing.T) {
	const address = "echo 172.18.0.4"
	for name, programs := range map[string]map[string]string{
		"no containerd":   {"ctr": "exit 1", "hostname": address},
		"no content":      {"ctr": `case "$*" in *content*) exit 1;; esac` + ctr, "hostname": address},
		"no plugins":      {"ctr": `case "$*" in plugins*) exit 1;; esac` + ctr, "hostname": address},
		"no snapshots":    {"ctr": `case "$*" in *snapshots*) exit 1;; esac` + ctr, "hostname": address},
		"no address":      {"ctr": ctr, "hostname": "true"},
		"no hostname":     {"ctr": ctr, "hostname": "echo 172.18.0.4; exit 1"},
		"strange address": {"ctr": ctr, "hostname": "echo eth0"},
	} {
		t.Run(name, func(t *testing.T) {
			if state, err := readState(t.Context(), newShell(t, programs)); err == nil {
				t.Errorf("no error, but %+v", state)
			}
		})
	}
}

func TestForget(t *testing.T) {
	for _, tc := range []struct {
		name      string
		reference string
		digest    string
		want      []string
	}{
		{"by name", "alpha.upstream.test/shop/web:v1", "", []string{"alpha.upstream.test/shop/web:v1", "sha256:bb"}},
		{
			"another digest upstream", "alpha.upstream.test/shop/web:v1", "sha256:ee",
			[]string{"alpha.upstream.test/shop/web:v1", "alpha.upstream.test/shop/web:v2", "sha256:99", "sha256:bb"},
		},
		{"by digest", "alpha.upstream.test/shop/web@sha256:aa", "sha256:aa", []string{"alpha.upstream.test/shop/web:v1", "sha256:bb"}},
		{"not there", "alpha.upstream.test/shop/none:v1", "sha256:77", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			node := newShell(t, map[string]string{"ctr": ctr})
			image := Image{Reference: tc.reference}
			if tc.digest != "" {
				image.Objects = []Object{{Digest: tc.digest}}
			}
			if err := forget(t.Context(), node, image); err != nil {
				t.Fatal(err)
			}
			removed := strings.Fields(node.calls(t))
			if len(tc.want) == 0 && len(removed) == 0 {
				return
			}
			if len(removed) != len(tc.want)+4 || removed[3] != "--sync" {
				t.Fatalf("removed %q, want %q", removed, tc.want)
			}
			for _, name := range tc.want {
				if !strings.Contains(node.calls(t)+" ", " "+name) {
					t.Errorf("%s was not removed: %q", name, removed)
				}
			}
		})
	}
}

func TestForgetFails(t *testing.T) {
	for name, program := range map[string]string{
		"no list":    `case "$*" in *list*) exit 1;; esac` + ctr,
		"no removal": "FAIL=1\n" + ctr,
	} {
		t.Run(name, func(t *testing.T) {
			node := newShell(t, map[string]string{"ctr": program})
			if err := forget(t.Context(), node, Image{Reference: "alpha.upstream.test/shop/web:v1"}); err == nil {
				t.Error("no error")
			}
		})
	}
}

// fatal is the output of a failed crictl v1.36.
const fatal = `E1121 23:15:12.940331    4183 remote_image.go:250] "PullImage from image service failed" err="not found"
time="2026-11-21T23:15:12Z" level=fatal msg="pulling image: failed to resolve \"web:v1\": not found"`

func TestRun(t *testing.T) {
	for _, tc := range []struct {
		name, crictl string
		timeout      time.Duration
		failure      string
	}{
		{"fine", `[ "$*" = "pull alpha.upstream.test/shop/web:v1" ] && echo "Image is up to date"`, time.Minute, ""},
		{"fails", "cat >&2 <<'END'\n" + fatal + "\nEND\nexit 1", time.Minute, `pulling image: failed to resolve "web:v1": not found`},
		{"fails in another format", "echo 'no such socket' >&2; exit 1", time.Minute, "no such socket"},
		{"fails without output", "exit 3", time.Minute, "crictl exited with code 3 and no output"},
		{"hangs", "trap 'echo interrupted >&2; exit 1' TERM; sleep 60 & wait", 50 * time.Millisecond, "not done after 50ms"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			node := newShell(t, map[string]string{"crictl": tc.crictl})
			took, failure, err := pullOn(t.Context(), node, testImage, tc.timeout)
			if err != nil || failure != tc.failure {
				t.Errorf("failure %q, error %v; want %q", failure, err, tc.failure)
			}
			if took <= 0 || took > time.Minute {
				t.Errorf("took %s", took)
			}
		})
	}
}

// broken is a node whose scripts print this unexpected text, or fail if the text is empty.
type broken string

func (b broken) Script(context.Context, string, ...string) (string, error) {
	if b == "" {
		return "", errors.New("the node is gone")
	}
	return string(b), nil
}

func TestRunOnABrokenNode(t *testing.T) {
	for _, output := range []broken{"", "\n", "soon 0\n", "12 x\n", "12\n"} {
		if _, failure, err := pullOn(t.Context(), output, testImage, time.Minute); err == nil {
			t.Errorf("%q: no error, failure %q", output, failure)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupt signal received"))
	node := newShell(t, nil)
	_, looked := readState(ctx, node)
	_, _, pulled := pullOn(ctx, node, testImage, time.Minute)
	for want, err := range map[string]error{
		"list addresses and content of the node: interrupt signal received":               looked,
		"remove alpha.upstream.test/shop/web:v1 from the node: interrupt signal received": forget(ctx, node, testImage),
		"pull alpha.upstream.test/shop/web:v1: interrupt signal received":                 pulled,
	} {
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// silent is a node that never answers, such as one whose containerd hangs.
type silent struct{}

func (silent) Script(ctx context.Context, _ string, _ ...string) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// TestSilentNode checks that each request to a node times out, with an error that names the request
// and the timeout.
func TestSilentNode(t *testing.T) {
	for name, test := range map[string]struct {
		ask  func(ctx context.Context) error
		want string
		took time.Duration
	}{
		"look": {func(ctx context.Context) error {
			_, err := readState(ctx, silent{})
			return err
		}, "list addresses and content of the node: no answer after 1m0s (", time.Minute},
		"forget": {func(ctx context.Context) error {
			return forget(ctx, silent{}, testImage)
		}, "remove alpha.upstream.test/shop/web:v1 from the node: no answer after 1m0s (", time.Minute},
		"a pull that its timeout does not end": {func(ctx context.Context) error {
			_, _, err := pullOn(ctx, silent{}, testImage, 5*time.Minute)
			return err
		}, "pull alpha.upstream.test/shop/web:v1: no answer after 6m0s (", 6 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour) // ends requests without a timeout
				defer cancel()
				start := time.Now()
				err := test.ask(ctx)
				if took := time.Since(start); err == nil || !strings.HasPrefix(err.Error(), test.want) || took != test.took {
					t.Errorf("error %v after %s, want %q after %s", err, took, test.want, test.took)
				}
			})
		})
	}
}
