package bundle

import (
	"encoding/json"
	"io/fs"
	"net/netip"
	"path"
	"slices"
	"strings"

	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	resourcesv1alpha1 "github.com/gardener/gardener/pkg/apis/resources/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/yaml"

	"github.com/gardener-extensions/registry-cache/api/v1alpha3"
	"github.com/gardener-extensions/registry-cache/kind/upstream/accesslog"
)

// ShootNamespace is the namespace, in the seed, of the testbed's first Shoot.
const ShootNamespace = "shoot--local--local"

// Cluster contains the collected objects of the seed or of the shoot. Known is false if they
// include neither Nodes nor Services: then nothing was collected from that cluster.
type Cluster struct {
	Folder string
	Known  bool

	Nodes                  []corev1.Node
	Pods                   []corev1.Pod
	Services               []corev1.Service
	PersistentVolumeClaims []corev1.PersistentVolumeClaim
	EndpointSlices         []discoveryv1.EndpointSlice
	StatefulSets           []appsv1.StatefulSet
	Deployments            []appsv1.Deployment

	Extensions             []extensionsv1alpha1.Extension
	OperatingSystemConfigs []extensionsv1alpha1.OperatingSystemConfig
	ManagedResources       []resourcesv1alpha1.ManagedResource
	MutatingWebhooks       []admissionregistrationv1.MutatingWebhookConfiguration
	Clusters               []extensionsv1alpha1.Cluster
}

// ObjectsFile returns the path of the file with all objects of a resource.
func (c Cluster) ObjectsFile(resource string) string {
	return path.Join(c.Folder, "objects", resource+".yaml")
}

func readCluster(files fs.FS, folder string) Cluster {
	c := Cluster{Folder: folder}
	c.Nodes = objects[corev1.Node](files, c.ObjectsFile("nodes"))
	c.Pods = objects[corev1.Pod](files, c.ObjectsFile("pods"))
	c.Services = objects[corev1.Service](files, c.ObjectsFile("services"))
	c.PersistentVolumeClaims = objects[corev1.PersistentVolumeClaim](files, c.ObjectsFile("persistentvolumeclaims"))
	c.EndpointSlices = objects[discoveryv1.EndpointSlice](files, c.ObjectsFile("endpointslices"))
	c.StatefulSets = objects[appsv1.StatefulSet](files, c.ObjectsFile("statefulsets"))
	c.Deployments = objects[appsv1.Deployment](files, c.ObjectsFile("deployments"))
	c.Extensions = objects[extensionsv1alpha1.Extension](files, c.ObjectsFile("extensions"))
	c.OperatingSystemConfigs = objects[extensionsv1alpha1.OperatingSystemConfig](files, c.ObjectsFile("operatingsystemconfigs"))
	c.ManagedResources = objects[resourcesv1alpha1.ManagedResource](files, c.ObjectsFile("managedresources"))
	c.MutatingWebhooks = objects[admissionregistrationv1.MutatingWebhookConfiguration](files, c.ObjectsFile("mutatingwebhookconfigurations"))
	c.Clusters = objects[extensionsv1alpha1.Cluster](files, c.ObjectsFile("clusters"))
	c.Known = len(c.Nodes)+len(c.Services) > 0
	return c
}

// objects reads a file of YAML documents. It skips documents that cannot be parsed.
func objects[T any](files fs.FS, name string) (all []T) {
	for document := range strings.SplitSeq("\n"+text(files, name), "\n---\n") {
		var object T
		if strings.TrimSpace(document) != "" && yaml.Unmarshal([]byte(document), &object) == nil {
			all = append(all, object)
		}
	}
	return all
}

// CacheServices returns the Services of caches: Services with an upstream label and annotation.
func (c Cluster) CacheServices() []corev1.Service {
	return slices.DeleteFunc(slices.Clone(c.Services), func(s corev1.Service) bool {
		return s.Labels[v1alpha3.LabelUpstreamHost] == "" || s.Annotations[v1alpha3.AnnotationUpstream] == ""
	})
}

// CacheService returns the Service of the cache of an upstream.
func (c Cluster) CacheService(upstream string) (corev1.Service, bool) {
	return find(c.CacheServices(), func(s corev1.Service) bool { return s.Annotations[v1alpha3.AnnotationUpstream] == upstream })
}

// Hibernated reports whether the first Shoot is hibernated, or its spec wants that.
func (b *Bundle) Hibernated() bool {
	for _, cluster := range b.Seed.Clusters {
		var shoot struct {
			Spec   struct{ Hibernation struct{ Enabled bool } }
			Status struct{ Hibernated bool }
		}
		if cluster.Name == ShootNamespace && json.Unmarshal(cluster.Spec.Shoot.Raw, &shoot) == nil {
			return shoot.Spec.Hibernation.Enabled || shoot.Status.Hibernated
		}
	}
	return false
}

// Cached is an upstream and the endpoint of its cache.
type Cached struct{ Upstream, Endpoint string }

// Cached returns the caches in the status of the first Shoot's Extension.
func (b *Bundle) Cached() []Cached {
	for _, extension := range b.Seed.Extensions {
		if extension.Namespace != ShootNamespace || extension.Spec.Type != v1alpha3.ExtensionType {
			continue
		}
		var status struct{ Caches []Cached }
		if extension.Status.ProviderStatus == nil || json.Unmarshal(extension.Status.ProviderStatus.Raw, &status) != nil {
			return nil
		}
		return status.Caches
	}
	return nil
}

// Files in the folder of an upstream.
const (
	AccessFile = "access.jsonl"
	StateFile  = "state.txt"
)

// Unreadable is the beginning of StateFile if the output of the container cannot be read. The error
// follows it.
const Unreadable = "output not readable: "

// Upstream is one upstream registry.
type Upstream struct {
	Host string
	// State is the status of its container, as the engine prints it; "" if it is unknown.
	State string
	// Records are the requests, sorted by the end of their responses. Damaged lines are skipped.
	Records accesslog.Records
}

// File returns the path of a file of the upstream in the bundle.
func (u Upstream) File(name string) string { return path.Join(UpstreamFolder, u.Host, name) }

// Running reports whether the upstream's container runs. It returns true if the state is unknown.
func (u Upstream) Running() bool { return u.State == "" || strings.HasPrefix(u.State, "Up ") }

func readUpstream(files fs.FS, host string) Upstream {
	u := Upstream{Host: host}
	u.State = text(files, u.File(StateFile))
	u.Records = Parse(files, u.File(AccessFile), func(line string) (record accesslog.Record, ok bool) {
		err := json.Unmarshal([]byte(line), &record)
		return record, err == nil && record.Path != accesslog.SettlePath
	})
	return u
}

// NodeAt returns the short name of the node that has the address (a port is ignored), or "".
// Requests of a node's containerd and, due to NAT, of its pods come from the node's addresses.
func (b *Bundle) NodeAt(address string) string {
	address = WithoutPort(address)
	for _, node := range slices.Concat(b.Shoot.Nodes, b.Seed.Nodes) {
		if slices.Contains(Addresses(node), address) {
			return b.ShortName(node.Name)
		}
	}
	return ""
}

// WithoutPort removes the port of an IP address, if it has one.
func WithoutPort(address string) string {
	if with, err := netip.ParseAddrPort(address); err == nil {
		return with.Addr().Unmap().String()
	}
	return address
}

// Addresses returns the source addresses of a node's requests: the node's addresses and, for
// requests to its own pods, the first address of the pod CIDR.
func Addresses(node corev1.Node) (all []string) {
	for _, own := range node.Status.Addresses {
		all = append(all, own.Address)
	}
	for _, podCIDR := range node.Spec.PodCIDRs {
		if network, err := netip.ParsePrefix(podCIDR); err == nil {
			all = append(all, network.Addr().Next().String())
		}
	}
	return all
}
