package gardener

// Version is the Gardener release whose binaries and components the testbed runs. It equals the
// version of github.com/gardener/gardener in go.mod (checked by a test).
const Version = "v1.150.0"

// Main packages that are built for the testbed.
const (
	// CommandPackages is the folder with the main packages of Gardener's components.
	CommandPackages        = "github.com/gardener/gardener/cmd/"
	ResourceManagerPackage = CommandPackages + "gardener-resource-manager"
	NodeAgentPackage       = CommandPackages + "gardener-node-agent"
	OSExtensionPackage     = "github.com/gardener-extensions/registry-cache/kind/osextension/gardener-extension-os-kind"
)

// Ldflags are the linker flags for these binaries and for gardenlet. They set the version:
// gardener-node-agent looks for a configuration file whose name contains its version, and gardenlet
// repeats the failed operation of another version.
const Ldflags = "-X k8s.io/component-base/version.gitVersion=" + Version

// Names of installed objects.
const (
	// GardenNamespace is the seed's namespace for components that serve the seed itself.
	GardenNamespace = "garden"
	FieldManager    = "registry-cache-testbed" // owns the fields that this package applies
)
