package v1alpha3

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
)

// State is the content of status.state of an Extension. When Gardener migrates a control plane, it
// copies status.state to the other seed, but not the providerStatus.
type State struct {
	// RegistryConfig contains the caches as they were last deployed, and new caches that are about to
	// be deployed. It is nil if there are none.
	*RegistryConfig `json:",inline"`
	// CleanUps is the number of clean-ups of the nodes so far, including one that is running.
	CleanUps int64 `json:"cleanUps,omitempty"`
	// Running are the identities of the deployed caches. A State of an early version contains none.
	Running Identities `json:"running,omitempty"`
	// TakenOver is the annotation gardener.cloud/timestamp of the reconciliation that took over the
	// caches of gardener-extension-registry-cache. A later change to the caches clears it.
	TakenOver string `json:"takenOver,omitempty"`
}

// DecodeState decodes status.state of an Extension and sets the defaults of its config. For nil it
// returns an empty State. As DecodeStatus does, it ignores unknown fields. The apiVersion of the
// config may be missing, but must not differ from SchemeGroupVersion.
func DecodeState(raw *runtime.RawExtension) (State, error) {
	var state State
	if raw == nil {
		return state, nil
	}
	if err := json.Unmarshal(raw.Raw, &state); err != nil {
		return State{}, fmt.Errorf("decode State: %w", err)
	}
	if state.RegistryConfig == nil {
		return state, nil
	}
	if written := state.APIVersion; written != "" && written != SchemeGroupVersion.String() {
		return State{}, fmt.Errorf("decode State: its apiVersion is %s, this version of the extension reads %s: "+
			"install the version that wrote it, or remove status.state by kubectl edit --subresource=status", written, SchemeGroupVersion)
	}
	SetDefaults(state.RegistryConfig)
	return state, nil
}
