package landscape

import (
	"fmt"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
	"github.com/gardener/gardener/imagevector"
	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/gardener/gardener/pkg/apis/extensions/v1alpha1"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/containerd"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/journald"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/kernelconfig"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/kubelet"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/rootcertificates"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/sshdensurer"
	"github.com/gardener/gardener/pkg/component/extensions/operatingsystemconfig/original/components/varlibkubeletmount"
	imagevectorutils "github.com/gardener/gardener/pkg/utils/imagevector"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The CA bundle of a shoot with a few private CAs has about 12 KiB.
const (
	certificateLine = "MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJ\n"
	caBundleLines   = 180
)

// OperatingSystemConfig returns that of the worker pool of the i-th shoot, as gardenlet writes it:
// its units and files come from gardenlet's own components, such as kubelet and its configuration.
func OperatingSystemConfig(i int) (*extensionsv1alpha1.OperatingSystemConfig, error) {
	units, files, err := node()
	if err != nil {
		return nil, fmt.Errorf("rendering the OperatingSystemConfig of shoot %d: %w", i, err)
	}
	return &extensionsv1alpha1.OperatingSystemConfig{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace(i), Name: "gardener-node-agent-" + poolName + "-original",
			Labels: map[string]string{v1beta1constants.LabelWorkerPool: poolName},
		},
		Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
			DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: "gardenlinux"},
			Purpose:     extensionsv1alpha1.OperatingSystemConfigPurposeReconcile,
			CRIConfig:   &extensionsv1alpha1.CRIConfig{Name: extensionsv1alpha1.CRINameContainerD},
			Units:       units,
			Files:       files,
		},
	}, nil
}

// node returns the units and files of a node, without gardener-node-agent and logging, which need
// more of a shoot.
func node() (units []extensionsv1alpha1.Unit, files []extensionsv1alpha1.File, err error) {
	for _, component := range []components.Component{
		varlibkubeletmount.New(), rootcertificates.New(), containerd.New(), journald.New(), kernelconfig.New(), kubelet.New(),
		sshdensurer.New(),
	} {
		u, f, err := component.Config(nodeContext())
		if err != nil {
			return nil, nil, fmt.Errorf("component %s: %w", component.Name(), err)
		}
		units, files = append(units, u...), append(files, f...)
	}
	return units, files, nil
}

func nodeContext() components.Context {
	image := &imagevectorutils.Image{Repository: ptr.To("registry.test/image"), Tag: ptr.To("v1")}
	return components.Context{
		Key:                    "bench",
		CABundle:               strings.Repeat(certificateLine, caBundleLines),
		KubeletCABundle:        []byte("bundle"),
		ClusterDNSAddresses:    []string{"10.64.0.10"},
		ClusterDomain:          "cluster.local",
		CRIName:                extensionsv1alpha1.CRINameContainerD,
		Images:                 map[string]*imagevectorutils.Image{imagevector.ContainerImageNameHyperkube: image},
		NodeMonitorGracePeriod: metav1.Duration{Duration: 40 * time.Second},
		KubernetesVersion:      semver.MustParse(kubernetesMinor + ".2"),
	}
}
