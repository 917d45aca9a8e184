package gardener

import (
	"bytes"
	"context"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"text/template"
	"time"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/gardener/gardener/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/gardener/gardener/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/gardener/gardener/pkg/apis/seedmanagement/v1alpha1"
	"github.com/gardener/gardener/pkg/client/kubernetes"
	"github.com/gardener/gardener/pkg/utils"
	"github.com/gardener/gardener/pkg/utils/flow"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gardener-extensions/registry-cache/internal/helmchart"
)

const (
	// GardenIdentity is the identity of the testbed's garden cluster.
	GardenIdentity = "testbed"
	// SeedRegistration is the ControllerRegistration that the seed itself needs (landscape.yaml).
	SeedRegistration = "testbed"
	// landscapeTimeout bounds how long kube-apiserver takes to serve Gardener's groups. It looks for
	// new APIServices every few seconds.
	landscapeTimeout = time.Minute

	apiServerName         = "gardener-apiserver"
	controllerManagerName = "gardener-controller-manager"
	schedulerName         = "gardener-scheduler"
	etcdSecretName        = "gardener-apiserver-etcd"
)

// ControlPlanePrograms are the names of the programs and images of Gardener's control plane. Their
// main packages are in CommandPackages.
var ControlPlanePrograms = []string{apiServerName, controllerManagerName, schedulerName}

// manifests contains templates of the manifests of Gardener's control plane.
//
//go:embed garden
var manifests embed.FS

// groups are the API groups of gardener-apiserver.
var groups = []schema.GroupVersion{
	{Group: gardencorev1beta1.GroupName, Version: "v1"}, gardencorev1beta1.SchemeGroupVersion,
	seedmanagementv1alpha1.SchemeGroupVersion, operationsv1alpha1.SchemeGroupVersion, securityv1alpha1.SchemeGroupVersion,
}

// ControlPlane is Gardener's control plane in the seed, which is also the garden cluster:
// gardener-apiserver, gardener-controller-manager, gardener-scheduler, and what an operator of
// Gardener creates (garden/landscape.yaml). gardener-apiserver stores its objects in the seed's
// etcd, below /registry-gardener.
//
// While gardener-apiserver does not answer, Kubernetes deletes no namespace of the seed.
type ControlPlane struct {
	Image func(program string) string // returns the reference of an image that is on the seed's node
	// KubernetesVersion is the only version of the cloud profile, for example 1.36.4.
	KubernetesVersion string
	// EtcdCA, EtcdCertificate and EtcdKey are for connections to the seed's etcd, in PEM.
	EtcdCA, EtcdCertificate, EtcdKey []byte
}

// Deploy creates or updates the control plane. It waits until its Deployments are available (two
// minutes each) and its API has accepted the landscape (one minute). The namespace garden must
// exist.
//
// Deploy writes the status of the Seed that gardenlet writes once. The conditions come from the
// running gardenlet.
func (p ControlPlane) Deploy(ctx context.Context, c client.Client) error {
	certificate := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: GardenNamespace, Name: apiServerName}}
	if err := ensureCertificate(ctx, c, certificate, apiServerName); err != nil {
		return err
	}
	etcd := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: GardenNamespace, Name: etcdSecretName},
		Data:       map[string][]byte{"ca.crt": p.EtcdCA, "client.crt": p.EtcdCertificate, "client.key": p.EtcdKey},
	}
	values, err := p.values(certificate)
	if err != nil {
		return err
	}
	manifest := func(name string) flow.TaskFn {
		return func(ctx context.Context) error { return applyManifest(ctx, c, name, values) }
	}
	available := func(name string) flow.TaskFn {
		return func(ctx context.Context) error {
			return WaitForDeployment(ctx, c, client.ObjectKey{Namespace: GardenNamespace, Name: name})
		}
	}
	return flow.Sequential(
		func(ctx context.Context) error { return apply(ctx, c, etcd) },
		manifest("apiserver"), available(apiServerName), manifest("apiservices"),
		func(ctx context.Context) error {
			return Poll(ctx, landscapeTimeout, "the garden does not accept the landscape", manifest("landscape"))
		},
		func(ctx context.Context) error { return reportSeed(ctx, c) },
		manifest("managers"), available(controllerManagerName), available(schedulerName),
	)(ctx)
}

// program is a program of the control plane that reads the file /config/<Name>.yaml.
type program struct {
	Name, Image string
	Port        int // of its health probes
}

func (p ControlPlane) values(certificate *corev1.Secret) (map[string]any, error) {
	files, err := fs.Sub(manifests, "garden/chart")
	if err != nil {
		return nil, err
	}
	chart, err := helmchart.Archive(files, "testbed")
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"APIServer": p.Image(apiServerName), "Identity": GardenIdentity, "Groups": groups,
		"CABundle":          base64.StdEncoding.EncodeToString(certificate.Data[corev1.TLSCertKey]),
		"Checksum":          utils.ComputeSHA256Hex(bytes.Join([][]byte{certificate.Data[corev1.TLSCertKey], p.EtcdCA, p.EtcdCertificate}, nil)),
		"KubernetesVersion": strings.TrimPrefix(p.KubernetesVersion, "v"), "Architecture": runtime.GOARCH,
		"EmptyChart": base64.StdEncoding.EncodeToString(chart), "Seed": SeedName,
		"Managers": []program{
			{controllerManagerName, p.Image(controllerManagerName), 2718}, {schedulerName, p.Image(schedulerName), 10251},
		},
	}, nil
}

// applyManifest applies the objects of garden/<name>.yaml in order.
func applyManifest(ctx context.Context, c client.Client, name string, values map[string]any) error {
	objects, err := readManifest(name, values)
	if err != nil {
		return fmt.Errorf("read garden/%s.yaml: %w", name, err)
	}
	if err := apply(ctx, c, objects...); err != nil {
		return fmt.Errorf("deploy Gardener's control plane: %w", err)
	}
	return nil
}

func readManifest(name string, values map[string]any) ([]client.Object, error) {
	text, err := template.New(name+".yaml").Option("missingkey=error").ParseFS(manifests, "garden/"+name+".yaml")
	if err != nil {
		return nil, err
	}
	var manifest bytes.Buffer
	if err := text.Execute(&manifest, values); err != nil {
		return nil, err
	}
	var objects []client.Object
	for reader := kubernetes.NewManifestReader(manifest.Bytes()); ; {
		object, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// reportSeed writes the status that gardenlet writes after it has prepared the seed.
func reportSeed(ctx context.Context, garden client.Client) error {
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: SeedName}}
	if err := garden.Get(ctx, client.ObjectKeyFromObject(seed), seed); err != nil {
		return fmt.Errorf("read seed %s: %w", seed.Name, err)
	}
	patch := client.MergeFrom(seed.DeepCopy())
	seed.Status.ClusterIdentity = ptr.To("kind-" + SeedName)
	seed.Status.Gardener = Identity()
	seed.Status.ObservedGeneration = seed.Generation
	seed.Status.LastOperation = &gardencorev1beta1.LastOperation{
		Type: gardencorev1beta1.LastOperationTypeReconcile, State: gardencorev1beta1.LastOperationStateSucceeded, Progress: 100,
		Description: "Seed cluster has been successfully reconciled.", LastUpdateTime: metav1.NewTime(time.Now().UTC()),
	}
	if err := garden.Status().Patch(ctx, seed, patch); err != nil {
		return fmt.Errorf("write the status of seed %s: %w", seed.Name, err)
	}
	return nil
}

// Identity returns how the testbed's gardenlet identifies itself in the garden.
func Identity() *gardencorev1beta1.Gardener {
	return &gardencorev1beta1.Gardener{ID: "testbed", Name: "gardenlet", Version: Version}
}
