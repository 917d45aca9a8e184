package kind

import "github.com/gardener-extensions/registry-cache/api/v1alpha3"

// ModulePath is the import path of the repository's root.
const ModulePath = "github.com/gardener-extensions/registry-cache"

// Names of what the testbed installs.
const (
	// ExtensionName is the name of the extension's ControllerInstallation and chart.
	ExtensionName = v1alpha3.ExtensionType
	// ExtensionNamespace is the namespace of the extension on the seed. The audit log of the seed
	// records the requests of its service accounts.
	ExtensionNamespace = "extension-" + ExtensionName
	// AdmissionNamespace is the namespace of the admission on the seed. The audit log of the seed
	// records the requests of its service account.
	AdmissionNamespace = ImageAdmission
)

// Names of the images that are built from this repository.
const (
	ImageCache           = "registry-cache"
	ImageExtension       = "registry-cache-extension"
	ImageAdmission       = "registry-cache-admission"
	ImageOSExtension     = "gardener-extension-os-kind"
	ImageResourceManager = "gardener-resource-manager"
	ImageNodeAgent       = "gardener-node-agent"
)

// systemd units on every node.
const (
	ContainerdUnit        = "containerd.service"
	KubeletUnit           = "kubelet.service"
	GardenerNodeAgentUnit = "gardener-node-agent.service"
)

// ShippedImages returns the names of the images that ship and run in every testbed.
func ShippedImages() []string { return []string{ImageExtension, ImageCache} }
