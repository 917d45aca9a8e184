package status

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/kind/progress"
)

// Shoot is the output of `testbed shoot get`: the Shoot in its Cluster resource, its extension
// objects on the seed, and its nodes.
type Shoot struct {
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"` // the namespace on the seed
	Stage     gardenlet.Stage `json:"stage"`     // empty if it could not be read, see CheckStage
	// LastOperation is the last operation of gardenlet. It is nil for an absent Shoot.
	LastOperation *gardencorev1beta1.LastOperation `json:"lastOperation,omitempty"`
	// Rotation is the phase of the CA rotation. Empty if there was no rotation.
	Rotation gardencorev1beta1.CredentialsRotationPhase `json:"rotation,omitempty"`
	Purpose  string                                     `json:"purpose,omitempty"`
	// Hibernation is the value in the spec, Hibernated the value in the status.
	Hibernation            bool                    `json:"hibernation"`
	Hibernated             bool                    `json:"hibernated"`
	Extensions             []Extension             `json:"extensions"`
	OperatingSystemConfigs []OperatingSystemConfig `json:"operatingSystemConfigs"`
	Nodes                  []Node                  `json:"nodes"`
	Problems               []string                `json:"problems,omitempty"`
}

// shootUnits returns the systemd units that configure a node of the Shoot and pull images.
func shootUnits(reporter kind.Reporter) []string {
	units := []string{kind.GardenerNodeAgentUnit, kind.ContainerdUnit, kind.KubeletUnit}
	if reporter != nil {
		units = append(reporter.Units(), units...)
	}
	return units
}

// OfShoot reads the status of the Shoot. It attaches to the testbed if needed and takes no lock. It
// returns an error if there is no testbed. Problems lists the parts that do not answer.
func OfShoot(ctx context.Context, t *kind.Testbed) (*Shoot, error) {
	ctx, cancel := progress.Within(ctx, statusTimeout, "no status of the shoot")
	defer cancel()
	if t.Seed == nil || t.Shoot == nil {
		if err := t.Attach(ctx); err != nil {
			return nil, err
		}
	}
	status := NewShoot(nil, "")
	if err := status.addSeed(ctx, t); err != nil {
		status.Problems = append(status.Problems, seedProblem+firstLine(err))
	}
	var err error
	if status.Nodes, _, err = readNodes(ctx, t.Shoot, t.Extension.Reporter, shootUnits(t.Extension.Reporter)...); err != nil {
		status.Problems = append(status.Problems, "shoot: "+firstLine(err))
	}
	return status, nil
}

// NewShoot returns the status of a Shoot, which may be nil. The lists are never nil, because JSON
// shows a nil list as null.
func NewShoot(shoot *gardencorev1beta1.Shoot, stage gardenlet.Stage) *Shoot {
	status := &Shoot{
		Name: gardenlet.DefaultShoot, Namespace: gardenlet.Namespace(gardenlet.DefaultShoot), Stage: stage,
		Extensions: []Extension{}, OperatingSystemConfigs: []OperatingSystemConfig{}, Nodes: []Node{},
	}
	if shoot != nil {
		status.Purpose = string(ptr.Deref(shoot.Spec.Purpose, ""))
		status.Hibernation = shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
		status.Hibernated = shoot.Status.IsHibernated
		status.LastOperation = shoot.Status.LastOperation
		status.Rotation = v1beta1helper.GetShootCARotationPhase(shoot.Status.Credentials)
	}
	return status
}

func (s *Shoot) addSeed(ctx context.Context, t *kind.Testbed) error {
	clientSet, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return err
	}
	garden, err := gardener.OpenGarden(t.State.Garden())
	if err != nil {
		return err
	}
	shoot, stage, err := (&gardenlet.Gardenlet{Name: s.Name, Seed: clientSet, Garden: garden}).Find(ctx)
	if err != nil {
		return err
	}
	*s = *NewShoot(shoot, stage)

	extensions := &extensionsv1alpha1.ExtensionList{}
	if err := clientSet.Client().List(ctx, extensions, client.InNamespace(s.Namespace)); err != nil {
		return fmt.Errorf("list the extensions: %w", err)
	}
	for i := range extensions.Items {
		s.Extensions = append(s.Extensions, NewExtension(&extensions.Items[i], t.Extension.Reporter))
	}
	configs := &extensionsv1alpha1.OperatingSystemConfigList{}
	if err := clientSet.Client().List(ctx, configs, client.InNamespace(s.Namespace)); err != nil {
		return fmt.Errorf("list the operating system configs: %w", err)
	}
	for i := range configs.Items {
		s.OperatingSystemConfigs = append(s.OperatingSystemConfigs, NewConfig(&configs.Items[i], t.Extension.Reporter))
	}
	return nil
}

// seedProblem is the prefix of the Problems that occurred while the seed was read.
const seedProblem = "seed: "

// UnknownStageError is the environment error for a Shoot whose stage could not be read.
type UnknownStageError struct{ Problems []string }

func (e *UnknownStageError) Error() string {
	why := cmp.Or(strings.Join(e.Problems, "; "), "it is missing in the status")
	return "the stage of the shoot is unknown: " + why + " (`testbed status` shows which clusters answer, `testbed up` repairs them)"
}

// EnvironmentError marks the error for internal/program: exit code 3.
func (*UnknownStageError) EnvironmentError() {}

// CheckStage returns an *UnknownStageError if the stage could not be read. The stage of an absent
// Shoot is gardenlet.StageAbsent. If the stage is unknown, nothing was read from the seed: Rotation
// and the lists are empty.
func (s *Shoot) CheckStage() error {
	if s.Stage == "" {
		return &UnknownStageError{Problems: s.Problems}
	}
	return nil
}

// SeedProblems returns the Problems that occurred while the seed was read.
func (s *Shoot) SeedProblems() []string {
	return slices.DeleteFunc(slices.Clone(s.Problems), func(problem string) bool { return !strings.HasPrefix(problem, seedProblem) })
}

// Extension is one Extension of the Shoot.
type Extension struct {
	Type          string                           `json:"type"`
	Deleting      bool                             `json:"deleting,omitempty"`
	LastOperation *gardencorev1beta1.LastOperation `json:"lastOperation,omitempty"`
	LastError     *gardencorev1beta1.LastError     `json:"lastError,omitempty"`
	Conditions    []gardencorev1beta1.Condition    `json:"conditions,omitempty"`
	// ProviderStatus is what the extension wrote, and Report its rows for Write, or nil.
	ProviderStatus json.RawMessage `json:"providerStatus,omitempty"`
	Report         kind.Report     `json:"-"`
}

// NewExtension returns the status of an Extension. The reporter may be nil.
func NewExtension(extension *extensionsv1alpha1.Extension, reporter kind.Reporter) Extension {
	status := Extension{
		Type:           extension.Spec.Type,
		Deleting:       extension.DeletionTimestamp != nil,
		LastOperation:  extension.Status.LastOperation,
		LastError:      extension.Status.LastError,
		Conditions:     extension.Status.Conditions,
		ProviderStatus: ptr.Deref(extension.Status.ProviderStatus, runtime.RawExtension{}).Raw,
	}
	if reporter != nil && len(status.ProviderStatus) > 0 {
		status.Report = reporter.OfProvider(status.ProviderStatus)
	}
	return status
}

// OperatingSystemConfig is one OperatingSystemConfig of the Shoot.
type OperatingSystemConfig struct {
	Name          string                           `json:"name"`
	Purpose       string                           `json:"purpose"`
	Deleting      bool                             `json:"deleting,omitempty"`
	LastOperation *gardencorev1beta1.LastOperation `json:"lastOperation,omitempty"`
	LastError     *gardencorev1beta1.LastError     `json:"lastError,omitempty"`
	// Report is what the extension added to it, or nil. Its fields join those of the config.
	Report kind.Report `json:"-"`
}

// MarshalJSON implements json.Marshaler.
func (c OperatingSystemConfig) MarshalJSON() ([]byte, error) {
	type fields OperatingSystemConfig
	return join(fields(c), c.Report)
}

// NewConfig returns the status of an OperatingSystemConfig. The reporter may be nil.
func NewConfig(config *extensionsv1alpha1.OperatingSystemConfig, reporter kind.Reporter) OperatingSystemConfig {
	status := OperatingSystemConfig{
		Name:          config.Name,
		Purpose:       string(config.Spec.Purpose),
		Deleting:      config.DeletionTimestamp != nil,
		LastOperation: config.Status.LastOperation,
		LastError:     config.Status.LastError,
	}
	if reporter != nil {
		status.Report = reporter.OfConfig(config)
	}
	return status
}
