package gardener

// Version is the release of Gardener whose binaries and components the testbed runs. It equals the version of
// github.com/gardener/gardener in go.mod (a test says so).
const Version = "v1.147.1"

// What has to be built for the testbed, as Go packages.
const (
	// ResourceManagerPackage is the main package of gardener-resource-manager.
	ResourceManagerPackage = "github.com/gardener/gardener/cmd/gardener-resource-manager"
	// NodeAgentPackage is the main package of gardener-node-agent.
	NodeAgentPackage = "github.com/gardener/gardener/cmd/gardener-node-agent"
	// OSExtensionPackage is the main package of the testbed's operating system extension.
	OSExtensionPackage = "github.com/gardener-extensions/registry-cache/kind/osextension/gardener-extension-os-kind"
)

// Ldflags are the linker flags that the binaries above need: gardener-node-agent looks for a configuration file whose
// name contains the version that is linked into it.
const Ldflags = "-X k8s.io/component-base/version.gitVersion=" + Version

// Names of the objects that are installed.
const (
	// GardenNamespace is the namespace of the seed that holds what serves the seed itself.
	GardenNamespace = "garden"
	// FieldManager owns the fields that this package applies.
	FieldManager = "registry-cache-testbed"
)
