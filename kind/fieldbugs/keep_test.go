package fieldbugs

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/gardener-extensions/registry-cache/kind/manifest"
)

// TestKeepShoot checks that the previous Shoot is applied again, even after a signal, and that a
// Shoot that cannot be applied again is reported.
func TestKeepShoot(t *testing.T) {
	const shoot = `{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "local", "namespace": "garden-local", "uid": "1"},
		"spec": {"purpose": "testing" HIBERNATION}, "status": {"hibernated": false}}`
	for name, test := range map[string]struct {
		answer  string
		applied bool
		said    string
	}{
		"a Shoot":    {strings.Replace(shoot, "HIBERNATION", "", 1), true, "Applying the previous Shoot again"},
		"no Shoot":   {"", false, "the Shoot of the last bug stays"},
		"hibernated": {strings.Replace(shoot, "HIBERNATION", `, "hibernation": {"enabled": true}`, 1), false, "the Shoot of the last bug stays"},
		"woken up":   {strings.Replace(shoot, "HIBERNATION", `, "hibernation": {"enabled": false}`, 1), true, "Applying the previous Shoot again"},
	} {
		t.Run(name, func(t *testing.T) {
			applied := false
			execute := func(ctx context.Context, args []string, out, _ io.Writer) int {
				if args[0] == "kubectl" {
					_, _ = io.WriteString(out, test.answer)
					return 0
				}
				content, err := os.ReadFile(args[len(args)-1])
				if err != nil || ctx.Err() != nil {
					t.Fatal(err, ctx.Err())
				}
				wanted, err := manifest.Read("it", bytes.NewReader(content))
				if err != nil || wanted.Shoot.Spec.Purpose == nil || *wanted.Shoot.Spec.Purpose != "testing" || bytes.Contains(content, []byte("uid")) {
					t.Errorf("%s: %v", content, err)
				}
				applied = true
				return 0
			}
			var said bytes.Buffer
			ctx, cancel := context.WithCancel(t.Context())
			restore, err := KeepShoot(ctx, execute, &said)
			if err != nil {
				t.Fatal(err)
			}
			cancel()
			if err := restore(ctx); err != nil || applied != test.applied || !strings.Contains(said.String(), test.said) {
				t.Errorf("%v, applied: %t, want %t; %s", err, applied, test.applied, &said)
			}
		})
	}
	if _, err := KeepShoot(t.Context(), (&console{refuse: "kubectl"}).execute, io.Discard); err == nil {
		t.Error("a testbed that cannot be asked has a Shoot that would be lost")
	}
}
