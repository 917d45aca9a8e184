package status

import (
	"strings"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
	"github.com/gardener-extensions/registry-cache/nodeconfig"
)

// setShoot takes over what the Cluster resource says; the shoot is nil if it is absent.
func (s *Shoot) SetShoot(shoot *gardencorev1beta1.Shoot, stage gardenlet.Stage) {
	s.Stage = stage
	if shoot == nil {
		return
	}
	s.Purpose = string(ptr.Deref(shoot.Spec.Purpose, ""))
	s.Hibernation = shoot.Spec.Hibernation != nil && ptr.Deref(shoot.Spec.Hibernation.Enabled, false)
	s.Hibernated = shoot.Status.IsHibernated
	s.LastOperation = operationOf(shoot.Status.LastOperation)
	s.Rotation = v1beta1helper.GetShootCARotationPhase(shoot.Status.Credentials)
}

func extensionStatusOf(extension *extensionsv1alpha1.Extension) Extension {
	status := Extension{
		Type:          extension.Spec.Type,
		Deleting:      extension.DeletionTimestamp != nil,
		LastOperation: operationOf(extension.Status.LastOperation),
		LastError:     errorOf(extension.Status.LastError),
	}
	for _, condition := range extension.Status.Conditions {
		status.Conditions = append(status.Conditions, Condition{
			Type: string(condition.Type), Status: string(condition.Status), Reason: condition.Reason, Message: condition.Message,
		})
	}
	if provider := extension.Status.ProviderStatus; provider != nil {
		status.ProviderStatus = provider.Raw
	}
	return status
}

func configStatusOf(config *extensionsv1alpha1.OperatingSystemConfig) OperatingSystemConfig {
	status := OperatingSystemConfig{
		Name:          config.Name,
		Purpose:       string(config.Spec.Purpose),
		Deleting:      config.DeletionTimestamp != nil,
		LastOperation: operationOf(config.Status.LastOperation),
		LastError:     errorOf(config.Status.LastError),
	}
	for _, unit := range config.Spec.Units {
		if unit.Name != nodeconfig.UnitName {
			continue
		}
		status.Configured = true
		registries, err := nodeconfig.ParseUnit(ptr.Deref(unit.Content, ""))
		if err != nil {
			status.Problem = FirstLine(err)
		}
		for _, registry := range registries {
			status.Registries = append(status.Registries, RegistryMapping{Upstream: registry.Upstream, Endpoint: registry.Endpoint})
		}
	}
	return status
}

func operationOf(last *gardencorev1beta1.LastOperation) *Operation {
	if last == nil {
		return nil
	}
	return &Operation{
		Type: string(last.Type), State: string(last.State), Progress: last.Progress, Description: last.Description,
		Time: last.LastUpdateTime.UTC(),
	}
}

func errorOf(last *gardencorev1beta1.LastError) *Error {
	if last == nil {
		return nil
	}
	status := &Error{Description: last.Description}
	for _, code := range last.Codes {
		status.Codes = append(status.Codes, string(code))
	}
	return status
}

// unitProperties are what `systemctl show` is asked for.
const unitProperties = "Id,LoadState,ActiveState,SubState,Result,NRestarts"

// parseUnits reads the output of `systemctl show`: one block of lines KEY=VALUE a unit, with an empty line between them.
func parseUnits(text string) []Unit {
	var units []Unit
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		var unit Unit
		fields := map[string]*string{
			"Id": &unit.Name, "LoadState": &unit.Load, "ActiveState": &unit.Active, "SubState": &unit.Sub,
			"Result": &unit.Result, "NRestarts": &unit.Restarts,
		}
		for line := range strings.SplitSeq(block, "\n") {
			key, value, _ := strings.Cut(line, "=")
			if field := fields[key]; field != nil {
				*field = strings.TrimSpace(value)
			}
		}
		if unit.Name != "" {
			units = append(units, unit)
		}
	}
	return units
}
