package landscape

import (
	"fmt"

	gardencorev1beta1 "github.com/gardener/gardener/pkg/apis/core/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// The CloudProfile of a large provider has hundreds of machine types and dozens of image versions.
// It is the largest part of every Cluster: about 60 KiB here.
const (
	machineTypes  = 350
	imageVersions = 40
)

func cloudProfile() *gardencorev1beta1.CloudProfile {
	profile := &gardencorev1beta1.CloudProfile{TypeMeta: typeMeta("CloudProfile"), ObjectMeta: metav1.ObjectMeta{Name: "bench"}}
	for i := range machineTypes {
		profile.Spec.MachineTypes = append(profile.Spec.MachineTypes, machineType(i))
	}
	image := gardencorev1beta1.MachineImage{Name: "gardenlinux"}
	for i := range imageVersions {
		image.Versions = append(image.Versions, gardencorev1beta1.MachineImageVersion{
			ExpirableVersion: gardencorev1beta1.ExpirableVersion{
				Version: fmt.Sprintf("1877.%d.0", i),
			},
			CRI:           []gardencorev1beta1.CRI{{Name: gardencorev1beta1.CRINameContainerD}},
			Architectures: []string{"amd64", "arm64"},
		})
	}
	profile.Spec.MachineImages = []gardencorev1beta1.MachineImage{image}
	for i := range 20 {
		profile.Spec.Regions = append(profile.Spec.Regions, gardencorev1beta1.Region{
			Name:  fmt.Sprintf("region-%d", i),
			Zones: []gardencorev1beta1.AvailabilityZone{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		})
	}
	return profile
}

func machineType(i int) gardencorev1beta1.MachineType {
	return gardencorev1beta1.MachineType{
		Name: fmt.Sprintf("m%d.%dxlarge", i/10, i%10+1),
		CPU:  resource.MustParse("4"), GPU: resource.MustParse("0"), Memory: resource.MustParse("16Gi"),
		Architecture: ptr.To("amd64"), Usable: ptr.To(true),
		Storage: &gardencorev1beta1.MachineTypeStorage{Class: "standard", Type: "gp3", StorageSize: ptr.To(resource.MustParse("50Gi"))},
	}
}
