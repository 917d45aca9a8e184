package cache

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	debugPortName = "debug"
	healthPath    = "/debug/health"
)

// healthProbe asks distribution's own health check, which fails when the volume cannot be used.
func healthProbe(periodSeconds, failureThreshold int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: healthPath,
			Port: intstr.FromString(debugPortName),
		}},
		PeriodSeconds:    periodSeconds,
		TimeoutSeconds:   3,
		FailureThreshold: failureThreshold,
		SuccessThreshold: 1,
	}
}
