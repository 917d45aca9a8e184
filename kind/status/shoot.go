package status

import (
	"encoding/json"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"

	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// ShootStatus is what `testbed shoot get` shows: the shoot as its Cluster resource has it, what the seed has of its extensions,
// and its nodes. What could not be read has a Problem instead of a value.
type Shoot struct {
	Name string `json:"name"`
	// Namespace is the shoot's namespace of the seed.
	Namespace string `json:"namespace"`
	// Stage is empty where it could not be read, see CheckStage.
	Stage gardenlet.Stage `json:"stage"`
	// LastOperation is gardenlet's; nil for a shoot that is absent.
	LastOperation *Operation `json:"lastOperation,omitempty"`
	// Rotation is the phase of the rotation of the certificate authorities; empty if there never was one.
	Rotation gardencorev1beta1.CredentialsRotationPhase `json:"rotation,omitempty"`
	Purpose  string                                     `json:"purpose,omitempty"`
	// Hibernation is what the spec asks for, Hibernated what the status says.
	Hibernation            bool                    `json:"hibernation"`
	Hibernated             bool                    `json:"hibernated"`
	Extensions             []Extension             `json:"extensions"`
	OperatingSystemConfigs []OperatingSystemConfig `json:"operatingSystemConfigs"`
	Nodes                  []ShootNode             `json:"nodes"`
	Problems               []string                `json:"problems,omitempty"`
}

// OperationStatus is the last operation of a shoot or of an extension object.
type Operation struct {
	Type        string    `json:"type"`
	State       string    `json:"state"`
	Progress    int32     `json:"progress"`
	Description string    `json:"description,omitempty"`
	Time        time.Time `json:"time"`
}

// ErrorStatus is the last error of an extension object.
type Error struct {
	Description string   `json:"description"`
	Codes       []string `json:"codes,omitempty"`
}

// ConditionStatus is a condition of an extension object.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// ExtensionStatus is one Extension resource of the shoot.
type Extension struct {
	Type          string      `json:"type"`
	Deleting      bool        `json:"deleting,omitempty"`
	LastOperation *Operation  `json:"lastOperation,omitempty"`
	LastError     *Error      `json:"lastError,omitempty"`
	Conditions    []Condition `json:"conditions,omitempty"`
	// ProviderStatus is as the extension has written it; of the registry-cache it is a RegistryStatus.
	ProviderStatus json.RawMessage `json:"providerStatus,omitempty"`
}

// OperatingSystemConfigStatus is one OperatingSystemConfig of the shoot.
type OperatingSystemConfig struct {
	Name          string     `json:"name"`
	Purpose       string     `json:"purpose"`
	Deleting      bool       `json:"deleting,omitempty"`
	LastOperation *Operation `json:"lastOperation,omitempty"`
	LastError     *Error     `json:"lastError,omitempty"`
	// Configured says that it holds the unit of the extension, Registries what the unit configures.
	Configured bool              `json:"configured"`
	Registries []RegistryMapping `json:"registries,omitempty"`
	// Problem says why the unit cannot be read.
	Problem string `json:"problem,omitempty"`
}

// RegistryMapping is one upstream of the extension's unit.
type RegistryMapping struct {
	Upstream string `json:"upstream"`
	Endpoint string `json:"endpoint"`
}

// ShootNodeStatus is one node of the shoot.
type ShootNode struct {
	Name string `json:"name"`
	// Registered says that the API server has a Node object for it, Ready what its kubelet reports.
	Registered bool `json:"registered"`
	Ready      bool `json:"ready"`
	// Units are the systemd units between the API server and a pull.
	Units []Unit `json:"units,omitempty"`
	// Mirrors are the effective hosts.toml files, ordered by upstream.
	Mirrors []Mirror `json:"mirrors,omitempty"`
	Problem string   `json:"problem,omitempty"`
}

// UnitStatus is what systemd says about a unit, in its words.
type Unit struct {
	Name string `json:"name"`
	// Load is "not-found" for a unit that is not there.
	Load     string `json:"load"`
	Active   string `json:"active"`
	Sub      string `json:"sub"`
	Result   string `json:"result,omitempty"`
	Restarts string `json:"restarts,omitempty"`
}
