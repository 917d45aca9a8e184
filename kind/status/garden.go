package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	v1beta1helper "github.com/gardener/gardener/pkg/api/core/v1beta1/helper"
	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/utils/kubernetes/health"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/kind/cluster"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
	"github.com/gardener-extensions/registry-cache/kind/gardenlet"
)

// Garden is what a real garden reports.
type Garden struct {
	Renewed  time.Time     `json:"renewed,omitzero"`   // when the permanent gardenlet last renewed its lease
	Problems []string      `json:"problems,omitempty"` // of APIServices, gardenlet and ControllerInstallations
	Shoots   []GardenShoot `json:"shoots,omitempty"`
	Problem  string        `json:"problem,omitempty"` // why the rest is missing
}

// GardenShoot is a Shoot in the garden. Problems are its last errors, and the messages of the
// conditions that are not true.
type GardenShoot struct {
	Name          string   `json:"name"`
	LastOperation string   `json:"lastOperation,omitempty"`
	Problems      []string `json:"problems,omitempty"`
}

// read asks Gardener's API in the seed, which is nil if it does not answer.
func (g *Garden) read(ctx context.Context, seed *cluster.Cluster) error {
	if seed == nil {
		return errors.New("the seed does not answer")
	}
	garden, err := gardener.NewGardenClient(seed.RESTConfig())
	if err != nil {
		return err
	}
	return g.readFrom(ctx, garden.Client())
}

func (g *Garden) readFrom(ctx context.Context, garden client.Reader) (err error) {
	services := &apiregistrationv1.APIServiceList{}
	if err := garden.List(ctx, services); err != nil {
		return fmt.Errorf("list the APIServices: %w", err)
	}
	for _, service := range services.Items {
		if err := health.CheckAPIService(&service); err != nil {
			g.Problems = append(g.Problems, fmt.Sprintf("APIService %s: %v", service.Name, err))
		}
	}
	if g.Renewed, err = gardenlet.Renewed(ctx, garden); err != nil {
		return err
	}
	if err := gardenlet.Running(ctx, garden); err != nil {
		g.Problems = append(g.Problems, err.Error())
	}
	installations := &gardencorev1beta1.ControllerInstallationList{}
	if err := garden.List(ctx, installations); err != nil {
		return fmt.Errorf("list the ControllerInstallations: %w", err)
	}
	for _, installation := range installations.Items {
		for _, wanted := range []gardencorev1beta1.ConditionType{
			gardencorev1beta1.ControllerInstallationValid, gardencorev1beta1.ControllerInstallationInstalled, gardencorev1beta1.ControllerInstallationHealthy,
		} {
			condition := ptr.Deref(v1beta1helper.GetCondition(installation.Status.Conditions, wanted), gardencorev1beta1.Condition{Message: "not reported"})
			if condition.Status != gardencorev1beta1.ConditionTrue {
				g.Problems = append(g.Problems, fmt.Sprintf("ControllerInstallation %s is not %s: %s", installation.Name, wanted, condition.Message))
			}
		}
	}
	shoots := &gardencorev1beta1.ShootList{}
	if err := garden.List(ctx, shoots); err != nil {
		return fmt.Errorf("list the shoots of the garden: %w", err)
	}
	for _, shoot := range shoots.Items {
		g.Shoots = append(g.Shoots, gardenShoot(&shoot))
	}
	return nil
}

func gardenShoot(shoot *gardencorev1beta1.Shoot) GardenShoot {
	status := GardenShoot{Name: shoot.Name}
	if last := shoot.Status.LastOperation; last != nil {
		status.LastOperation = fmt.Sprintf("%s %s %d %%", last.Type, last.State, last.Progress)
	}
	for _, last := range shoot.Status.LastErrors {
		status.Problems = append(status.Problems, last.Description)
	}
	for _, condition := range shoot.Status.Conditions {
		if condition.Status != gardencorev1beta1.ConditionTrue {
			status.Problems = append(status.Problems, fmt.Sprintf("%s %s: %s", condition.Type, condition.Status, condition.Message))
		}
	}
	return status
}

func (s *Testbed) writeGarden(w io.Writer) {
	if s.Garden == nil {
		return
	}
	fmt.Fprintf(w, "GARDEN\t%s\n", cmp.Or(s.Garden.Problem, fmt.Sprintf("gardenlet renewed its lease %s ago", time.Since(s.Garden.Renewed).Round(time.Second))))
	for _, problem := range s.Garden.Problems {
		fmt.Fprintf(w, "  %s %s\n", Mark(false), problem)
	}
	for _, shoot := range s.Garden.Shoots {
		fmt.Fprintf(w, "  %s %s\t%s\n", Mark(len(shoot.Problems) == 0), shoot.Name, cmp.Or(shoot.LastOperation, "no operation yet"))
		for _, problem := range shoot.Problems {
			fmt.Fprintf(w, "      %s\n", problem)
		}
	}
}
