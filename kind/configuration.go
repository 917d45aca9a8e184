package kind

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/utils/validation/kubernetesversion"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/kind/configuration"
	"github.com/gardener-extensions/registry-cache/kind/file"
	"github.com/gardener-extensions/registry-cache/kind/image"
)

// configure sets Config to the configuration in the options, else to the last Up's configuration,
// else to the default. It sets NodeImage and Garden in Config, and sets Extension if Config
// describes one. If Config selects a version of Kubernetes, the process no longer checks whether
// Gardener supports it.
func (t *Testbed) configure(options Options) {
	t.Config = options.Configuration
	if t.Config == nil {
		t.Config, t.unreadable = configuration.Load(t.State.Configuration())
		if errors.Is(t.unreadable, fs.ErrNotExist) {
			t.unreadable = nil
		}
	}
	if t.Config == nil {
		t.Config = configuration.Default()
	}
	if t.Config.Extension != nil {
		t.Extension = describedBy(t.Config.Extension)
	}
	if options.NodeImage != "" && options.NodeImage != t.Config.NodeImage {
		t.Config = t.Config.WithNodeImage(options.NodeImage)
	}
	if options.Garden != nil && *options.Garden != t.Config.Garden {
		changed := *t.Config
		changed.Garden = *options.Garden
		t.Config = &changed
		if err := configuration.Validate(&changed).ToAggregate(); err != nil {
			t.unreadable = errors.Join(t.unreadable, usageError(err.Error()))
		}
	}
	if t.Config.Shoot.KubernetesVersion != "" { // perhaps one that Gardener's clients refuse
		_ = os.Setenv(kubernetesversion.EnvExperimentalDisableKubernetesVersionCheck, "true")
	}
}

// describedBy returns the extension that c describes. Its files are read only when they are used.
func describedBy(c *configuration.Extension) Extension {
	e := Extension{Name: c.Name, Chart: os.DirFS(c.Chart), Webhooks: c.Webhooks}
	for _, built := range c.Images {
		e.Images = append(e.Images, ExtensionImage{Binary: image.Binary{Name: built.Name, Package: built.Package}, OnSeed: true})
	}
	e.Registration = func() (*gardencorev1beta1.ControllerRegistration, error) {
		registration := &gardencorev1beta1.ControllerRegistration{}
		text, err := os.ReadFile(c.Registration)
		if err == nil {
			err = yaml.UnmarshalStrict(text, registration)
		}
		if err != nil {
			return nil, fmt.Errorf("extension.registration: %w", err)
		}
		return registration, nil
	}
	e.Values = func(images image.Set) map[string]any {
		values := runtime.DeepCopyJSON(c.Values)
		if values == nil {
			values = map[string]any{}
		}
		for _, built := range c.Images {
			// This fails if a value on the path is not a map. The chart then fails as well.
			_ = unstructured.SetNestedField(values, images[built.Name].Ref, strings.Split(built.Value, ".")...)
		}
		return values
	}
	return e
}

// StoreConfiguration stores Config for later commands. It creates the state folder.
func (t *Testbed) StoreConfiguration() error {
	data, err := t.Config.Encode()
	if err == nil {
		err = os.MkdirAll(string(t.State), 0o755)
	}
	if err == nil {
		err = file.Replace(t.State.Configuration(), data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("store the configuration: %w", err)
	}
	return nil
}

// ConfigurationError returns why the configuration of the last Up cannot be read, or Options.Garden
// does not fit it, or nil.
func (t *Testbed) ConfigurationError() error {
	if t.unreadable == nil {
		return nil
	}
	return fmt.Errorf("read the configuration of the existing testbed (replace it with `testbed up -f FILE`): %w", t.unreadable)
}

func (t *Testbed) ipFamilies() []gardencorev1beta1.IPFamily {
	both := []gardencorev1beta1.IPFamily{gardencorev1beta1.IPFamilyIPv4, gardencorev1beta1.IPFamilyIPv6}
	switch t.Config.Shoot.IPFamily {
	case configuration.IPv6:
		return both[1:]
	case configuration.DualStack:
		return both
	default:
		return both[:1]
	}
}
