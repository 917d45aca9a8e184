package v1alpha3

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// State is what status.state of an Extension holds. Unlike the providerStatus, it moves along when
// the control plane is migrated to another seed.
type State struct {
	// RegistryConfig is the config that the caches were last deployed with, nil if there was none.
	*RegistryConfig `json:",inline"`
	// CleanUps counts the clean-ups of the nodes that have started.
	CleanUps int64 `json:"cleanUps,omitempty"`
}

// DecodeState decodes status.state of an Extension and sets the defaults of its config. For nil it
// returns an empty State. It ignores unknown fields, for the same reason as DecodeStatus.
func DecodeState(raw *runtime.RawExtension) (State, error) {
	var state State
	if raw == nil {
		return state, nil
	}
	if err := json.Unmarshal(raw.Raw, &state); err != nil {
		return State{}, fmt.Errorf("cannot decode State: %w", err)
	}
	if state.RegistryConfig != nil {
		SetDefaults(state.RegistryConfig)
	}
	return state, nil
}
