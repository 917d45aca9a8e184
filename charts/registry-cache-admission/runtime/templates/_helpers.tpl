{{- define "name" -}}
gardener-extension-registry-cache-admission
{{- end -}}

{{- define "labels" -}}
app.kubernetes.io/name: {{ include "name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "image" -}}
{{- if .Values.image.ref -}}
{{ .Values.image.ref }}
{{- else -}}
{{- $tag := required "image.tag or image.ref is required" .Values.image.tag -}}
{{ .Values.image.repository }}{{ hasPrefix "sha256:" $tag | ternary "@" ":" }}{{ $tag }}
{{- end -}}
{{- end -}}

{{/* gardener-operator installs the chart in the namespace garden, which contains the keys of the garden, so the certificates go
to another namespace. A webhook registered by its Service, not by URL, needs them in the namespace of the Service. */}}
{{- define "certificatesNamespace" -}}
{{- if .Values.gardener.virtualCluster.enabled -}}
{{ include "name" . }}
{{- else -}}
{{ .Release.Namespace }}
{{- end -}}
{{- end -}}

{{- define "vpaEnabled" -}}
{{- if kindIs "bool" .Values.vpa.enabled -}}
{{ .Values.vpa.enabled }}
{{- else -}}
{{ or (.Capabilities.APIVersions.Has "autoscaling.k8s.io/v1/VerticalPodAutoscaler") .Values.gardener.virtualCluster.enabled }}
{{- end -}}
{{- end -}}

{{/* The folder of the kubeconfig for the garden. Empty if the chart mounts none. */}}
{{- define "kubeconfigFolder" -}}
{{- if .Values.kubeconfig -}}
/var/run/garden
{{- else if .Values.projectedKubeconfig -}}
{{ .Values.projectedKubeconfig.baseMountPath }}
{{- end -}}
{{- end -}}
