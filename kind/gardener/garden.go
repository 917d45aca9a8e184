package gardener

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/gardener-extensions/registry-cache/kind/file"
)

// SeedName is the name of the testbed's seed.
const SeedName = "local"

// NewGarden returns the testbed's garden cluster with the given objects.
//
// The garden is controller-runtime's fake client, without a gardener-apiserver: gardenlet's
// components read only a few objects from the garden. The client validates and defaults nothing, so
// pass complete objects. Unlike with OpenGarden, all objects are lost when the process ends.
func NewGarden(objects ...client.Object) client.Client { return newGardenBuilder(objects...).Build() }

func newGardenBuilder(objects ...client.Object) *fake.ClientBuilder {
	return fake.NewClientBuilder().
		WithScheme(kubernetes.GardenScheme).
		WithStatusSubresource(&gardencorev1beta1.ControllerInstallation{}).
		WithObjects(objects...)
}

// NewSeed returns the garden's Seed object for the testbed's seed, with kind's networks.
func NewSeed() *gardencorev1beta1.Seed {
	return &gardencorev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: SeedName},
		Spec: gardencorev1beta1.SeedSpec{
			Provider: gardencorev1beta1.SeedProvider{Type: "kind", Region: "local"},
			Networks: gardencorev1beta1.SeedNetworks{Pods: "10.244.0.0/16", Services: "10.96.0.0/16"},
			Settings: &gardencorev1beta1.SeedSettings{
				Scheduling:            &gardencorev1beta1.SeedSettingScheduling{Visible: true},
				VerticalPodAutoscaler: &gardencorev1beta1.SeedSettingVerticalPodAutoscaler{Enabled: true},
			},
		},
		Status: gardencorev1beta1.SeedStatus{ClusterIdentity: ptr.To("kind-" + SeedName)},
	}
}

// EnsureGardenNamespace creates GardenNamespace in the seed if it does not exist.
func EnsureGardenNamespace(ctx context.Context, seed client.Client) error {
	if err := apply(ctx, seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: GardenNamespace}}); err != nil {
		return fmt.Errorf("create the namespace %s of the seed: %w", GardenNamespace, err)
	}
	return nil
}

// NewSeedClient returns gardener's client set for a seed. Reads are not cached. NewSeedClient fails
// if the API server does not answer or Gardener does not support the version of the API server.
func NewSeedClient(config *rest.Config) (kubernetes.Interface, error) {
	return newClientSet("seed", config, kubernetes.SeedScheme)
}

// NewShootClient is like NewSeedClient, but with gardener's scheme for shoots.
func NewShootClient(config *rest.Config) (kubernetes.Interface, error) {
	return newClientSet("shoot", config, kubernetes.ShootScheme)
}

// NewGardenClient is like NewSeedClient, but with gardener's scheme for gardens.
func NewGardenClient(config *rest.Config) (client.Client, error) {
	set, err := newClientSet("garden", config, kubernetes.GardenScheme)
	if err != nil {
		return nil, err
	}
	return set.Client(), nil
}

func newClientSet(cluster string, config *rest.Config, scheme *runtime.Scheme) (kubernetes.Interface, error) {
	clientSet, err := kubernetes.NewWithConfig(kubernetes.WithRESTConfig(config),
		kubernetes.WithClientOptions(client.Options{Scheme: scheme}), kubernetes.WithDisabledCachedClient())
	if err != nil {
		return nil, fmt.Errorf("connect to the %s's API server %s: %w", cluster, config.Host, err)
	}
	return clientSet, nil
}

// OpenGarden is like NewGarden, but the garden outlives the process. Secrets, Shoots and
// ShootStates are stored in the file at path, which only its owner may read. Every write replaces
// the file before it returns, so a killed process loses nothing. The file may be missing, but not
// its directory. Only one process at a time may open the file.
func OpenGarden(path string, objects ...client.Object) (client.Client, error) {
	garden := &gardenFile{path: path}
	stored, err := garden.read()
	if err != nil {
		return nil, err
	}
	return newGardenBuilder(append(stored, objects...)...).WithInterceptorFuncs(garden.funcs()).Build(), nil
}

type gardenFile struct {
	path string
	mu   sync.Mutex
	last []byte
}

type content struct {
	Items []json.RawMessage `json:"items"`
}

func (g *gardenFile) read() ([]client.Object, error) {
	data, err := os.ReadFile(g.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var objects []client.Object
	if err == nil {
		objects, err = decodeGarden(data)
	}
	if err != nil {
		return nil, fmt.Errorf("read the garden: remove %s to continue without the stored Secrets and shoot states: %w", g.path, err)
	}
	g.last = data
	return objects, nil
}

func decodeGarden(data []byte) ([]client.Object, error) {
	var stored content
	if err := json.Unmarshal(data, &stored); err != nil {
		return nil, err
	}
	var objects []client.Object
	for i, item := range stored.Items {
		decoded, _, err := kubernetes.GardenCodec.UniversalDeserializer().Decode(item, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("items[%d]: %w", i, err)
		}
		object, ok := decoded.(client.Object)
		if !ok {
			return nil, fmt.Errorf("items[%d]: %T is not an API object", i, decoded)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func (g *gardenFile) save(ctx context.Context, garden client.Client) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	data, err := encodeGarden(ctx, garden)
	if err != nil || bytes.Equal(data, g.last) {
		return err
	}
	if err := file.Replace(g.path, data, 0o600); err != nil {
		return fmt.Errorf("save the garden: %w", err)
	}
	g.last = data
	return nil
}

func encodeGarden(ctx context.Context, garden client.Client) ([]byte, error) {
	codec := kubernetes.GardenCodec.LegacyCodec(corev1.SchemeGroupVersion, gardencorev1beta1.SchemeGroupVersion)
	var stored content
	// Store only objects that cannot be recreated.
	for _, list := range []client.ObjectList{&gardencorev1beta1.ShootList{}, &gardencorev1beta1.ShootStateList{}, &corev1.SecretList{}} {
		if err := garden.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list the objects of the garden: %w", err)
		}
		err := meta.EachListItem(list, func(object runtime.Object) error {
			encoded, err := runtime.Encode(codec, object)
			stored.Items = append(stored.Items, encoded)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("encode the objects of the garden: %w", err)
		}
	}
	return json.Marshal(stored)
}

func (g *gardenFile) funcs() interceptor.Funcs {
	saved := func(ctx context.Context, garden client.Client, err error) error {
		if err != nil {
			return err
		}
		return g.save(ctx, garden)
	}
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			return saved(ctx, c, c.Create(ctx, object, options...))
		},
		Update: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.UpdateOption) error {
			return saved(ctx, c, c.Update(ctx, object, options...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return saved(ctx, c, c.Patch(ctx, object, patch, options...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			return saved(ctx, c, c.Delete(ctx, object, options...))
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteAllOfOption) error {
			return saved(ctx, c, c.DeleteAllOf(ctx, object, options...))
		},
	}
}
