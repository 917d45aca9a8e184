package develop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	gardencorev1 "github.com/gardener/gardener/pkg/apis/core/v1"
	"github.com/gardener/gardener/pkg/chartrenderer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/kind"
	"github.com/gardener-extensions/registry-cache/kind/gardener"
)

// RenderExtension renders a ControllerDeployment into the objects that gardenlet would create on
// the seed, see gardener.Extension.Objects. It uses only the chart values of the
// ControllerDeployment, and the repository's chart. Input and output are YAML. The testbed must be
// attached and does not change. With a garden, RenderExtension fails: gardenlet would install a
// second copy.
func RenderExtension(ctx context.Context, t *kind.Testbed, in io.Reader, out io.Writer) error {
	if t.Config.Garden {
		return errors.New("this testbed has a garden: change the ControllerDeployment there, with `testbed kubectl garden`")
	}
	seed, err := gardener.NewSeedClient(t.Seed.RESTConfig())
	if err != nil {
		return fmt.Errorf("connect to the seed: %w", err)
	}
	return Render(ctx, t, seed.ChartRenderer(), in, out)
}

// Render is like RenderExtension, but takes the renderer of a seed. The testbed may be down.
func Render(ctx context.Context, t *kind.Testbed, renderer chartrenderer.Interface, in io.Reader, out io.Writer) error {
	values, err := valuesOf(in, t.Extension.Name)
	if err != nil {
		return err
	}
	extension, err := t.Extension.Installation(t.Extension.ChartOf(t.Root), values)
	if err != nil {
		return err
	}
	objects, err := extension.Objects(ctx, renderer)
	if err != nil {
		return err
	}
	var text bytes.Buffer // write all objects or nothing
	for _, object := range objects {
		document, err := yaml.Marshal(object.Object)
		if err != nil {
			return fmt.Errorf("encode %s %s: %w", object.GetKind(), object.GetName(), err)
		}
		fmt.Fprintf(&text, "---\n%s", document)
	}
	_, err = out.Write(text.Bytes())
	return err
}

// valuesOf reads the chart values of one ControllerDeployment. A misspelled field is an error.
func valuesOf(in io.Reader, name string) (map[string]any, error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(in))
	text, err := documents.Read()
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the ControllerDeployment: %w", err)
	}
	deployment := &gardencorev1.ControllerDeployment{}
	if err := yaml.UnmarshalStrict(text, deployment); err != nil {
		return nil, fmt.Errorf("read the ControllerDeployment: %w", err)
	}
	if deployment.Kind != "ControllerDeployment" || deployment.APIVersion != gardencorev1.SchemeGroupVersion.String() {
		return nil, fmt.Errorf("want a ControllerDeployment of %s, got kind %q of %q",
			gardencorev1.SchemeGroupVersion, deployment.Kind, deployment.APIVersion)
	}
	if deployment.Name != name {
		return nil, fmt.Errorf("metadata.name: want %q, got %q", name, deployment.Name)
	}
	if deployment.Helm == nil || deployment.Helm.Values == nil {
		return nil, errors.New("helm.values: required, they set the images")
	}
	if rest, err := documents.Read(); err == nil && len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("want one ControllerDeployment, got several documents")
	}
	values := map[string]any{}
	if err := json.Unmarshal(deployment.Helm.Values.Raw, &values); err != nil {
		return nil, fmt.Errorf("helm.values: %w", err)
	}
	return values, nil
}
