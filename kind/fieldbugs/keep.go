package fieldbugs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// restoreTimeout bounds the reconciliation of the previous Shoot.
const restoreTimeout = 3 * time.Minute

// KeepShoot reads the Shoot from the seed. The function restore applies the Shoot again, even after
// a signal, but not its Secrets, which stay in the garden. If there is no Shoot, or if it is
// hibernated, restore does nothing, and KeepShoot prints that the Shoot of the last bug stays.
func KeepShoot(ctx context.Context, execute Execute, prose io.Writer) (restore func(context.Context) error, err error) {
	rig := &Rig{execute: execute, transcript: io.Discard, result: &Result{}}
	text, err := rig.run(ctx, []string{"kubectl", "seed", "get", "cluster", "shoot--local--local", "--ignore-not-found", "--output=jsonpath={.spec.shoot}"})
	if err != nil {
		return nil, fmt.Errorf("read the Shoot, to apply it again afterwards: %w", err)
	}
	shoot, hibernated, err := withoutStatus(text)
	if err != nil {
		return nil, err
	}
	if shoot == nil || hibernated {
		fmt.Fprintln(prose, "There is no Shoot, or it is hibernated: the Shoot of the last bug stays.")
		return func(context.Context) error { return nil }, nil
	}
	return func(ctx context.Context) error {
		ctx, cancel := progress.Within(context.WithoutCancel(ctx), restoreTimeout, "not applied")
		defer cancel()
		fmt.Fprintln(prose, "Applying the previous Shoot again.")
		if err := rig.applyText(ctx, shoot); err != nil {
			return fmt.Errorf("apply the previous Shoot again: %w", err)
		}
		return nil
	}, nil
}

// withoutStatus returns the Shoot with only its name, namespace and spec, and whether the spec
// hibernates it. For an empty text, shoot is nil.
func withoutStatus(text string) (shoot []byte, hibernated bool, err error) {
	if text == "" {
		return nil, false, nil
	}
	var object struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       map[string]any `json:"spec"`
	}
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return nil, false, fmt.Errorf("the Shoot in the seed: %w", err)
	}
	if hibernation, ok := object.Spec["hibernation"].(map[string]any); ok {
		hibernated, _ = hibernation["enabled"].(bool)
	}
	object.Metadata = map[string]any{"name": object.Metadata["name"], "namespace": object.Metadata["namespace"]}
	shoot, err = json.Marshal(object)
	return shoot, hibernated, err
}

func (r *Rig) applyText(ctx context.Context, manifest []byte) (err error) {
	folder, err := os.MkdirTemp("", "shoot-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "shoot.json")
	if err := os.WriteFile(file, manifest, 0o600); err != nil {
		return err
	}
	_, err = r.run(ctx, []string{"shoot", "apply", "-f", file})
	return err
}
