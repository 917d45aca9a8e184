package storage

import (
	core "k8s.io/api/core/v1"
	appsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
)

const configDir = "/etc/config"

func deployment(image, helper string) *appsv1.DeploymentApplyConfiguration {
	pod := corev1.PodTemplateSpec().WithLabels(labels()).WithSpec(
		corev1.PodSpec().
			WithServiceAccountName(serviceAccount).
			WithTolerations(corev1.Toleration().WithOperator(core.TolerationOpExists)).
			WithContainers(container(image, helper)).
			WithVolumes(corev1.Volume().WithName("config").WithConfigMap(corev1.ConfigMapVolumeSource().WithName(config))))
	return appsv1.Deployment(Provisioner, Namespace).WithSpec(
		appsv1.DeploymentSpec().WithReplicas(1).WithSelector(selector()).WithTemplate(pod))
}

func container(image, helper string) *corev1.ContainerApplyConfiguration {
	namespace := corev1.EnvVar().WithName("POD_NAMESPACE").WithValueFrom(
		corev1.EnvVarSource().WithFieldRef(corev1.ObjectFieldSelector().WithFieldPath("metadata.namespace")))
	return corev1.Container().
		WithName(Provisioner).
		WithImage(image).
		WithImagePullPolicy(core.PullIfNotPresent).
		WithCommand("local-path-provisioner", "start", "--helper-image", helper, "--config", configDir+"/config.json").
		WithEnv(namespace, corev1.EnvVar().WithName("CONFIG_MOUNT_PATH").WithValue(configDir+"/")).
		WithVolumeMounts(corev1.VolumeMount().WithName("config").WithMountPath(configDir + "/"))
}
